"""Tables with Iceberg compatibility V1 and V2: their description, their files, and what is refused."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, UnsupportedOperationError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.format.features import ICEBERG_COMPAT_V2
from delta_ds.kernel.format.schema.column_mapping import every_field, nested_ids
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, NESTED_IDS
from delta_ds.kernel.format.schema.types import (
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.columns import add_columns, drop_columns, rename_column
from delta_ds.kernel.transaction.alter.create import REPLACE, create_table
from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties
from delta_ds.kernel.transaction.iceberg.data_files import complaints
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.transaction.alter.tables import made, protocol, with_rows

V1 = {"delta.enableIcebergCompatV1": "true"}
V2 = {"delta.enableIcebergCompatV2": "true"}
NAME = {"delta.columnMapping.mode": "name"}
VECTORS = {"delta.enableDeletionVectors": "true"}
NESTED = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "a": pa.array([[[1], []], None], pa.list_(pa.list_(pa.int32()))),
        "m": pa.array(
            [[("k", {"x": 1, "l": [2]})], []],
            pa.map_(pa.string(), pa.struct([("x", pa.int32()), ("l", pa.list_(pa.int32()))])),
        ),
        "at": pa.array([datetime.datetime(2024, 5, 6, 7, 8, 9, 123456), None], pa.timestamp("us", "UTC")),
        "p": ["x y", None],
    }
)


def struct(**types: DataType) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in types.items()))


def condition(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value.condition).removeprefix("DELTA_ICEBERG_COMPAT_VIOLATION.")


def adds(log: DeltaLog) -> list[Any]:
    return [add for table in live_adds(log.open_snapshot()) for add in add_bodies(table)]


def footers(log: DeltaLog) -> list[pq.ParquetSchema]:
    return [pq.ParquetFile(Path(log.storage.url, add["path"])).schema for add in adds(log)]


def complying(log: DeltaLog, version: int = 2) -> bool:
    """Whether the footers say that all files comply, whatever their tags say."""
    state = log.open_snapshot().table_state
    bare = [{**add, "tags": None} for add in adds(log)]
    return bool(bare) and not list(complaints(log.storage, state, version, bare))


def test_new_table_gets_column_mapping_and_ids_inside_arrays_and_maps(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED, options={"partitionBy": "p", **V2})
    assert protocol(log) == (2, 7, None, ["appendOnly", "columnMapping", "icebergCompatV2", "invariants"])
    snapshot = log.snapshot()
    assert snapshot.properties["delta.columnMapping.mode"] == "name"
    fields = list(every_field(snapshot.schema))
    ids = [f.metadata[FIELD_ID] for f in fields] + [n for f in fields for n in nested_ids(f).values()]
    assert sorted(ids) == list(range(1, 13))
    assert snapshot.properties["delta.columnMapping.maxColumnId"] == "12"
    assert all(NESTED_IDS in f.metadata for f in fields)
    assert snapshot.scan().to_arrow().select(NESTED.column_names).sort_by("id").equals(NESTED)


def test_files_hold_ids_partition_columns_and_int64_timestamps_and_say_so(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED, options={"partitionBy": "p", **V2})
    assert complying(log)
    assert complying(log, 1)
    for add, footer in zip(adds(log), footers(log), strict=True):
        assert add["tags"] == {"ICEBERG_COMPAT_VERSION": "2"}
        assert json.loads(add["stats"])["numRecords"] == 1
        stored = footer.to_arrow_schema()
        p = log.snapshot().schema.find("p")
        assert p is not None
        assert stored.names[-1] == p.metadata["delta.columnMapping.physicalName"]
        assert {footer.column(i).physical_type for i in range(len(footer))} == {
            "INT32",
            "INT64",
            "BYTE_ARRAY",
        }
        inner = stored.field(1).type.value_field
        assert [f.metadata[b"PARQUET:field_id"] for f in (inner, inner.type.value_field)] == [b"8", b"9"]


def test_ids_stay_what_they_are_while_columns_come(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED, options=V2)
    before = log.snapshot().schema
    add_columns(log, struct(more=MapType(STRING, ArrayType(LONG))))
    log.write(NESTED, "overwrite")
    log.write(NESTED.append_column("again", pa.array([[1], [2]])), options={"mergeSchema": "true"})
    after = log.snapshot().schema
    for field in before:
        assert after.find(field.name) == field
    new = [f for name in ("more", "again") for f in [after.find(name)] if f is not None]
    found = [number for f in new for number in (f.metadata[FIELD_ID], *nested_ids(f).values())]
    assert sorted(found) == list(range(13, 19))
    assert complying(log)


@pytest.mark.parametrize(
    ("schema", "properties", "refused"),
    [
        (struct(id=LONG, a=ArrayType(LONG)), V1, "UNSUPPORTED_DATA_TYPE"),
        (struct(id=LONG, s=struct(m=MapType(LONG, LONG))), V1, "UNSUPPORTED_DATA_TYPE"),
        (struct(id=LONG, v=VOID), V1, "UNSUPPORTED_DATA_TYPE"),
        (struct(id=LONG, v=VOID), V2, "UNSUPPORTED_DATA_TYPE"),
        (struct(id=LONG, v=VARIANT), V2, "UNSUPPORTED_DATA_TYPE"),
        (struct(id=LONG, a=ArrayType(VARIANT)), V2, "UNSUPPORTED_DATA_TYPE"),
        (struct(id=LONG), V1 | V2, "VERSION_MUTUAL_EXCLUSIVE"),
        (struct(id=LONG), V1 | VECTORS, "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (struct(id=LONG), V2 | VECTORS, "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (struct(id=LONG), V2 | {"delta.columnMapping.mode": "none"}, "WRONG_REQUIRED_TABLE_PROPERTY"),
    ],
)
def test_a_table_that_iceberg_cannot_read_does_not_come_to_be(
    tmp_path: Path, schema: StructType, properties: dict[str, str], refused: str
) -> None:
    with pytest.raises(UnsupportedOperationError) as error:
        create_table(DeltaLog(tmp_path), schema, properties=properties)
    assert condition(error) == refused
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        (VECTORS, "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (V1, "VERSION_MUTUAL_EXCLUSIVE"),
        ({"delta.columnMapping.mode": "none"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
    ],
)
def test_properties_that_contradict_it_are_refused(
    tmp_path: Path, properties: dict[str, str], refused: str
) -> None:
    log = made(tmp_path, properties=V2)
    with pytest.raises(DeltaError) as error:
        set_properties(log, properties)
    assert condition(error) in (refused, "WRONG_REQUIRED_TABLE_PROPERTY")
    assert log.snapshot().version == 0


def test_a_table_with_rows_can_have_it_where_its_files_are_found_by_name(tmp_path: Path) -> None:
    log = with_rows(tmp_path, files=2)
    with pytest.raises(UnsupportedOperationError) as error:
        set_properties(log, V2)
    assert condition(error) == "WRONG_REQUIRED_TABLE_PROPERTY"
    set_properties(log, NAME)
    set_properties(log, V2)
    assert log.open_snapshot().table_state.enabled(ICEBERG_COMPAT_V2)
    log.write(log.snapshot().scan().to_arrow())
    assert [add.get("tags") for add in adds(log)].count(None) == 2
    assert complying(log)


def test_files_with_some_ids_and_not_all_have_to_be_written_anew(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED, options=NAME)
    with pytest.raises(
        UnsupportedOperationError, match=r"UPGRADE UNIFORM \(ICEBERG_COMPAT_VERSION = 2\)"
    ) as error:
        set_properties(log, V2)
    assert condition(error) == "FILES_NOT_ICEBERG_COMPAT"
    assert log.snapshot().version == 0


def test_columns_that_the_table_no_longer_has_need_ids(tmp_path: Path) -> None:
    log = with_rows(tmp_path)
    set_properties(log, NAME)
    drop_columns(log, ["v"])
    with pytest.raises(UnsupportedOperationError, match="column v is none of the table"):
        set_properties(log, V2)


def test_v1_needs_the_partition_columns_in_the_files_there_are(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    without = {"delta.writePartitionColumnsToParquet": "false"}
    log.write(NESTED.select(["id", "p"]), options={"partitionBy": "p", **NAME, **without})
    with pytest.raises(UnsupportedOperationError, match="does not hold the partition columns") as error:
        set_properties(log, V1)
    assert condition(error) == "FILES_NOT_ICEBERG_COMPAT"
    set_properties(log, V2)
    log.write(NESTED.select(["id", "p"]), "overwrite")
    set_properties(log, {"delta.enableIcebergCompatV2": "false", **V1})
    assert complying(log, 1)


def test_int96_timestamps_are_not_taken_over(tmp_path: Path) -> None:
    table = TableBuilder(str(tmp_path))
    table.create(pa.schema([("at", pa.timestamp("us", "UTC"))]), properties={})
    path = tmp_path / "old.parquet"
    pq.write_table(NESTED.select(["at"]), path, use_deprecated_int96_timestamps=True)
    add = {"path": "old.parquet", "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 0}
    log = DeltaLog(tmp_path)
    log.start_transaction().add({**add, "dataChange": True, "stats": '{"numRecords":2}'}).commit("WRITE")
    set_properties(log, NAME)
    with pytest.raises(UnsupportedOperationError, match="INT96"):
        set_properties(log, V2)


def test_deletion_vectors_have_to_be_gone(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2, 3]}), options=NAME | VECTORS)
    delete(log, "id = 2")
    for wanted in (V2, V2 | {"delta.enableDeletionVectors": "false"}):
        with pytest.raises(UnsupportedOperationError) as error:
            set_properties(log, wanted)
        assert condition(error) == "DELETION_VECTORS_SHOULD_BE_DISABLED"
    set_properties(log, {"delta.enableDeletionVectors": "false"})
    with pytest.raises(UnsupportedOperationError) as error:
        set_properties(log, V2)
    assert condition(error) == "DELETION_VECTORS_NOT_PURGED"


def test_every_command_writes_files_that_comply(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED, options={"partitionBy": "p", **V2})
    for start in (10, 20):
        rows = NESTED.set_column(0, "id", pa.array([start, start + 1], pa.int32()))
        log.write(rows)
    delete(log, "id = 10")
    log.write(NESTED.slice(0, 1), "overwrite", options={"replaceWhere": "p = 'x y' AND id < 20"})
    optimize(log)
    assert sorted(log.snapshot().scan().to_arrow()["id"].to_pylist()) == [1, 2, 11, 20, 21]
    assert all(add["tags"]["ICEBERG_COMPAT_VERSION"] == "2" for add in adds(log))
    assert complying(log)
    assert complying(log, 1)


def test_files_of_others_are_looked_at_before_they_become_part_of_the_table(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}), options=V2)
    good = adds(log)[0]
    for change, refused in (
        ({"stats": None}, "MISSING_NUM_RECORDS"),
        ({"deletionVector": {"storageType": "i", "pathOrInlineDv": "x"}}, "ADDED_DELETION_VECTOR"),
    ):
        with pytest.raises(UnsupportedOperationError) as error:
            log.start_transaction().add({**good, **change}).commit("WRITE")
        assert condition(error) == refused
    pq.write_table(
        pa.table({log.snapshot().schema.fields[0].metadata["delta.columnMapping.physicalName"]: [7]}),
        tmp_path / "other.parquet",
    )
    bare = {**good, "path": "other.parquet", "tags": None}
    assert log.start_transaction().add(bare).commit("WRITE") == 1
    wrong = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "9"})])
    name = log.snapshot().schema.fields[0].metadata["delta.columnMapping.physicalName"]
    wrong = pa.schema([wrong.field(0).with_name(name)])
    pq.write_table(pa.table([pa.array([8])], schema=wrong), tmp_path / "wrong.parquet")
    with pytest.raises(UnsupportedOperationError) as error:
        log.start_transaction().add({**bare, "path": "wrong.parquet"}).commit("WRITE")
    assert condition(error) == "FILES_NOT_ICEBERG_COMPAT"


def test_restore_brings_no_files_back_that_do_not_comply(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED.select(["id", "a"]), options=NAME)
    delete(log)
    set_properties(log, V2)
    log.write(NESTED.select(["id", "a"]))
    restore(log, version=0)  # as it was then: without compatibility
    assert "delta.enableIcebergCompatV2" not in log.snapshot().properties
    restore(log, version=3)
    assert complying(log)


def test_a_clone_has_it_with_the_files_of_its_source(tmp_path: Path) -> None:
    source = DeltaLog(tmp_path / "source")
    source.write(NESTED, options=V2)
    shallow_clone(source, DeltaLog(tmp_path / "clone"))
    clone = DeltaLog(tmp_path / "clone")
    clone.write(NESTED)
    assert complying(clone)
    other = DeltaLog(tmp_path / "other")
    other.write(NESTED, options=NAME)
    with pytest.raises(UnsupportedOperationError) as error:
        shallow_clone(other, DeltaLog(tmp_path / "third"), properties=V2)
    assert condition(error) == "FILES_NOT_ICEBERG_COMPAT"


def test_partition_columns_keep_their_names(tmp_path: Path) -> None:
    log = made(tmp_path, struct(id=LONG, p=STRING, q=STRING), partition_columns=["p"], properties=V2)
    for change in (
        lambda: rename_column(log, "p", "r"),
        lambda: create_table(log, struct(id=LONG, q=STRING), ["q"], V2, mode=REPLACE),
        lambda: log.write(
            pa.table({"id": [1], "q": ["a"]}), "overwrite", {"overwriteSchema": "true", "partitionBy": "q"}
        ),
    ):
        with pytest.raises(UnsupportedOperationError) as error:
            change()
        assert condition(error) == "REPLACE_TABLE_CHANGE_PARTITION_NAMES"
    create_table(log, struct(id=LONG, p=INTEGER), ["p"], V2, mode=REPLACE)
    create_table(log, struct(id=LONG, p=INTEGER), ["id"], {}, mode=REPLACE)  # without compatibility


def test_only_types_that_iceberg_widens_become_wider(tmp_path: Path) -> None:
    widening = {"delta.enableTypeWidening": "true"}
    log = made(tmp_path, struct(id=INTEGER, n=INTEGER), properties=V2 | widening)
    alter_column(log, "id", data_type=LONG)
    with pytest.raises(UnsupportedOperationError) as error:
        alter_column(log, "n", data_type=DOUBLE)
    assert condition(error) == "UNSUPPORTED_TYPE_WIDENING"
    set_properties(log, {"delta.enableIcebergCompatV2": "false"})
    with pytest.raises(UnsupportedOperationError):  # the feature stays, and so does the rule
        alter_column(log, "n", data_type=DOUBLE)


def test_without_the_property_the_feature_asks_for_nothing(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.feature.icebergCompatV2": "supported"})
    log.write(pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32())}))
    assert adds(log)[0].get("tags") is None


def test_it_can_be_switched_off_and_on_again(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(NESTED, options=V2)
    unset_properties(log, ["delta.enableIcebergCompatV2"])
    log.write(NESTED)
    assert adds(log)[0].get("tags") is None or adds(log)[1].get("tags") is None
    with pytest.raises(UnsupportedOperationError) as error:
        set_properties(log, V2)
    assert condition(error) == "FILES_NOT_ICEBERG_COMPAT"
    delete(log)
    set_properties(log, V2)
    log.write(NESTED)
    assert complying(log)
