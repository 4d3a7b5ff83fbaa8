"""Files of another writer as actions: paths, partitions, sizes and times, what is no data file, what is refused."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.write_spec import WriteSpec, list_written_files
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    StructType,
)
from delta_ds.kernel.format.values.partition_values import escape, partition_folder
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.write.parquet_files import read_parquet_files
from spark_tests.behaviour.kernel.files.write.written_tables import (
    PRIMITIVES,
    batch_of,
    commit,
    mapped,
    plan_of,
    struct,
    values,
    write,
)
from spark_tests.full_form import examples

FEW = settings(deadline=None, max_examples=examples(40))
XP = struct(x=LONG, p=STRING)


def put(folder: Path, path: str, plan: WriteSpec, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows to a file below the table's folder, partition columns left out."""
    batch = file_columns(plan).physical(batch_of(plan.schema, rows))
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_batches([batch]), target, store_schema=False)
    return target


def test_the_actions_are_those_of_the_writer_of_the_same_rows(tmp_path: Path) -> None:
    odd = " a/b=c%:#+é"
    rows = [{"x": 1, "p": odd}, {"x": 2, "p": None}]
    plan = plan_of(tmp_path, XP, ["p"])
    wanted = {add["partitionValues"]["p"]: add for add in write(tmp_path, XP, rows, partition_columns=["p"])}
    files = [
        put(tmp_path, f"new/{partition_folder([('p', row['p'])])}/part-0 é.parquet", plan, [row])
        for row in rows
    ]
    adds = read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds
    assert [add["path"] for add in adds] == [
        "new/p=%20a%252Fb%253Dc%2525%253A%2523+%C3%A9/part-0%20%C3%A9.parquet",
        "new/p=__HIVE_DEFAULT_PARTITION__/part-0%20%C3%A9.parquet",
    ]
    assert [add["partitionValues"]["p"] for add in adds] == [odd, None]
    for add, file in zip(adds, files, strict=True):
        same = wanted[add["partitionValues"]["p"]]
        assert list(add) == list(same)
        assert {**add, "path": "", "size": 0, "modificationTime": 0} == {
            **same, "path": "", "size": 0, "modificationTime": 0
        }  # fmt: skip
        assert add["size"] == file.stat().st_size
        assert add["modificationTime"] == file.stat().st_mtime_ns // 1_000_000


@given(
    kinds=st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=2),
    data=st.data(),
    mode=st.sampled_from(["none", "name"]),
)
@FEW
def test_partition_values_of_any_type_are_those_of_the_writer(
    kinds: list[DataType], data: st.DataObject, mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    schema = struct(**{f"p/{i}": kind for i, kind in enumerate(kinds)}, x=LONG)
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
    row = {
        f.name: data.draw(
            text if f.type == STRING else text.map(str.encode) if f.type == BINARY else values(f.type)
        )
        for f in schema
    }
    schema = mapped(schema) if mode != "none" else schema
    partition_columns = schema.names[:-1]
    folder = tmp_path_factory.mktemp("table")
    plan = plan_of(folder, schema, partition_columns, mapping_mode=mode)
    writer = FileWriter(open_storage(str(folder)), plan)
    writer.write(batch_of(schema, [row]))
    (wanted,) = writer.close()
    logged = wanted["partitionValues"]
    put(folder, f"new/{partition_folder(logged.items())}/a.parquet", plan, [row])
    (add,) = read_parquet_files(open_storage(str(folder)), plan, "new").adds
    assert add["partitionValues"] == logged
    assert list(add["partitionValues"]) == list(logged)
    assert add["stats"] == wanted["stats"]


@given(rows=st.lists(st.fixed_dictionaries({"p": values(INTEGER), "x": values(LONG)}), max_size=8))
@FEW
def test_a_table_of_such_files_has_their_rows(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("table")
    schema = struct(p=INTEGER, x=LONG)
    plan = plan_of(folder, schema, ["p"])
    for i, row in enumerate(rows):
        text = None if row["p"] is None else str(row["p"])
        put(folder, f"new/{partition_folder([('p', text)])}/{i}.parquet", plan, [row])
    log: DeltaLog = commit(folder, plan, read_parquet_files(open_storage(str(folder)), plan, "new").adds)
    found = log.snapshot().scan().to_arrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, batch_of(schema, rows).to_pylist()))


def test_files_without_rows_are_no_actions_but_told(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, struct(x=LONG))
    put(tmp_path, "new/a.parquet", plan, [])
    put(tmp_path, "new/b.parquet", plan, [{"x": 1}, {"x": 2}])
    found = read_parquet_files(open_storage(str(tmp_path)), plan, "new")
    assert [add["path"] for add in found.adds] == ["new/b.parquet"]
    assert found.unwanted == ["new/a.parquet"]
    assert found.rows == 2


def test_only_the_files_asked_for_are_taken(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, struct(x=LONG))
    for name in "abc":
        put(tmp_path, f"new/{name}.parquet", plan, [{"x": 1}])
    found = read_parquet_files(
        open_storage(str(tmp_path)), plan, "new", paths=["new/c.parquet", "new/a.parquet"]
    ).adds
    assert [add["path"] for add in found] == ["new/a.parquet", "new/c.parquet"]
    with pytest.raises(FileNotFoundError):
        read_parquet_files(open_storage(str(tmp_path)), plan, "new", paths=["new/d.parquet"])


