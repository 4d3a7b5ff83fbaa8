"""Columns replaced, or changed together: what is committed, and what is refused; outcomes are those of delta-spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.schema.column_mapping import strip
from delta_ds.kernel.format.schema.types import INTEGER, LONG, ArrayType, MapType, StructField, StructType
from delta_ds.kernel.transaction.alter.change_column import change_columns
from delta_ds.kernel.transaction.alter.schema_change import replace_columns
from spark_tests.behaviour.kernel.format.schema.schemas import struct
from spark_tests.behaviour.kernel.transaction.alter.tables import made

TABLE = struct(id="long", s=struct(a="integer", b="integer"), l=ArrayType(struct(x="integer")))
MAPPED = {"delta.columnMapping.mode": "name"}
REFUSED = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"


def schema_of(log: DeltaLog) -> StructType:
    return strip(log.snapshot().schema)


def last_commit(log: DeltaLog) -> tuple[str, Any]:
    commit = log.history(1)[0]
    return commit["operation"], json.loads(commit["operationParameters"]["columns"])


def test_columns_are_put_in_another_order_described_and_added(tmp_path: Path) -> None:
    log = made(tmp_path, TABLE)
    wanted = struct(
        s=struct(b="integer", a="integer"), ID="long", l=ArrayType(struct(x="integer")), new="string"
    )
    told = StructType(
        (wanted.fields[0], replace(wanted.fields[1], metadata={"comment": "key"}), *wanted.fields[2:])
    )
    assert replace_columns(log, told) == 1
    found = schema_of(log)
    assert found.names == ["s", "id", "l", "new"]
    assert found.fields[0].type == wanted.fields[0].type
    assert found.fields[1] == StructField("id", LONG, metadata={"comment": "key"})
    operation, columns = last_commit(log)
    assert operation == "REPLACE COLUMNS"
    assert [(c["name"], c["type"]) for c in columns] == [
        ("s", "struct"), ("ID", "long"), ("l", "array"), ("new", "string"),
    ]  # fmt: skip


def test_what_a_column_has_besides_stays(tmp_path: Path) -> None:
    log = made(tmp_path, TABLE, properties=MAPPED)
    before = {field.name: field.metadata for field in log.snapshot().schema}
    replace_columns(
        log, struct(l=ArrayType(struct(x="integer")), s=struct(a="integer", b="integer"), id="long")
    )
    assert {field.name: field.metadata for field in log.snapshot().schema} == before


@pytest.mark.parametrize(
    ("wanted", "details"),
    [
        (struct(id="long", l=TABLE.fields[2].type), "column mapping"),
        (struct(id="long", s=struct(a="integer"), l=TABLE.fields[2].type), "`?s`?.`?b`? would be dropped"),
        (struct(id="long", s=struct(a="integer", c="integer"), l=TABLE.fields[2].type), "change of names"),
        (struct(id="integer", s=TABLE.fields[1].type, l=TABLE.fields[2].type), "from bigint|from long"),
        (StructType((*TABLE.fields, StructField("n", INTEGER, nullable=False))), "added as NOT NULL"),
        (StructType((StructField("id", LONG, nullable=False), *TABLE.fields[1:])), "would become NOT NULL"),
        (struct(id="long", s=TABLE.fields[1].type, l=MapType(INTEGER, LONG)), "cannot be changed"),
    ],
)
def test_what_would_lose_rows_or_change_types_is_refused(
    tmp_path: Path, wanted: StructType, details: str
) -> None:
    log = made(tmp_path, TABLE)
    with pytest.raises(DeltaError, match=details) as caught:
        replace_columns(log, wanted)
    assert caught.value.condition == REFUSED
    assert log.snapshot().version == 0


def test_columns_are_left_out_with_column_mapping_unless_something_needs_them(tmp_path: Path) -> None:
    log = made(tmp_path, TABLE, properties={**MAPPED, "delta.constraints.c": "s.a > 0"}, cluster_by=["id"])
    with pytest.raises(DeltaError, match="CHECK constraint"):
        replace_columns(log, StructType((TABLE.fields[0], TABLE.fields[2])))
    with pytest.raises(DeltaError, match="clustered by"):
        replace_columns(log, StructType(TABLE.fields[1:]))
    replace_columns(log, StructType(TABLE.fields[:2]))
    assert schema_of(log).names == ["id", "s"]


def test_types_are_widened_where_the_table_allows_it(tmp_path: Path) -> None:
    log = made(tmp_path, struct(a="integer"), properties={"delta.enableTypeWidening": "true"})
    replace_columns(log, struct(a="long"))
    (field,) = log.snapshot().schema
    assert field.type == LONG
    assert field.metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]


def test_identity_columns_are_not_replaced(tmp_path: Path) -> None:
    identity = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    }
    log = made(tmp_path, StructType((StructField("id", LONG, metadata=identity),)))
    with pytest.raises(DeltaError) as caught:
        replace_columns(log, struct(id="long"))
    assert caught.value.condition == "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"


def test_columns_changed_together_are_one_commit_in_their_order(tmp_path: Path) -> None:
    log = made(tmp_path, struct(a="integer", b="integer", c="integer"))
    assert change_columns(log, {"c": {"first": True, "comment": "new"}, "b": {"first": True}}) == 1
    assert schema_of(log).names == ["b", "c", "a"]
    assert last_commit(log) == (
        "CHANGE COLUMNS",
        [
            {
                "name": "c",
                "type": "integer",
                "nullable": True,
                "metadata": {"comment": "new"},
                "position": "FIRST",
            },
            {"name": "b", "type": "integer", "nullable": True, "metadata": {}, "position": "FIRST"},
        ],
    )


def test_nothing_is_changed_where_one_change_is_refused(tmp_path: Path) -> None:
    log = made(tmp_path, struct(a="integer", b="integer"))
    with pytest.raises(DeltaError):
        change_columns(log, {"a": {"comment": "fine"}, "nosuch": {"comment": "not"}})
    assert log.snapshot().version == 0
