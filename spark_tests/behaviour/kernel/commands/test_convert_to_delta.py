"""CONVERT TO DELTA of folders of Parquet files."""

from __future__ import annotations

import json
import pickle
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    DataFileError,
    DeltaConcurrentModificationException,
    DeltaError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_ds.kernel.commands.convert_to_delta import convert_to_delta, plan_conversion, source_files
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.format.features import FEATURES
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)
from spark_tests.behaviour.kernel.commands.whole_tables import bodies, commit_before, ids, rows

P = StructType((StructField("p", INTEGER),))


def put(path: Path, data: pa.Table, **how: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path, **how)


def statistics(log: DeltaLog) -> dict[str, dict[str, Any]]:
    return {body["path"]: json.loads(body["stats"]) for body in bodies(log, 0, "add")}


def test_files_become_a_table_where_they_are(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", ids(1, 2))
    put(tmp_path / "sub" / "b c.parquet", ids(3))
    log = DeltaLog(tmp_path)
    done = convert_to_delta(log)
    assert done is not None and (done.version, done.num_converted_files) == (0, 2)
    assert rows(log) == [1, 2, 3]
    assert statistics(log) == {
        "a.parquet": {"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 0}},
        "sub/b%20c.parquet": {
            "numRecords": 1, "minValues": {"id": 3}, "maxValues": {"id": 3}, "nullCount": {"id": 0},
        },
    }  # fmt: skip
    (info,) = bodies(log, 0, "commitInfo")
    assert (info["operation"], info["operationMetrics"]) == ("CONVERT", {"numConvertedFiles": "2"})
    assert info["operationParameters"] == {
        "numFiles": 2, "partitionedBy": "[]", "collectStats": True, "sourceFormat": "parquet",
    }  # fmt: skip
    assert info["isBlindAppend"] is False
    assert bodies(log, 0, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]


def test_a_table_is_left_as_it_is(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", ids(1))
    log = DeltaLog(tmp_path)
    convert_to_delta(log)
    put(tmp_path / "b.parquet", ids(2))
    assert convert_to_delta(log) is None
    assert (log.snapshot().version, rows(log)) == (0, [1])


def test_hidden_files_are_skipped_and_partitions_are_not(tmp_path: Path) -> None:
    put(tmp_path / "_p=1" / "a.parquet", ids(1))
    for name in ("_SUCCESS", ".a.parquet.crc", "_temporary/0/x.parquet", "_p=1/.hidden", "_p=1/_meta"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"no parquet")
    log = DeltaLog(tmp_path)
    convert_to_delta(log, StructType((StructField("_p", INTEGER),)))
    assert log.snapshot().scan().to_arrow().to_pylist() == [{"id": 1, "_p": 1}]


def test_statistics_can_be_left_out(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", ids(1))
    log = DeltaLog(tmp_path)
    convert_to_delta(log, collect_statistics=False)
    assert "stats" not in bodies(log, 0, "add")[0]
    assert bodies(log, 0, "commitInfo")[0]["operationParameters"]["collectStats"] is False


# --- partitions


def test_partition_values_come_from_folders(tmp_path: Path) -> None:
    for text, value in (("1", 1), ("02", 2), ("__HIVE_DEFAULT_PARTITION__", 3)):
        put(tmp_path / f"p={text}" / "a.parquet", ids(value))
    log = DeltaLog(tmp_path)
    convert_to_delta(log, P)
    found = {row["id"]: row["p"] for row in log.snapshot().scan().to_arrow().to_pylist()}
    assert found == {1: 1, 2: 2, 3: None}
    assert {b["partitionValues"]["p"] for b in bodies(log, 0, "add")} == {"1", "2", None}
    assert log.snapshot().schema.names == ["id", "p"]


def test_escaped_names_and_values_are_decoded_once(tmp_path: Path) -> None:
    put(tmp_path / "a%3Db=x%2Fy %2525" / "a.parquet", ids(1))
    log = DeltaLog(tmp_path)
    with pytest.raises(DeltaError, match="a=b"):  # a name that columns of a table may not have
        convert_to_delta(log, StructType((StructField("a=b", STRING),)))
    (tmp_path / "a%3Db=x%2Fy %2525").rename(tmp_path / "p=x%2Fy %2525")
    convert_to_delta(log, StructType((StructField("p", STRING),)))
    assert log.snapshot().scan().to_arrow()["p"].to_pylist() == ["x/y %25"]


def test_timestamps_in_folders_are_of_the_session(tmp_path: Path) -> None:
    put(tmp_path / "p=2024-07-01 12%3A00%3A00" / "a.parquet", ids(1))
    log = DeltaLog(tmp_path)
    convert_to_delta(log, StructType((StructField("p", TIMESTAMP),)), timezone="Europe/Berlin")
    assert bodies(log, 0, "add")[0]["partitionValues"] == {"p": "2024-07-01T10:00:00.000000Z"}


def test_partition_columns_in_files_yield_to_folders(tmp_path: Path) -> None:
    put(tmp_path / "p=1" / "a.parquet", pa.table({"id": [1], "p": ["not 1"], "v": [5]}))
    log = DeltaLog(tmp_path)
    convert_to_delta(log, P)
    assert log.snapshot().schema.names == ["id", "p", "v"]
    assert log.snapshot().scan().to_arrow().to_pylist() == [{"id": 1, "p": 1, "v": 5}]
    assert statistics(log)["p=1/a.parquet"]["nullCount"] == {"id": 0, "v": 0}


@pytest.mark.parametrize(
    ("schema", "condition"),
    [
        (None, "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        (StructType((*P, StructField("q", STRING))), "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        (StructType((StructField("q", STRING),)), "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
        (P, "DELTA_FAILED_CAST_PARTITION_VALUE"),
    ],
)
def test_folders_that_do_not_fit_are_refused(
    tmp_path: Path, schema: StructType | None, condition: str
) -> None:
    put(tmp_path / "p=one" / "a.parquet", ids(1))
    with pytest.raises(SchemaError) as caught:
        convert_to_delta(DeltaLog(tmp_path), schema)
    assert caught.value.condition == condition
    assert not (tmp_path / "_delta_log").exists()


# --- schema


def test_columns_of_all_files_are_merged(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", pa.table({"id": pa.array([1], pa.int16()), "s": [{"x": 1}]}))
    put(tmp_path / "b.parquet", pa.table({"v": ["b"], "id": pa.array([2], pa.int32())}))
    put(tmp_path / "c.parquet", pa.table({"id": pa.array([3], pa.int8()), "s": [{"y": 1.5, "x": 2}]}))
    log = DeltaLog(tmp_path)
    convert_to_delta(log)
    found = sorted(log.snapshot().scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "s": {"x": 1, "y": None}, "v": None},
        {"id": 2, "s": None, "v": "b"},
        {"id": 3, "s": {"x": 2, "y": 1.5}, "v": None},
    ]
    assert log.snapshot().schema.find("id") == StructField("id", INTEGER)
    assert statistics(log)["c.parquet"]["maxValues"] == {"id": 3, "s": {"x": 2, "y": 1.5}}


def test_types_that_do_not_go_together_name_the_file(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    put(tmp_path / "b.parquet", pa.table({"id": ["one"]}))
    with pytest.raises(SchemaError, match=r"b\.parquet") as caught:
        convert_to_delta(DeltaLog(tmp_path))
    assert caught.value.condition == "DELTA_FAILED_MERGE_SCHEMA_FILE"


def test_spelling_of_the_first_file_counts(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", pa.table({"Id": [1]}))
    put(tmp_path / "b.parquet", pa.table({"iD": [2]}))
    log = DeltaLog(tmp_path)
    convert_to_delta(log)
    assert log.snapshot().scan().to_arrow()["Id"].to_pylist() == [1, 2]
    assert statistics(log)["b.parquet"] == {"numRecords": 1}
    assert log.snapshot().scan("Id = 2").to_arrow().num_rows == 1


def test_columns_may_hold_nulls_whatever_a_file_says(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    put(tmp_path / "a.parquet", pa.table({"id": [1]}, schema))
    log = DeltaLog(tmp_path)
    convert_to_delta(log)
    assert log.snapshot().schema.fields[0].nullable


def test_parquet_types_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5)
    data = pa.table(
        {
            "old": pa.array([moment], pa.timestamp("us")),
            "d": pa.array(["x"]).dictionary_encode(),
            "l": pa.array([["y"]], pa.large_list(pa.large_string())),
        }
    )
    put(tmp_path / "int96" / "a.parquet", data, use_deprecated_int96_timestamps=True)
    put(tmp_path / "plain" / "a.parquet", data)
    for name, kind, value in (
        ("int96", TIMESTAMP, moment.replace(tzinfo=timezone.utc)),
        ("plain", TIMESTAMP_NTZ, moment),
    ):
        log = DeltaLog(tmp_path / name)
        convert_to_delta(log)
        found = log.snapshot()
        assert found.schema.find("old") == StructField("old", kind)
        assert found.protocol.supports(FEATURES["timestampNtz"]) == (kind == TIMESTAMP_NTZ)
        assert found.scan().to_arrow().to_pylist() == [{"old": value, "d": "x", "l": ["y"]}]


def test_sparks_own_schema_in_a_file_counts(tmp_path: Path) -> None:
    about = {"comment": "c", "delta.generationExpression": "1", "__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    schema = StructType((StructField("v", STRING, False, about),))
    key = {"org.apache.spark.sql.parquet.row.metadata": schema_to_json(schema)}
    put(tmp_path / "a.parquet", pa.table({"v": [b"x"]}).replace_schema_metadata(key))
    log = DeltaLog(tmp_path)
    convert_to_delta(log)
    kept = {"comment": "c", "__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    assert log.snapshot().schema == StructType((StructField("v", STRING, True, kept),))


def test_types_without_counterpart_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", pa.table({"t": pa.array([1], pa.time64("us"))}))
    with pytest.raises(SchemaError, match=r"a\.parquet.*column t"):
        convert_to_delta(DeltaLog(tmp_path))


_VOID = pa.null()
# Columns that never had a value, and what they are in the table: their physical type, as in delta-spark.
NEVER_A_VALUE: dict[str, tuple[pa.Array, DataType]] = {
    "top": (pa.nulls(2), INTEGER),
    "in a struct": (
        pa.array([{"a": None, "b": 1}, None], pa.struct([("a", _VOID), ("b", pa.int64())])),
        StructType((StructField("a", INTEGER), StructField("b", LONG))),
    ),
    "all of a struct": (
        pa.array([{"a": None}, None], pa.struct([("a", _VOID)])),
        StructType((StructField("a", INTEGER),)),
    ),
    "in an array": (pa.array([[None], None], pa.list_(_VOID)), ArrayType(INTEGER)),
    "in a map": (pa.array([[("k", None)], []], pa.map_(pa.string(), _VOID)), MapType(STRING, INTEGER)),
}


@pytest.mark.parametrize("collect", [True, False])
@pytest.mark.parametrize("name", NEVER_A_VALUE)
def test_columns_that_never_had_a_value_are_read_as_nulls(tmp_path: Path, name: str, collect: bool) -> None:
    array, kind = NEVER_A_VALUE[name]
    put(tmp_path / "a.parquet", pa.table({"x": array, "y": [1, 2]}))
    log = DeltaLog(tmp_path)
    convert_to_delta(log, collect_statistics=collect)
    assert log.snapshot().schema == StructType((StructField("x", kind), StructField("y", LONG)))
    expected = [{"x": value, "y": y} for value, y in zip(array.to_pylist(), (1, 2), strict=True)]
    assert log.snapshot().scan().to_arrow().to_pylist() == expected
    assert log.snapshot().scan("y = 2 AND x IS NULL").to_arrow().num_rows == (name not in ("in a map",))
    if collect:
        found = statistics(log)["a.parquet"]
        assert (found["minValues"].get("y"), found["maxValues"].get("y")) == (1, 2)
        nulls = {"top": 2, "in a struct": {"a": 2, "b": 1}, "all of a struct": {"a": 2}}
        assert found["nullCount"]["x"] == nulls.get(name, array.null_count)
    optimize(log, OptimizeRequest())
    assert log.snapshot().scan().to_arrow().to_pylist() == expected


@pytest.mark.parametrize("collect", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("other", "allowed"),
    [
        (pa.array([7], pa.int32()), True), (pa.array([7], pa.int8()), True), (pa.nulls(1), True),
        (pa.array([7], pa.int64()), False), (pa.array(["s"]), False), (pa.array([{"a": 7}]), False),
        (pa.array([[7]]), False),
    ],
)  # fmt: skip
def test_beside_values_of_another_type_they_are_refused_or_read(
    tmp_path: Path, other: pa.Array, allowed: bool, first: bool, collect: bool
) -> None:
    names = ("a.parquet", "b.parquet") if first else ("b.parquet", "a.parquet")
    put(tmp_path / names[0], pa.table({"x": pa.nulls(2), "y": [1, 2]}))
    put(tmp_path / names[1], pa.table({"x": other, "y": [3]}))
    log = DeltaLog(tmp_path)
    if allowed:
        convert_to_delta(log, collect_statistics=collect)
        found = log.snapshot().scan().to_arrow().sort_by("y").to_pylist()
        assert [row["x"] for row in found] == [None, None, *other.to_pylist()]
    else:
        with pytest.raises(SchemaError, match="b.parquet"):
            convert_to_delta(log, collect_statistics=collect)
        assert not (tmp_path / "_delta_log").exists()


# --- what is no folder of Parquet files


def test_nothing_to_convert_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError) as missing:
        convert_to_delta(DeltaLog(tmp_path / "none"))
    assert missing.value.condition == "DELTA_FILE_NOT_FOUND"
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(DataFileError) as empty:
        convert_to_delta(DeltaLog(tmp_path))
    assert empty.value.condition == "DELTA_EMPTY_DIRECTORY"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", [b"", b"id\n1\n", b"PAR1 cut off PAR1"])
def test_a_file_that_is_no_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "a.parquet", ids(1))
    (tmp_path / "b.csv").write_bytes(content)
    with pytest.raises(DataFileError, match=r"b\.csv") as caught:
        convert_to_delta(DeltaLog(tmp_path))
    assert caught.value.condition == "DELTA_FAILED_READ_FILE_FOOTER"
    assert not (tmp_path / "_delta_log").exists()


def test_the_output_of_a_stream_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", ids(1))
    (tmp_path / "_spark_metadata").mkdir()
    with pytest.raises(UnsupportedOperationError, match="_spark_metadata"):
        convert_to_delta(DeltaLog(tmp_path))


def test_another_creator_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.parquet", ids(1))
    commit_before(monkeypatch, DeltaLog(tmp_path), ids(7))
    with pytest.raises(DeltaConcurrentModificationException):
        convert_to_delta(DeltaLog(tmp_path))
    assert rows(DeltaLog(tmp_path)) == [7]


def test_tasks_can_make_the_adds_of_a_run_of_files(tmp_path: Path) -> None:
    for name, data in (("a", ids(1)), ("b", pa.table({"v": ["x"]})), ("c", ids(3))):
        put(tmp_path / f"{name}.parquet", data)
    storage = DeltaLog(tmp_path).storage
    files = source_files(storage)
    conversion = plan_conversion(storage, files, None)
    sent = pickle.loads(pickle.dumps(conversion))
    apart = sent.adds(storage, files[:1]) + sent.adds(storage, files[1:], first=1)
    assert apart == conversion.adds(storage, files)
    assert json.loads(apart[1]["stats"])["minValues"] == {"v": "x"}


def test_a_converted_table_is_written_to(tmp_path: Path) -> None:
    put(tmp_path / "p=1" / "a.parquet", pa.table({"id": [1]}))
    log = DeltaLog(tmp_path)
    convert_to_delta(log, StructType((StructField("p", LONG),)))
    log.write(pa.table({"id": [2], "p": [1]}))
    assert rows(log) == [1, 2]


def test_a_folder_on_a_store_becomes_a_table() -> None:
    buffer = pa.BufferOutputStream()
    pq.write_table(ids(1), buffer)
    log = DeltaLog("memory://converted/folder")
    log.storage.write("p=1/a b.parquet", buffer.getvalue().to_pybytes())
    convert_to_delta(log, P)
    generate(log, "symlink_format_manifest")
    assert log.snapshot().scan().to_arrow().to_pylist() == [{"id": 1, "p": 1}]
    found = log.storage.read("_symlink_format_manifest/p=1/manifest").decode()
    assert found == "memory://converted/folder/p=1/a b.parquet\n"