def test_markers_checksums_and_attempts_are_not_listed(tmp_path: Path) -> None:
    for name in (
        "new/_SUCCESS",
        "new/.part-0.parquet.crc",
        "new/_temporary/0/part-1.parquet",
        "new/_p x=1/.hidden/part-2.parquet",
        "new/_p x=1/part-3.parquet",
        "new/.q=1/part-4.parquet",
        "other/part-5.parquet",
        "newer/part-6.parquet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, ns=(0, 1_234_567_890))
    for folder in ("new", "new/"):
        assert list_written_files(open_storage(str(tmp_path)), folder) == [
            ("new/.q=1/part-4.parquet", 5, 1234),
            ("new/_p x=1/part-3.parquet", 5, 1234),
        ]


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert list_written_files(open_storage(str(tmp_path)), "new") == []
    assert read_parquet_files(open_storage(str(tmp_path)), plan_of(tmp_path, XP, ["p"]), "new").adds == []
    assert list_written_files(open_storage("memory://nothing/here"), "new") == []


def test_files_in_a_store_are_found_as_on_a_disk(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, struct(x=DOUBLE, p=STRING), ["p"])
    here = open_storage(str(tmp_path))
    there: Storage = open_storage(f"memory://bucket-{tmp_path.name}/table")
    for path in ("new/p=a%2Fb %25é/1.parquet", "new/p=c/2.parquet"):
        there.write(path, put(tmp_path, path, plan, [{"x": float("nan")}]).read_bytes())
    there.write("new/_SUCCESS", b"")
    there.write("newer/p=c/3.parquet", b"")

    def untimed(storage: Storage) -> list[dict[str, Any]]:
        return [{**add, "modificationTime": 0} for add in read_parquet_files(storage, plan, "new").adds]

    assert untimed(there) == untimed(here)
    assert len(untimed(here)) == 2
    assert all(time_ms > 1_600_000_000_000 for _, _, time_ms in list_written_files(there, "new"))


@pytest.mark.parametrize(
    ("kind", "text", "logged"),
    [
        (DOUBLE, "1e20", "1.0E20"),
        (DOUBLE, "-0.0", "-0.0"),
        (DOUBLE, "NaN", "NaN"),
        (INTEGER, "007", "7"),
        (DecimalType(10, 3), "1.5", "1.500"),
        (DATE, "2024-1-2", "2024-01-02"),
        (TIMESTAMP, "2024-01-02T03%3A04%3A05Z", "2024-01-02T03:04:05.000000Z"),
        (TIMESTAMP, "2024-01-02 03%3A04%3A05+01:00", "2024-01-02T02:04:05.000000Z"),
        (INTEGER, "", None),
    ],
)
def test_one_value_has_one_text_however_the_folder_spells_it(
    tmp_path: Path, kind: DataType, text: str, logged: str | None
) -> None:
    plan = plan_of(tmp_path, struct(x=LONG, p=kind), ["p"])
    put(tmp_path, f"new/p={text}/a.parquet", plan, [{"x": 1}])
    (add,) = read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds
    assert add["partitionValues"] == {"p": logged}


TWO = struct(x=LONG, p=INTEGER, q=TIMESTAMP)


@pytest.mark.parametrize(
    ("schema", "columns", "folder", "text"),
    [
        (TWO, ["p", "q"], "new", r"folder of \[\] instead of the partition columns \['p', 'q'\]"),
        (TWO, ["p", "q"], "new/q=2024-01-02T03%3A04%3A05Z/p=1", "instead of the partition columns"),
        (TWO, ["p", "q"], "new/p=1", "instead of the partition columns"),
        (TWO, ["p", "q"], "new/p=x/q=2024-01-02T03%3A04%3A05Z", "says 'x', which is no integer"),
        (TWO, ["p", "q"], "new/p=1/q=2024-01-02 03%3A04%3A05", "which is no timestamp"),
        (XP, [], "new/p=1", "instead of the partition columns"),
        (XP, ["p"], "new/P=1", "instead of the partition columns"),
    ],
)
def test_folders_that_are_no_partition_are_refused(
    tmp_path: Path, schema: StructType, columns: list[str], folder: str, text: str
) -> None:
    plan = plan_of(tmp_path, schema, columns)
    put(tmp_path, f"{folder}/a.parquet", plan, [{"x": 1}])
    with pytest.raises(DataFileError, match=text) as caught:
        read_parquet_files(open_storage(str(tmp_path)), plan, "new")
    assert "nothing was committed" in caught.value.text
    assert caught.value.parameters["table"] == str(tmp_path)


def test_partition_columns_that_files_hold_as_well_must_be_in_them(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, XP, ["p"], features=frozenset(["materializePartitionColumns"]))
    put(tmp_path, "new/p=a/a.parquet", plan, [{"x": 1, "p": "a"}])
    (add,) = read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds
    assert add["partitionValues"] == {"p": "a"}
    without = plan_of(tmp_path, XP, ["p"], properties={"delta.writePartitionColumnsToParquet": "false"})
    put(tmp_path, "new/p=a/b.parquet", without, [{"x": 1}])
    with pytest.raises(DataFileError, match="instead of"):
        read_parquet_files(open_storage(str(tmp_path)), plan, "new")


def test_timestamps_of_any_age_are_read_from_folders(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, struct(x=LONG, p=TIMESTAMP), ["p"])
    moment = dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc)
    (wanted,) = write(tmp_path, plan.schema, [{"x": 1, "p": moment}], partition_columns=["p"])
    text = wanted["partitionValues"]["p"]
    put(tmp_path, f"new/p={escape(text)}/a.parquet", plan, [{"x": 1}])
    (add,) = read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds
    assert add["partitionValues"] == {"p": text}
