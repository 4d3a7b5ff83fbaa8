"""New tables, and tables in the place of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, NotADeltaTableError, TableExistsError, UnsupportedOperationError
from delta_ds.kernel.format.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.transaction.alter.create import create_table, new_table
from delta_ds.records import replace
from spark_tests.behaviour.kernel.transaction.alter.tables import (
    NESTED,
    PLAIN,
    action,
    actions,
    made,
    protocol,
    with_rows,
)

OTHER = StructType((StructField("x", STRING), StructField("y", INTEGER, False, {"comment": "about y"})))


def test_the_first_commit_holds_what_the_history_of_delta_spark_shows(tmp_path: Path) -> None:
    properties = {"a.b": "c", "Delta.AppendOnly": "true"}
    log = made(tmp_path, NESTED, partition_columns=["P"], description="about it", properties=properties)
    assert {name for a in actions(log, 0) for name in a} == {"commitInfo", "protocol", "metaData"}
    info = action(log, 0, "commitInfo")
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"] == {
        "partitionBy": '["p"]', "clusterBy": "[]", "description": "about it", "isManaged": "false",
        "properties": '{"a.b":"c","delta.appendOnly":"true"}',
    }  # fmt: skip
    snapshot = log.snapshot()
    assert (snapshot.partition_columns, snapshot.metadata.description) == (["p"], "about it")
    assert snapshot.schema == NESTED
    assert snapshot.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("mode", "operation"),
    [
        ("create", "CREATE TABLE"),
        ("create_if_not_exists", "CREATE TABLE"),
        ("create_or_replace", "CREATE OR REPLACE TABLE"),
    ],
)
def test_where_there_is_no_table_one_is_made(tmp_path: Path, mode: str, operation: str) -> None:
    log = DeltaLog(tmp_path)
    assert create_table(log, PLAIN, mode=mode) == 0
    assert action(log, 0, "commitInfo")["operation"] == operation


def test_nothing_is_replaced_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError) as caught:
        create_table(DeltaLog(tmp_path / "t"), PLAIN, mode="replace")
    assert caught.value.condition == "DELTA_CANNOT_REPLACE_MISSING_TABLE"
    assert not (tmp_path / "t").exists()


def test_a_table_is_not_created_twice(tmp_path: Path) -> None:
    log = made(tmp_path)
    with pytest.raises(TableExistsError) as caught:
        create_table(log, OTHER)
    assert caught.value.condition == "DELTA_TABLE_ALREADY_EXISTS"
    assert create_table(log, OTHER, mode="create_if_not_exists") is None
    assert (log.snapshot().version, log.snapshot().schema) == (0, PLAIN)


def test_a_replaced_table_keeps_its_versions_and_nothing_else(tmp_path: Path) -> None:
    log = with_rows(tmp_path, {"a": "b"}, files=2)
    before = log.snapshot()
    version = create_table(log, OTHER, ["y"], {"c": "d"}, mode="replace", description="new")
    after = log.open_snapshot()
    assert version == after.version == before.version + 1
    assert after.metadata.id != before.metadata.id, "streams tell the two tables apart"
    assert (after.schema, after.partition_columns) == (OTHER, ["y"])
    assert (after.properties, after.metadata.description) == ({"c": "d"}, "new")
    assert after.live_files().num_rows == 0
    assert log.snapshot(before.version).scan().to_arrow().num_rows == 4
    assert action(log, version, "commitInfo")["operation"] == "REPLACE TABLE"
    removes = [a["remove"] for a in actions(log, version) if "remove" in a]
    assert len(removes) == 2
    assert all(r["dataChange"] for r in removes)


def test_create_or_replace_leaves_the_same_table_alone_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = with_rows(tmp_path)
    assert create_table(log, PLAIN, mode="create_or_replace") is None
    assert log.snapshot().scan().to_arrow().num_rows == 2
    assert "create_or_replace_kept" in caplog.text


COMMENTED = StructType(tuple(replace(field, metadata={"comment": "other"}) for field in PLAIN.fields))


@pytest.mark.parametrize("mode", ["create_or_replace", "adopt"])
@pytest.mark.parametrize(
    ("schema", "layout", "condition"),
    [
        (OTHER, {}, "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        (COMMENTED, {}, "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        (PLAIN, {"partition_columns": ["v"]}, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING"),
        (PLAIN, {"cluster_by": ["v"]}, "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"),
    ],
)
def test_create_or_replace_does_not_put_another_table_in_place_of_one(
    tmp_path: Path, schema: StructType, layout: dict[str, list[str]], condition: str, mode: str
) -> None:
    log = with_rows(tmp_path)
    with pytest.raises(TableExistsError, match="Use replace") as caught:
        create_table(log, schema, **layout, mode=mode)
    assert caught.value.condition == condition
    assert log.snapshot().version == 1


def test_a_clustered_table_is_the_same_with_its_clustering_columns_only(tmp_path: Path) -> None:
    log = made(tmp_path, PLAIN, cluster_by=["v"])
    assert create_table(log, PLAIN, mode="adopt", cluster_by=["V"]) is None
    with pytest.raises(TableExistsError) as caught:
        create_table(log, PLAIN, mode="adopt")
    assert caught.value.condition == "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"


def test_a_replaced_table_supports_what_it_did_before(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    create_table(log, OTHER, properties={"delta.enableChangeDataFeed": "true"}, mode="replace")
    assert {"deletionVectors", "changeDataFeed"} <= log.snapshot().protocol.supported
    kept = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    assert log.snapshot().properties == kept
    create_table(log, OTHER, properties={"delta.enableDeletionVectors": "false"}, mode="replace")
    assert log.snapshot().properties == {"delta.enableDeletionVectors": "false"}


def test_clustering_ends_when_a_table_without_it_takes_its_place(tmp_path: Path) -> None:
    log = made(tmp_path, cluster_by=["id"])
    create_table(log, OTHER, mode="replace")
    assert "delta.clustering" not in log.snapshot().domains
    create_table(log, OTHER, mode="replace", cluster_by=["x"])
    assert json.loads(log.snapshot().domains["delta.clustering"])["clusteringColumns"] == [["x"]]


def test_a_clustered_table_is_not_replaced_by_one_with_partitions(tmp_path: Path) -> None:
    log = made(tmp_path, cluster_by=["id"])
    create_table(log, OTHER, mode="replace")  # its protocol still has clustering
    for columns in (["x"], ["X"]):
        with pytest.raises(UnsupportedOperationError, match="partitions") as caught:
            create_table(log, OTHER, columns, mode="replace")
        assert caught.value.condition == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
    assert log.snapshot().version == 1


def mapping(schema: StructType) -> dict[str, tuple[Any, Any]]:
    return {
        f.name: (f.metadata.get("delta.columnMapping.id"), f.metadata.get("delta.columnMapping.physicalName"))
        for f in schema
    }


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_mapped_table_has_ids_and_names_at_every_level(tmp_path: Path, mode: str) -> None:
    inner = StructType((StructField("x", INTEGER),))
    schema = StructType(
        (StructField("a b", MapType(STRING, ArrayType(inner))), StructField("c", StructType(inner.fields)))
    )
    log = made(tmp_path, schema, properties={"delta.columnMapping.mode": mode})
    snapshot = log.snapshot()
    text = snapshot.metadata.schema_string
    assert [text.count(f'"delta.columnMapping.id":{n}') for n in range(1, 6)] == [1, 1, 1, 1, 0]
    assert snapshot.properties["delta.columnMapping.maxColumnId"] == "4"
    assert all(name.startswith("col-") for _, name in mapping(snapshot.schema).values())
    assert protocol(log)[:2] == (2, 7)


def test_a_replaced_mapped_table_never_uses_an_id_twice(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.columnMapping.mode": "name"})
    before = mapping(log.snapshot().schema)
    create_table(log, PLAIN, properties={"delta.columnMapping.mode": "name"}, mode="replace")
    after = mapping(log.snapshot().schema)
    assert {number for number, _ in after.values()} == {3, 4}
    assert not {name for _, name in before.values()} & {name for _, name in after.values()}
    assert log.snapshot().properties["delta.columnMapping.maxColumnId"] == "4"


def test_ids_of_another_table_in_the_schema_are_not_taken_over() -> None:
    foreign = StructField(
        "a", INTEGER, True, {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "p"}
    )
    plain = new_table(StructType((foreign,)))
    assert mapping(plain.state.schema) == {"a": (None, None)}
    mapped = new_table(StructType((foreign,)), (), {"delta.columnMapping.mode": "name"})
    assert mapping(mapped.state.schema)["a"][0] == 1


def generated(expression: str, kind: Any = LONG) -> StructField:
    return StructField("g", kind, True, {"delta.generationExpression": expression})


def identity(step: int = 1, kind: Any = LONG, **more: Any) -> StructField:
    return StructField("i", kind, True, {"delta.identity.start": 1, "delta.identity.step": step, **more})


@pytest.mark.parametrize(
    ("columns", "how", "condition"),
    [
        ([], {}, "DELTA_SCHEMA_NOT_PROVIDED"),
        ([generated("nosuch + 1")], {}, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        ([generated("g + 1")], {}, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        ([generated("id + 1", STRING)], {}, "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ([generated("rand()")], {}, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ([generated("now()")], {}, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ([generated("year(current_date) + id")], {}, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ([generated("sum(id)")], {}, "DELTA_AGGREGATE_IN_GENERATED_COLUMN"),
        ([generated("id +")], {}, "PARSE_SYNTAX_ERROR"),
        ([generated("my_function(id)")], {}, "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ([identity(kind=INTEGER)], {}, "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"),
        ([identity(step=0)], {}, "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP"),
        ([identity()], {"partition_columns": ["i"]}, "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED"),
        (
            [identity(**{"delta.generationExpression": "id"})], {},
            "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
        ),
        (
            [StructField("d", INTEGER, True, {"CURRENT_DEFAULT": "1"})], {},
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
        ),
        ([StructField("ID", LONG)], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([StructField("a b", LONG)], {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ([], {"partition_columns": ["nosuch"]}, "DELTA_SCHEMA_NOT_PROVIDED"),
        ([StructField("d", DATE)], {"partition_columns": ["nosuch"]}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
    ],
)  # fmt: skip
def test_a_column_that_could_not_be_written_is_refused(
    tmp_path: Path, columns: list[StructField], how: dict[str, Any], condition: str
) -> None:
    schema = StructType((StructField("id", LONG), *columns)) if columns else StructType()
    with pytest.raises(DeltaError) as caught:
        made(tmp_path / "t", schema, **how)
    assert (caught.value.condition or "").startswith(condition)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("default", "kind", "fine"),
    [
        ("42", INTEGER, True),
        ("concat('d', 'x')", STRING, True),
        ("NULL", ArrayType(INTEGER), True),
        ("current_timestamp()", TIMESTAMP, True),
        ("id + 1", INTEGER, False),
        ("'text'", INTEGER, False),
    ],
)
def test_a_default_is_a_constant_of_its_type(tmp_path: Path, default: str, kind: Any, fine: bool) -> None:
    schema = StructType((StructField("id", LONG), StructField("d", kind, True, {"CURRENT_DEFAULT": default})))
    how = {"properties": {"delta.feature.allowColumnDefaults": "supported"}}
    if fine:
        assert "allowColumnDefaults" in made(tmp_path, schema, **how).snapshot().protocol.supported
    else:
        with pytest.raises(DeltaError, match="default of column d") as caught:
            made(tmp_path, schema, **how)
        assert caught.value.condition.startswith("INVALID_DEFAULT_VALUE")


@pytest.mark.parametrize(
    "metadata", [{"CURRENT_DEFAULT": "1"}, {"delta.generationExpression": "id"}, {"delta.identity.start": 1}]
)
def test_nothing_is_defined_for_fields_inside_columns(tmp_path: Path, metadata: dict[str, Any]) -> None:
    inner = StructType((StructField("a", LONG, True, metadata),))
    schema = StructType((StructField("id", LONG), StructField("s", ArrayType(inner))))
    with pytest.raises(DeltaError, match="inside another column"):
        made(tmp_path, schema, properties={"delta.feature.allowColumnDefaults": "supported"})


def test_a_name_for_a_table_that_is_there_asks_for_its_properties_or_none(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.appendOnly": "true", "mine": "1"})
    nothing = StructType(())
    assert create_table(log, nothing, mode="adopt", without_columns=True) is None
    same = {"mine": "1", "delta.appendonly": "true"}
    assert create_table(log, PLAIN, (), same, mode="adopt") is None
    with pytest.raises(TableExistsError, match="mine") as caught:
        create_table(log, nothing, (), {"mine": "1"}, mode="adopt", without_columns=True)
    assert caught.value.condition == "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
    assert log.snapshot().version == 0
