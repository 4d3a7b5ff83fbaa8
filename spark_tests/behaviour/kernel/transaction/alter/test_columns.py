"""Changing the columns of a table: what is committed, and what is refused; outcomes are those of delta-spark 4.4.0."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.features import VARIANT_TYPE
from delta_ds.kernel.format.schema.char_varchar import with_settled_declarations
from delta_ds.kernel.format.schema.column_mapping import assign, strip
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.columns import (
    NewColumn,
    add_columns,
    alter_column,
    drop_columns,
    plan_added_columns,
    plan_column_drop,
    rename_column,
)
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.format.schema.schemas import SCHEMAS, struct
from spark_tests.full_form import examples

NESTED = struct(
    id="long", v="integer", s=struct(a="integer", b="integer"), l=ArrayType(struct(x="integer")),
    m=MapType(STRING, struct(k="integer")), p="integer",
)  # fmt: skip
NAME_MAPPING = {"delta.columnMapping.mode": "name"}
WIDENING = {"delta.enableTypeWidening": "true"}

Make = Callable[..., DeltaLog]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a table of a schema: properties, features beyond the legacy ones, partitioning, clustering."""

    def create(
        schema: StructType,
        properties: dict[str, str] | None = None,
        features: tuple[str, ...] = (),
        partition_columns: tuple[str, ...] = (),
        clustering: list[list[str]] | None = None,
    ) -> DeltaLog:
        configuration = dict(properties or {})
        listed = {"appendOnly", "invariants", *features}
        if configuration.get("delta.columnMapping.mode"):
            schema, highest = assign(schema, 0, keep_names=True)
            configuration["delta.columnMapping.maxColumnId"] = str(highest)
            listed.add("columnMapping")
        if configuration.get("delta.enableTypeWidening"):
            listed.add("typeWidening")
        if any(key.startswith("delta.constraints.") for key in configuration):
            listed.add("checkConstraints")
        readers = listed & {"columnMapping", "typeWidening", "timestampNtz"}
        protocol = Protocol(3, 7, frozenset(readers), frozenset(listed))
        metadata = Metadata("id-of-the-table", schema_to_json(schema), partition_columns, configuration)
        actions = [{"protocol": protocol.to_action()}, {"metaData": metadata.to_action()}]
        if clustering is not None:
            domain = {"clusteringColumns": clustering}
            body = {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}
            actions.append({"domainMetadata": body})
        log = tmp_path / "t" / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")
        return DeltaLog(tmp_path / "t")

    return create


def schema_of(log: DeltaLog) -> StructType:
    return strip(log.snapshot().schema)


def last_commit(log: DeltaLog) -> tuple[str, dict[str, Any]]:
    """The operation of the last commit and its parameters, read as JSON where they are."""
    commit = log.history(1)[0]
    parameters = {}
    for key, text in commit["operationParameters"].items():
        parameters[key] = json.loads(text) if text[:1] in "[{" else text
    return commit["operation"], parameters


def refused(log: DeltaLog, command: Callable[[], Any]) -> str:
    """The condition of a command that must fail and commit nothing."""
    before = log.snapshot().version
    with pytest.raises(DeltaError) as caught:
        command()
    assert log.snapshot().version == before
    assert "Nothing was" in str(caught.value)
    return caught.value.condition


# --- add


def test_added_columns_come_at_the_end_first_or_behind_another(make: Make) -> None:
    log = make(struct(id="long", v="integer"))
    comment = StructType((StructField("a", STRING, True, {"comment": "new"}), *struct(b="date").fields))
    assert add_columns(log, comment) == 1
    assert last_commit(log) == ("ADD COLUMNS", {"columns": [
        {"column": {"name": "a", "type": "string", "nullable": True, "metadata": {"comment": "new"}}},
        {"column": {"name": "b", "type": "date", "nullable": True, "metadata": {}}},
    ]})  # fmt: skip
    assert add_columns(log, struct(f="long", g=struct(x="long")), first=True) == 2
    assert add_columns(log, struct(h="long"), after="ID") == 3
    assert last_commit(log)[1]["columns"][0]["position"] == "AFTER ID"
    assert schema_of(log).names == ["g", "f", "id", "h", "v", "a", "b"]


