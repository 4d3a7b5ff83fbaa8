"""Columns of user-defined types are stored, read, changed and rewritten whole, as their stored type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.schema import column_mapping
from delta_ds.kernel.format.schema.char_varchar import catalog_name
from delta_ds.kernel.format.schema.types import (
    DOUBLE,
    INTEGER,
    ArrayType,
    StructField,
    StructType,
    UserDefinedType,
)
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.testing import TableBuilder

# Without "b" a pair still is one: a pair whose parts are null is not a null pair.
_STORED = StructType((StructField("a", DOUBLE), StructField("b", ArrayType(DOUBLE, False))))
_PAIR = UserDefinedType("x.PairUDT", "org.x.PairUDT", None, _STORED)
_SCHEMA = StructType(
    (StructField("id", INTEGER), StructField("pair", _PAIR), StructField("pairs", ArrayType(_PAIR)))
)
_ARROW = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.float64()))])
_PAIRS: list[dict[str, Any] | None] = [{"a": 1.0, "b": [2.0]}, None, {"a": None, "b": None}]


def _rows(ids: range) -> pa.Table:
    pairs = [_PAIRS[n % 3] for n in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "pair": pa.array(pairs, _ARROW),
            "pairs": pa.array([[pair] for pair in pairs], pa.list_(_ARROW)),
        }
    )


def _found(log: DeltaLog) -> dict[int, tuple[Any, Any]]:
    rows = log.snapshot().scan().to_arrow().to_pylist()
    return {row["id"]: (row["pair"], row["pairs"]) for row in rows}


def _expected(ids: range | list[int]) -> dict[int, tuple[Any, Any]]:
    return {n: (_PAIRS[n % 3], [_PAIRS[n % 3]]) for n in ids}


@pytest.fixture(params=["none", "name"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> DeltaLog:
    builder = TableBuilder(tmp_path / "t")
    if request.param == "none":
        builder.create(_SCHEMA)
    else:
        schema, highest = column_mapping.assign(_SCHEMA, 0, keep_names=True)
        properties = {
            "delta.columnMapping.mode": request.param,
            "delta.columnMapping.maxColumnId": str(highest),
        }
        builder.create(
            schema,
            properties=properties,
            reader_features=["columnMapping"],
            writer_features=["columnMapping"],
        )
    builder.append(_rows(range(6)))
    log = DeltaLog(str(builder.path))
    log.update({"id": "id"})  # files of this package's own
    return log


def test_values_are_read_as_they_were_written(log: DeltaLog) -> None:
    assert _found(log) == _expected(range(6))
    assert log.snapshot().schema.fields[1].type == _PAIR


def test_nulls_are_counted_for_the_whole_value(log: DeltaLog) -> None:
    (text,) = log.snapshot().files().column("stats").to_pylist()
    statistics = json.loads(text)
    assert sorted(statistics["nullCount"].values()) == [0, 0, 2]
    assert len(statistics["minValues"]) == 1


@pytest.mark.parametrize(("predicate", "ids"), [("pair is null", [1, 4]), ("pair is not null", [0, 2, 3, 5])])
def test_a_condition_on_whole_values_skips_no_row(
    log: DeltaLog, tmp_path: Path, predicate: str, ids: list[int]
) -> None:
    log.checkpoint()
    found = DeltaLog(str(tmp_path / "t")).snapshot().scan(predicate).to_arrow().column("id").to_pylist()
    assert sorted(found) == ids


def test_commands_keep_the_values_of_the_rows_that_they_rewrite(log: DeltaLog) -> None:
    log.delete("id = 0")
    log.update({"id": "id + 6"}, predicate="id = 1")
    merger = log.merge(pa.table({"id": pa.array([2, 3], pa.int32())}), "target.id = source.id")
    merger.when_matched_delete("source.id = 2").when_not_matched_insert({"id": "source.id"}).execute()
    log.optimize()
    assert _found(log) == {**_expected([3, 4, 5]), 7: (_PAIRS[1], [_PAIRS[1]])}


def test_names_inside_a_value_are_not_mapped(log: DeltaLog, tmp_path: Path) -> None:
    (path,) = log.snapshot().files().column("path").to_pylist()
    pair = pq.read_schema(tmp_path / "t" / path).field(1).type
    assert [field.name for field in pair] == ["a", "b"]


def test_a_column_of_a_class_takes_no_values_without_it(log: DeltaLog) -> None:
    with pytest.raises(SchemaError) as caught:
        log.write(_rows(range(1)))
    assert caught.value.condition == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_a_column_of_a_class_cannot_be_a_partition_column(tmp_path: Path) -> None:
    schema = StructType(
        (StructField("id", INTEGER), StructField("p", UserDefinedType("x.Y", None, None, DOUBLE)))
    )
    with pytest.raises(SchemaError) as caught:
        create_table(DeltaLog(str(tmp_path / "t")), schema, ["p"])
    assert caught.value.condition == "DELTA_INVALID_PARTITION_COLUMN_TYPE"


def test_a_declared_type_around_a_class_names_what_it_stores() -> None:
    assert (
        catalog_name(StructType((StructField("v", _PAIR),))) == "struct<v:struct<a:double,b:array<double>>>"
    )


def test_only_a_variant_is_counted_by_its_metadata(tmp_path: Path) -> None:
    stored = {
        "type": "struct",
        "fields": [
            {
                "name": "metadata",
                "type": {"type": "array", "elementType": "double", "containsNull": True},
                "nullable": False,
                "metadata": {},
            },
            {"name": "x", "type": "double", "nullable": True, "metadata": {}},
        ],
    }
    kind = {"type": "udt", "pyClass": "x.Y", "sqlType": stored}
    text = json.dumps(
        {"type": "struct", "fields": [{"name": "m", "type": kind, "nullable": True, "metadata": {}}]}
    )
    arrow = pa.struct([pa.field("metadata", pa.list_(pa.float64()), False), ("x", pa.float64())])
    rows = pa.table({"m": pa.array([{"metadata": [], "x": 1.0}] * 3, arrow)})
    folder = tmp_path / "t"
    folder.mkdir()
    metadata = {"org.apache.spark.sql.parquet.row.metadata": text}
    pq.write_table(rows.replace_schema_metadata(metadata), folder / "a.parquet")
    DeltaLog(str(folder)).convert()
    assert DeltaLog(str(folder)).snapshot().scan("m is not null").count() == 3
