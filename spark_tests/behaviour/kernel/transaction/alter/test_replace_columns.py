"""Columns replaced, or changed together: what is committed, and what is refused; outcomes are those of delta-spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException, DeltaError
from delta_ds.kernel.format.schema.column_mapping import strip
from delta_ds.kernel.format.schema.field_metadata import CHAR_VARCHAR_TYPE
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.transaction.alter import schema_change
from delta_ds.kernel.transaction.alter.change_column import change_columns
from delta_ds.kernel.transaction.alter.schema_change import replace_columns, replace_columns_of_empty
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


def limited(length: str | None, inside: str) -> StructType:
    """A column `v` with a length, or none, and a struct with one."""
    own = {} if length is None else {CHAR_VARCHAR_TYPE: length}
    held = StructField("s", struct(a="string"), metadata={CHAR_VARCHAR_TYPE: f"struct<a:{inside}>"})
    return StructType((StructField("v", STRING, metadata=own), held))


@pytest.mark.parametrize(
    ("wanted", "details"),
    [
        (limited("varchar(9)", "char(2)"), r"from varchar\(5\) to varchar\(9\)"),
        (limited("varchar(5)", "char(3)"), r"from char\(2\) to char\(3\)"),
    ],
)
def test_another_length_is_refused(tmp_path: Path, wanted: StructType, details: str) -> None:
    log = made(tmp_path, limited("varchar(5)", "char(2)"))
    with pytest.raises(DeltaError, match=details) as caught:
        replace_columns(log, wanted)
    assert (caught.value.condition, log.snapshot().version) == (REFUSED, 0)


def test_a_length_that_is_not_said_stays(tmp_path: Path) -> None:
    log = made(tmp_path, limited("varchar(5)", "char(2)"))
    replace_columns(log, struct(s=struct(a="string", b="long"), v="string"))
    told = {field.name: field.metadata[CHAR_VARCHAR_TYPE] for field in log.snapshot().schema}
    assert told == {"v": "varchar(5)", "s": "struct<a:char(2),b:bigint>"}


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


class TestOfEmpty:
    """Of a table without files, whose columns may become any others."""

    def test_columns_go_are_retyped_renamed_in_case_and_become_not_null(self, tmp_path: Path) -> None:
        log = made(tmp_path, TABLE, properties={"delta.enableTypeWidening": "true", "mine": "x"})
        wanted = StructType((StructField("ID", STRING, nullable=False), *struct(n="double").fields))
        assert replace_columns_of_empty(log, wanted) == 1
        snapshot = log.snapshot()
        assert (snapshot.version, snapshot.schema) == (1, wanted)
        assert snapshot.properties["mine"] == "x"
        assert last_commit(log)[0] == "REPLACE COLUMNS"
        log.write(pa.table({"ID": ["a"], "n": [1.5]}), mode="append")
        assert log.snapshot().scan().to_arrow().to_pylist() == [{"ID": "a", "n": 1.5}]

    def test_lengths_are_those_that_are_said(self, tmp_path: Path) -> None:
        log = made(tmp_path, limited("varchar(5)", "char(2)"))
        replace_columns_of_empty(log, limited(None, "varchar(7)"))
        assert schema_of(log) == limited(None, "varchar(7)")

    @pytest.mark.parametrize("properties", [{}, MAPPED])
    def test_a_table_with_files_keeps_its_columns(self, tmp_path: Path, properties: dict[str, str]) -> None:
        log = made(tmp_path, struct(id="long", v="long"), properties=properties)
        log.write(pa.table({"id": [1], "v": [2]}), mode="append")
        with pytest.raises(DeltaError) as caught:
            replace_columns_of_empty(log, struct(id="string"))
        assert caught.value.condition == REFUSED
        assert log.snapshot().version == 1
        log.delete()
        assert replace_columns_of_empty(log, struct(id="long")) == 3
        assert log.snapshot().scan().to_arrow().column_names == ["id"]
        assert log.snapshot(1).scan().to_arrow().to_pylist() == [{"id": 1, "v": 2}]

    def test_columns_keep_their_names_in_files_and_new_ones_get_new_ids(self, tmp_path: Path) -> None:
        log = made(tmp_path, struct(a="long", b="long"), properties=MAPPED)
        before = {field.name: field.metadata for field in log.snapshot().schema}
        replace_columns_of_empty(log, struct(a="string", c="long"))
        after = {field.name: field.metadata for field in log.snapshot().schema}
        assert after["a"] == before["a"]
        ids = [metadata["delta.columnMapping.id"] for metadata in (*before.values(), after["c"])]
        assert ids == [1, 2, 3]

    def test_the_record_of_widened_types_goes_with_the_rows(self, tmp_path: Path) -> None:
        log = made(tmp_path, struct(a="integer", b="long"), properties={"delta.enableTypeWidening": "true"})
        replace_columns(log, struct(a="long", b="long"))
        replace_columns_of_empty(log, struct(a="string"))
        assert log.snapshot().schema == struct(a="string")

    @pytest.mark.parametrize(
        ("wanted", "described", "said"),
        [
            (struct(v="long"), {"properties": {"delta.constraints.c": "id > 0"}}, "CHECK constraint"),
            (struct(id="string", v="long"), {"properties": {"delta.constraints.c": "id > 0"}}, "CHECK"),
            (struct(v="long"), {"cluster_by": ["id"]}, "`?id`?"),
            (
                StructType((StructField("id", ArrayType(LONG)),)),
                {"cluster_by": ["id"]},
                "cannot be clustered",
            ),
            (struct(v="long"), {"partition_columns": ["id"]}, "id"),
        ],
    )
    def test_what_the_table_needs_is_refused(
        self, tmp_path: Path, wanted: StructType, described: dict[str, Any], said: str
    ) -> None:
        log = made(tmp_path, struct(id="long", v="long"), **described)
        with pytest.raises(DeltaError, match=said):
            replace_columns_of_empty(log, wanted)
        assert log.snapshot().version == 0

    def test_rows_that_come_meanwhile_are_not_lost(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = made(tmp_path, struct(id="long", v="long"))
        plan = schema_change.plan_columns_of_empty

        def planned(*arguments: Any) -> Any:
            DeltaLog(str(tmp_path)).write(pa.table({"id": [1], "v": [2]}), mode="append")
            return plan(*arguments)

        monkeypatch.setattr(schema_change, "plan_columns_of_empty", planned)
        with pytest.raises(DeltaConcurrentModificationException):
            replace_columns_of_empty(log, struct(id="long"))
        assert log.snapshot().scan().to_arrow().to_pylist() == [{"id": 1, "v": 2}]