def test_rows_written_before_are_null_in_an_added_column(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    log = DeltaLog(tmp_path)
    add_columns(log, struct(extra="string"), first=True)
    assert log.snapshot().scan().to_arrow().to_pydict() == {"extra": [None, None], "id": [1, 2]}


def test_fields_are_added_inside_structs_arrays_and_maps(make: Make) -> None:
    log = make(NESTED)
    add_columns(log, struct(c="date"), parent="S")
    add_columns(log, struct(y="date"), parent="l.element", first=True)
    add_columns(log, struct(z="date"), parent="m.value", after="k")
    assert last_commit(log)[1]["columns"][0]["column"]["name"] == "m.value.z"
    found = {f.name: f.type for f in schema_of(log)}
    assert found["s"] == struct(a="integer", b="integer", c="date")
    assert found["l"] == ArrayType(struct(y="date", x="integer"))
    assert found["m"] == MapType(STRING, struct(k="integer", z="date"))


@pytest.mark.parametrize(
    ("fields", "how", "condition"),
    [
        (struct(ID="long"), {}, "FIELD_ALREADY_EXISTS"),
        (struct(A="long"), {"parent": "s"}, "FIELD_ALREADY_EXISTS"),
        (struct(q="long", Q="long"), {}, "COLUMN_ALREADY_EXISTS"),
        (StructType((StructField("n", LONG, False),)), {}, "DELTA_OPERATION_NOT_ALLOWED"),
        (struct(n=StructType((StructField("a", LONG, False),))), {}, "DELTA_OPERATION_NOT_ALLOWED"),
        (StructType((StructField("d", LONG, True, {"CURRENT_DEFAULT": "1"}),)), {},
         "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"),
        (struct(h="long"), {"after": "nosuch"}, "FIELD_NOT_FOUND"),
        (struct(h="long"), {"after": "s.a"}, "PARSE_SYNTAX_ERROR"),
        (struct(h="long"), {"parent": "nosuch"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (struct(h="long"), {"parent": "v"}, "INVALID_FIELD_NAME"),
        (struct(h="long"), {"parent": "l"}, "INVALID_FIELD_NAME"),
        (StructType((StructField("x y", LONG),)), {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (struct(t=TIMESTAMP_NTZ), {}, "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
        (StructType(), {}, "DELTA_ILLEGAL_OPTION"),
        (struct(h="long"), {"first": True, "after": "id"}, "DELTA_ILLEGAL_OPTION"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_added_are_refused(
    make: Make, fields: StructType, how: dict[str, Any], condition: str
) -> None:
    log = make(NESTED)
    assert refused(log, lambda: add_columns(log, fields, **how)) == condition


def test_type_of_a_new_feature_brings_the_feature(make: Make) -> None:
    log = make(struct(id="long"))
    add_columns(log, struct(va=VARIANT))
    assert log.snapshot().protocol.supports(VARIANT_TYPE)


def test_added_columns_get_ids_that_no_column_ever_had(make: Make) -> None:
    log = make(struct(id="long", v="integer"), NAME_MAPPING)
    drop_columns(log, ["v"])
    add_columns(log, struct(v="integer", s=struct(a="long")))
    v, s = log.snapshot().schema.fields[1:]
    inner = s.type.fields[0]  # type: ignore[union-attr]
    assert [f.metadata[FIELD_ID] for f in (v, s, inner)] == [3, 4, 5]
    assert all(f.metadata[PHYSICAL_NAME].startswith("col-") for f in (v, s, inner))
    assert log.snapshot().properties["delta.columnMapping.maxColumnId"] == "5"


def test_reserved_names_of_the_change_feed_are_refused(make: Make) -> None:
    log = make(struct(id="long"), {"delta.enableChangeDataFeed": "true"}, ("changeDataFeed",))
    fields = struct(_change_type="string")
    assert refused(log, lambda: add_columns(log, fields)) == "RESERVED_CDC_COLUMNS_ON_WRITE"


# --- rename


def test_renamed_columns_keep_their_data_and_follow_into_the_table_settings(make: Make) -> None:
    properties = {**NAME_MAPPING, "delta.dataSkippingStatsColumns": "id,s.a,v"}
    log = make(NESTED, properties, partition_columns=("p",))
    physical = log.snapshot().schema.fields[1].metadata[PHYSICAL_NAME]
    rename_column(log, "V", "w x")
    assert last_commit(log) == ("RENAME COLUMN", {"oldColumnPath": "v", "newColumnPath": "w x"})
    assert log.snapshot().schema.fields[1].metadata[PHYSICAL_NAME] == physical
    rename_column(log, "s.A", "a3")
    rename_column(log, "l.element.x", "y")
    rename_column(log, "m.value.k", "z")
    rename_column(log, "p", "part")
    rename_column(log, "s", "t.u")
    snapshot = log.snapshot()
    assert strip(snapshot.schema) == StructType((
        *struct(id="long").fields, StructField("w x", INTEGER), StructField("t.u", struct(a3="integer", b="integer")),
        *struct(l=ArrayType(struct(y="integer")), m=MapType(STRING, struct(z="integer")), part="integer").fields,
    ))  # fmt: skip
    assert snapshot.partition_columns == ["part"]
    assert snapshot.properties["delta.dataSkippingStatsColumns"] == "id,`t.u`.a3,`w x`"


@pytest.mark.parametrize(
    ("old", "new", "condition"),
    [
        ("v", "ID", "FIELD_ALREADY_EXISTS"),
        ("v", "V", "FIELD_ALREADY_EXISTS"),
        ("s.a", "B", "FIELD_ALREADY_EXISTS"),
        ("nosuch", "q", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("s.nosuch", "q", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("v.x", "q", "INVALID_FIELD_NAME"),
        ("l.x", "q", "INVALID_FIELD_NAME"),
        ("l.element", "q", "INVALID_FIELD_NAME"),
        ("m.key", "q", "INVALID_FIELD_NAME"),
    ],
)
def test_names_that_are_taken_or_missing_are_refused(make: Make, old: str, new: str, condition: str) -> None:
    log = make(NESTED, NAME_MAPPING)
    assert refused(log, lambda: rename_column(log, old, new)) == condition


def test_columns_in_expressions_cannot_be_renamed_or_dropped(make: Make) -> None:
    generated = StructField("g", INTEGER, True, {"delta.generationExpression": "v + 1"})
    properties = {**NAME_MAPPING, "delta.constraints.k": "s . b > 1"}
    log = make(StructType((*NESTED.fields, generated)), properties, ("generatedColumns",))
    for command in (lambda n: rename_column(log, n, "q"), lambda n: drop_columns(log, [n])):
        for name in ("s", "s.b"):
            condition = refused(log, lambda n=name, c=command: c(n))
            assert condition == "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
        assert refused(log, lambda c=command: c("v")) == "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
    rename_column(log, "s.a", "aa")
    rename_column(log, "g", "gg")
    drop_columns(log, ["gg"])
    drop_columns(log, ["v"])


def test_without_column_mapping_nothing_is_renamed_or_dropped(make: Make) -> None:
    log = make(NESTED)
    assert refused(log, lambda: rename_column(log, "v", "w")) == "DELTA_UNSUPPORTED_RENAME_COLUMN"
    assert refused(log, lambda: drop_columns(log, ["v"])) == "DELTA_UNSUPPORTED_DROP_COLUMN"


# --- drop


def test_dropped_columns_leave_the_schema_and_the_statistics_columns(make: Make) -> None:
    log = make(NESTED, {**NAME_MAPPING, "delta.dataSkippingStatsColumns": "id,s.a,v"})
    drop_columns(log, ["S.a", "v"])
    assert last_commit(log) == ("DROP COLUMNS", {"columns": ["s.a", "v"]})
    assert log.snapshot().properties["delta.dataSkippingStatsColumns"] == "id"
    drop_columns(log, ["s", "id"])
    assert log.snapshot().properties["delta.dataSkippingStatsColumns"] == ""
    assert schema_of(log).names == ["l", "m", "p"]


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        (["nosuch"], "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (["v", "nosuch"], "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (["s", "s.b"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["v", "V"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["s.a", "s.b"], "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
        (["l.element.x"], "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
        (["l.element"], "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE"),
        (["m.value"], "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE"),
        (["P"], "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
        ([], "DELTA_ILLEGAL_OPTION"),
        ("id", "DELTA_ILLEGAL_OPTION"),
    ],
    ids=str,
)
def test_columns_that_cannot_be_dropped_are_refused(make: Make, names: Any, condition: str) -> None:
    log = make(NESTED, NAME_MAPPING, partition_columns=("p",))
    assert refused(log, lambda: drop_columns(log, names)) == condition


def test_a_table_may_drop_all_columns_but_those_that_it_is_partitioned_by(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    options = {"partitionBy": "p", "delta.columnMapping.mode": "name"}
    log.write(pa.table({"id": [1, 2, 3], "p": ["a", "b", "b"]}), options=options)
    drop_columns(log, ["id"])
    rows = [{"p": "a"}, {"p": "b"}, {"p": "b"}]
    assert sorted(log.snapshot().scan().to_arrow().to_pylist(), key=str) == rows
    # Whatever writes no rows goes on.
    assert set_properties(log, {"team": "me"}) == 2
    assert log.checkpoint() == 2
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    assert DeltaLog(tmp_path).snapshot().scan("p = 'b'").count() == 2
    assert log.delete("p = 'a'").num_removed_files == 1
    # Files need a column.
    files = sorted(tmp_path.rglob("*.parquet"))
    assert refused(log, lambda: log.write(pa.table({"p": ["c"]}))) == "DELTA_NON_PARTITION_COLUMN_ABSENT"
    assert refused(log, lambda: log.update({"p": "'c'"})) == "DELTA_NON_PARTITION_COLUMN_ABSENT"
    assert sorted(tmp_path.rglob("*.parquet")) == files
    assert refused(log, lambda: drop_columns(log, ["p"])) == "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"
    log.write(pa.table({"p": ["c"], "more": [1]}), options={"mergeSchema": "true"})
    found = sorted(log.snapshot().scan().to_arrow().to_pylist(), key=str)
    assert found == [{"p": "b", "more": None}, {"p": "b", "more": None}, {"p": "c", "more": 1}]


@pytest.mark.parametrize("name", ["v", "s.a", "s"])
def test_clustering_columns_and_what_holds_them_stay(make: Make, name: str) -> None:
    features = ("clustering", "domainMetadata")
    log = make(NESTED, NAME_MAPPING, features, clustering=[["v"], ["s", "a"]])
    assert refused(log, lambda: drop_columns(log, [name])) == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    drop_columns(log, ["s.b"])


def _with_ids(metadata: Metadata) -> Metadata:
    schema, _ = assign(metadata.schema, 100, keep_names=False)
    return replace(metadata, schema_string=schema_to_json(schema))


@given(SCHEMAS, st.data())
@settings(max_examples=examples(30))
def test_added_and_dropped_again_leaves_the_schema(schema: StructType, data: st.DataObject) -> None:
    mapped, highest = assign(schema, 0, keep_names=False)
    configuration = {**NAME_MAPPING, "delta.columnMapping.maxColumnId": str(highest)}
    protocol = Protocol(2, 5)
    state = TableState("T", 0, protocol, Metadata("x", schema_to_json(mapped), (), configuration), {})
    after = data.draw(st.sampled_from([None, *(f"`{name}`" for name in mapped.names)]))
    first = after is None and data.draw(st.booleans())
    more = plan_added_columns(
        state, [NewColumn(field, None, first, after) for field in struct(new=struct(z="date"))]
    )
    wider = TableState("T", 1, protocol, _with_ids(more.metadata), {})
    assert len(wider.schema) == len(mapped) + 1
    assert plan_column_drop(wider, ["NEW"]).metadata.schema == mapped


# --- change


def test_types_are_widened_with_a_note(make: Make) -> None:
    table = struct(b="byte", s=struct(l=ArrayType(SHORT)), m=MapType(INTEGER, LONG), d=DecimalType(10, 2))
    log = make(table, WIDENING)
    assert alter_column(log, "B", data_type=INTEGER) == 1
    column = {"name": "b", "type": "integer", "nullable": True, "metadata": {}}
    assert last_commit(log) == ("CHANGE COLUMN", {"column": column})
    alter_column(log, "s.l.element", data_type=LONG)
    alter_column(log, "m.key", data_type=LONG)
    assert last_commit(log)[1]["column"] == {
        "name": "m.key",
        "type": "long",
        "nullable": False,
        "metadata": {},
    }
    alter_column(log, "d", data_type=DecimalType(12, 3))
    fields = schema_of(log).fields
    assert [str(f.type) for f in fields] == [
        "integer",
        "struct<l:array<long>>",
        "map<long,long>",
        "decimal(12,3)",
    ]
    assert fields[0].metadata["delta.typeChanges"] == [{"fromType": "byte", "toType": "integer"}]
    assert fields[2].metadata["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long", "fieldPath": "key"}
    ]


def test_type_the_column_has_already_is_no_commit(make: Make) -> None:
    log = make(NESTED)
    assert alter_column(log, "v", data_type=INTEGER) is None
    assert alter_column(log, "s", data_type=struct(a="integer", b="integer")) is None
    assert log.snapshot().version == 0


REFUSED = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
NARROWER = "NOT_SUPPORTED_CHANGE_COLUMN"


@pytest.mark.parametrize(
    ("name", "data_type", "widening", "condition"),
    [
        ("v", LONG, False, REFUSED),
        ("v", STRING, True, REFUSED),
        ("id", INTEGER, True, NARROWER),
        ("id", DecimalType(19, 0), True, NARROWER),
        ("v", TIMESTAMP_NTZ, True, NARROWER),
        ("s", LONG, True, NARROWER),
        ("s", struct(a="integer"), True, "CANNOT_UPDATE_FIELD.STRUCT_TYPE"),
        ("l", ArrayType(LONG), True, "CANNOT_UPDATE_FIELD.ARRAY_TYPE"),
        ("m", MapType(STRING, LONG), True, "CANNOT_UPDATE_FIELD.MAP_TYPE"),
        ("nosuch", LONG, True, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ],
)
def test_changes_of_type_that_are_no_widening_are_refused(
    make: Make, name: str, data_type: DataType, widening: bool, condition: str
) -> None:
    log = make(NESTED, WIDENING if widening else {})
    assert refused(log, lambda: alter_column(log, name, data_type=data_type)) == condition


def test_date_becomes_a_timestamp_only_where_the_feature_is_there(make: Make) -> None:
    log = make(struct(d="date"), WIDENING)
    condition = refused(log, lambda: alter_column(log, "d", data_type=TIMESTAMP_NTZ))
    assert condition == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"


def test_types_in_expressions_stay(make: Make) -> None:
    generated = StructField("g", INTEGER, True, {"delta.generationExpression": "v + 1"})
    table = StructType((*struct(v="integer", c="integer").fields, generated))
    log = make(table, {**WIDENING, "delta.constraints.k": "c > 0"}, ("generatedColumns",))
    conditions = {n: refused(log, lambda n=n: alter_column(log, n, data_type=LONG)) for n in ("v", "c", "g")}
    assert conditions == {
        "v": "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
        "c": "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        "g": "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
    }


def test_limits_of_strings_are_raised_or_given_up(make: Make) -> None:
    limited = StructField("v", STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"})
    log = make(StructType((limited, StructField("s", STRING))))
    alter_column(log, "v", data_type=STRING, char_varchar="varchar(10)")
    assert schema_of(log).fields[0].metadata == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"}
    assert (
        refused(log, lambda: alter_column(log, "v", data_type=STRING, char_varchar="varchar(3)")) == NARROWER
    )
    assert (
        refused(log, lambda: alter_column(log, "s", data_type=STRING, char_varchar="varchar(3)")) == NARROWER
    )
    alter_column(log, "v", data_type=STRING)
    assert schema_of(log).fields[0].metadata == {}


def test_not_null_is_dropped_and_never_set(make: Make) -> None:
    inner = StructType((StructField("a", LONG, False), StructField("b", LONG)))
    log = make(
        StructType(
            (StructField("id", LONG, False), StructField("s", inner, False), *struct(l=ArrayType(LONG)))
        )
    )
    alter_column(log, "id", nullable=True)
    alter_column(log, "s.a", nullable=True)
    alter_column(log, "s", nullable=True)
    assert schema_of(log) == struct(id="long", s=struct(a="long", b="long"), l=ArrayType(LONG))
    for name in ("id", "s.b", "l.element"):
        assert refused(log, lambda n=name: alter_column(log, n, nullable=False)) == REFUSED


def test_comments_go_to_columns_and_fields_only(make: Make) -> None:
    log = make(NESTED)
    alter_column(log, "v", comment="the value")
    alter_column(log, "s.a", comment="")
    fields = schema_of(log).fields
    assert fields[1].metadata == {"comment": "the value"}
    assert fields[2].type.fields[0].metadata == {"comment": ""}  # type: ignore[union-attr]
    condition = refused(log, lambda: alter_column(log, "l.element", comment="x"))
    assert condition == "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"


def test_defaults_are_set_changed_and_taken_away(make: Make) -> None:
    log = make(struct(id="long", d="integer", t="string"), features=("allowColumnDefaults",))
    alter_column(log, "d", default="7")
    alter_column(log, "D", default="'12'")
    alter_column(log, "t", default="concat('d', 'x')")
    assert [f.metadata.get("CURRENT_DEFAULT") for f in schema_of(log)] == [None, "'12'", "concat('d', 'x')"]
    alter_column(log, "d", default=None)
    assert "CURRENT_DEFAULT" not in schema_of(log).fields[1].metadata
    assert refused(log, lambda: alter_column(log, "d", default="'abc'")) == "INVALID_DEFAULT_VALUE.DATA_TYPE"
    assert (
        refused(log, lambda: alter_column(log, "d", default="id + 1")) == "INVALID_DEFAULT_VALUE.NOT_CONSTANT"
    )


def test_default_needs_its_feature(make: Make) -> None:
    log = make(struct(d="integer"))
    condition = refused(log, lambda: alter_column(log, "d", default="7"))
    assert condition == "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"


def test_columns_move_within_their_level(make: Make) -> None:
    log = make(NESTED)
    alter_column(log, "p", first=True)
    alter_column(log, "id", after="s")
    alter_column(log, "s.a", after="B")
    assert last_commit(log)[1]["position"] == "AFTER B"
    alter_column(log, "v", after="v")
    assert schema_of(log).names == ["p", "v", "s", "id", "l", "m"]
    assert schema_of(log).fields[2].type == struct(b="integer", a="integer")
    assert refused(log, lambda: alter_column(log, "v", after="nosuch")) == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert refused(log, lambda: alter_column(log, "m.key", first=True)) == "INVALID_FIELD_NAME"


def test_several_changes_are_several_commits_and_all_are_checked_first(make: Make) -> None:
    log = make(struct(v="integer", w="integer"), WIDENING)
    assert alter_column(log, "v", data_type=LONG, comment="c", after="w") == 3
    assert [h["operation"] for h in log.history()][:3] == ["CHANGE COLUMN"] * 3
    assert schema_of(log).names == ["w", "v"]
    assert refused(log, lambda: alter_column(log, "w", comment="c", nullable=False)) == REFUSED
    assert refused(log, lambda: alter_column(log, "w")) == "DELTA_ILLEGAL_OPTION"


def test_identity_columns_change_their_comment_name_and_place_only(make: Make) -> None:
    metadata = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": True,
    }
    identity = StructField("i", LONG, True, metadata)
    log = make(
        StructType((*struct(v="integer").fields, identity)),
        {**WIDENING, **NAME_MAPPING},
        ("identityColumns",),
    )
    for change in ({"data_type": DecimalType(20, 0)}, {"default": "5"}, {"nullable": True}):
        condition = refused(log, lambda c=change: alter_column(log, "i", **c))
        assert condition == "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"
    alter_column(log, "i", comment="x", first=True)
    rename_column(log, "i", "ii")
    assert schema_of(log).fields[0] == StructField("ii", LONG, True, {**metadata, "comment": "x"})


def declared(**fields: str) -> StructType:
    """A column `s` of strings with these declared types, as Spark describes it: all of them at the column."""
    inside = ",".join(f"{name}:{kind}" for name, kind in fields.items())
    text = StructType(tuple(StructField(name, STRING) for name in fields))
    return StructType((StructField("s", text, True, {"__CHAR_VARCHAR_TYPE_STRING": f"struct<{inside}>"}),))


def to_s(log: DeltaLog, field: StructField, first: bool = False) -> int:
    return add_columns(log, StructType((field,)), first, parent="s")


LIMITED_CHANGES: dict[str, tuple[Callable[[DeltaLog], object], str | None]] = {
    "added": (lambda log: to_s(log, StructField("n", LONG)),
              "struct<a:varchar(2),b:string,c:char(3),n:bigint>"),
    "added in front": (lambda log: to_s(log, StructField("n", LONG), first=True),
                       "struct<n:bigint,a:varchar(2),b:string,c:char(3)>"),
    "added with a limit": (
        lambda log: to_s(log, StructField("n", STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"})),
        "struct<a:varchar(2),b:string,c:char(3),n:char(4)>"),
    "moved": (lambda log: alter_column(log, "s.b", first=True), "struct<b:string,a:varchar(2),c:char(3)>"),
    "renamed": (lambda log: rename_column(log, "s.a", "z"), "struct<z:varchar(2),b:string,c:char(3)>"),
    "dropped": (lambda log: drop_columns(log, ["s.b"]), "struct<a:varchar(2),c:char(3)>"),
    "dropped with all limits": (lambda log: drop_columns(log, ["s.a", "s.c"]), None),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITED_CHANGES)
def test_declared_lengths_follow_the_fields_of_a_struct(make: Make, name: str) -> None:
    change, expected = LIMITED_CHANGES[name]
    log = make(declared(a="varchar(2)", b="string", c="char(3)"), NAME_MAPPING)
    change(log)
    assert schema_of(log).fields[0].metadata.get("__CHAR_VARCHAR_TYPE_STRING") == expected


@pytest.mark.parametrize(
    ("column", "new", "expected"),
    [
        ("s.a", None, "struct<a:string,c:char(3),m:map<char(2),varchar(4)>,l:array<varchar(5)>>"),
        ("s.A", "varchar(8)", "struct<a:varchar(8),c:char(3),m:map<char(2),varchar(4)>,l:array<varchar(5)>>"),
        (
            "s.c",
            "varchar(3)",
            "struct<a:varchar(2),c:varchar(3),m:map<char(2),varchar(4)>,l:array<varchar(5)>>",
        ),
        ("s.m.key", None, "struct<a:varchar(2),c:char(3),m:map<string,varchar(4)>,l:array<varchar(5)>>"),
        (
            "s.m.value",
            "varchar(6)",
            "struct<a:varchar(2),c:char(3),m:map<char(2),varchar(6)>,l:array<varchar(5)>>",
        ),
        ("s.l.element", None, "struct<a:varchar(2),c:char(3),m:map<char(2),varchar(4)>,l:array<string>>"),
        ("s.a", "varchar(1)", None),
        ("s.l.element", "char(5)", None),
        ("s.m.key", "char(1)", None),
    ],
)
def test_lengths_inside_a_column_are_raised_or_given_up(
    make: Make, column: str, new: str | None, expected: str | None
) -> None:
    text = "struct<a:varchar(2),c:char(3),m:map<char(2),varchar(4)>,l:array<varchar(5)>>"
    inside = struct(a="string", c="string", m=MapType(STRING, STRING), l=ArrayType(STRING))
    log = make(StructType((StructField("s", inside, True, {"__CHAR_VARCHAR_TYPE_STRING": text}),)))
    change = functools.partial(alter_column, log, column, data_type=STRING, char_varchar=new)
    if expected is None:
        assert refused(log, change) == NARROWER
        return
    change()
    assert schema_of(log) == StructType(
        (StructField("s", inside, True, {"__CHAR_VARCHAR_TYPE_STRING": expected}),)
    )


def test_rows_are_held_to_the_lengths_of_their_fields_after_a_change(make: Make) -> None:
    log = make(declared(a="varchar(2)", b="string"))
    alter_column(log, "s.b", first=True)
    to_s(log, StructField("n", LONG))
    log.write(pa.table({"s": [{"b": "as long as may be", "a": "ab", "n": 1}]}))
    with pytest.raises(DeltaError, match=r'Value "abc" exceeds char/varchar type length limitation'):
        log.write(pa.table({"s": [{"b": "b", "a": "abc", "n": 1}]}))
    log.write(pa.table({"s": [{"b": "b", "a": "a", "n": 1, "new": 5}]}), options={"mergeSchema": "true"})
    with pytest.raises(DeltaError, match=r'Value "abc" exceeds char/varchar type length limitation'):
        log.write(pa.table({"s": [{"b": "b", "a": "abc", "n": 1, "new": 5}]}))


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"), st.sampled_from(["varchar(2)", "char(3)", "string"]), min_size=1
    ),
    st.data(),
)
@settings(max_examples=examples(60))
def test_moving_fields_keeps_the_length_of_each(fields: dict[str, str], data: st.DataObject) -> None:
    before = declared(**fields)
    order = data.draw(st.permutations(list(fields)))
    column = before.fields[0]
    moved = StructType((replace(column, type=StructType(tuple(StructField(n, STRING) for n in order))),))
    settled = with_settled_declarations(moved, before)
    limited = any(kind != "string" for kind in fields.values())
    assert settled == (declared(**{n: fields[n] for n in order}) if limited else
                       StructType((replace(moved.fields[0], metadata={}),)))  # fmt: skip
