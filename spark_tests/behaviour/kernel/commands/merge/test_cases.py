"""MERGE without Spark, case by case: sources, schemas, what tables ask of rows, files that are skipped, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.api.merge import TableMerger
from delta_ds.exceptions import (
    AppendOnlyError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_ds.kernel.commands.dml import in_process
from delta_ds.kernel.format.schema.types import LONG, STRING, StructField, StructType
from delta_ds.testing import TableBuilder

ROWS = {"id": [1, 2, 3, 4], "v": [10, 20, 30, 40]}


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table(ROWS))
    return log


def _rows(log: DeltaLog) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in log.snapshot().scan().to_arrow().to_pylist())


def _sources() -> list[Any]:
    import duckdb
    import pandas as pd
    import polars as pl

    table = pa.table({"id": [2, 9], "v": [0, 90]})
    return [
        pytest.param(lambda: table, id="table"),
        pytest.param(lambda: table.to_batches()[0], id="batch"),
        pytest.param(lambda: table.to_reader(1), id="reader"),
        pytest.param(lambda: pa.concat_tables([table.slice(0, 1), table.slice(1)]), id="chunks"),
        pytest.param(lambda: pd.DataFrame({"id": [2, 9], "v": [0, 90]}, index=[7, 8]), id="pandas"),
        pytest.param(lambda: pl.from_arrow(table), id="polars"),
        pytest.param(lambda: duckdb.from_arrow(table), id="duckdb"),
    ]


@pytest.mark.parametrize("source", _sources())
def test_whatever_hands_over_arrow_data_is_a_source(log: DeltaLog, source: Any) -> None:
    merger = log.merge(source(), "target.id = source.id")
    result = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.num_source_rows, result.num_target_rows_updated, result.num_target_rows_inserted) == (
        2,
        1,
        1,
    )
    assert _rows(log) == [(1, 10), (2, 0), (3, 30), (4, 40), (9, 90)]


def test_history_tells_clauses_and_counts(log: DeltaLog) -> None:
    merger = log.merge(
        pa.table({"id": [1, 2, 9], "v": [1, 2, 3]}), "t.id = s.id", "s", "t", user_metadata="load"
    )
    merger.when_matched_delete("s.v = 1").when_matched_update_all().when_not_matched_insert_all()
    result = merger.when_not_matched_by_source_update({"v": "0"}, "t.id = 4").execute()
    entry = log.history(1)[0]
    assert (entry["version"], entry["operation"], entry["userMetadata"]) == (result.version, "MERGE", "load")
    assert entry["operationParameters"] == {
        "predicate": '["t.id = s.id"]',
        "matchedPredicates": '[{"predicate":"s.v = 1","actionType":"delete"},{"actionType":"update"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": '[{"predicate":"t.id = 4","actionType":"update"}]',
    }
    counted = {name: int(text) for name, text in entry["operationMetrics"].items()}
    assert counted["numTargetRowsMatchedDeleted"] == counted["numTargetRowsMatchedUpdated"] == 1
    assert counted["numTargetRowsNotMatchedBySourceUpdated"] == counted["numTargetRowsInserted"] == 1
    assert (counted["numTargetRowsCopied"], counted["numOutputRows"], counted["numSourceRows"]) == (1, 4, 3)
    assert (result.num_target_files_added, result.num_target_files_removed) == (2, 1)
    assert _rows(log) == [(2, 2), (3, 30), (4, 0), (9, 3)]


def test_files_that_hold_no_key_of_the_source_are_not_read(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for part in range(4):
        log.write(pa.table({"id": range(part * 100, part * 100 + 100), "v": [0] * 100}))
    source = pa.table({"id": [5, 305], "v": [1, 1]})
    result = log.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    assert (result.num_target_files_scanned, result.num_target_files_skipped_during_scan) == (2, 2)
    many = pa.table({"id": [*range(0, 100), *range(300, 400)], "v": [2] * 200})
    result = log.merge(many, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    assert (result.num_target_rows_updated, result.num_target_files_scanned) == (200, 2)


def test_partitions_that_hold_no_key_of_the_source_are_not_read(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2, 3], "p": ["a", "b", None]}), options={"partitionBy": "p"})
    merger = log.merge(pa.table({"id": [1, 2], "p": ["b", "b"]}), "t.p = s.p AND t.id = s.id", "s", "t")
    assert merger.when_matched_delete().execute().num_target_files_scanned == 1
    assert _rows(log) == [(1, "a"), (3, None)]


@pytest.mark.parametrize(
    ("conditions", "scanned"),
    [
        (["t.v >= 200"], 2),
        (["t.v = 100 AND s.v = 1"], 1),
        (["t.v = 0", "t.v = 300"], 2),
        (["t.v = 0", "s.v = 1"], 4),
        (["t.v = s.v"], 4),
        (["t.v = 0", None], 4),
    ],
)
def test_files_in_which_no_clause_changes_rows_that_match_are_not_read(
    tmp_path: Path, conditions: list[str | None], scanned: int
) -> None:
    log = DeltaLog(tmp_path)
    for part in range(4):
        log.write(pa.table({"id": range(part * 10, part * 10 + 10), "v": [part * 100] * 10}))
    source = pa.table({"id": range(40), "v": [1] * 40})

    def merged() -> TableMerger:
        merger = log.merge(source, "t.id = s.id", "s", "t")
        for condition in conditions:
            merger = merger.when_matched_update({"v": "t.v"}, condition)
        return merger

    assert merged().execute().num_target_files_scanned == scanned
    inserting = merged().when_not_matched_insert_all("s.id > 100")
    assert inserting.execute().num_target_files_scanned == 4
    by_source = merged().when_not_matched_by_source_delete("t.id > 100")
    assert by_source.execute().num_target_files_scanned == 4


@pytest.mark.parametrize("clause", ["t.v < 5", None])
def test_rows_that_no_clause_changes_may_be_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clause: str | None
) -> None:
    log = DeltaLog(tmp_path)
    properties = {"delta.isolationLevel": "Serializable", "partitionBy": "v"}
    log.write(pa.table({"id": [1, 2], "v": [1, 2]}), options=properties)
    source = pa.table({"id": [1, 7]})
    merger = log.merge(source, "t.id = s.id", "s", "t", retries=0).when_matched_delete(clause)
    _with_another_writer(monkeypatch, lambda: log.write(pa.table({"id": [7], "v": [9]})))
    if clause is None:
        with pytest.raises(DeltaConcurrentModificationException):
            merger.execute()
    else:
        assert merger.execute().version == 2
        assert _rows(log) == [(2, 2), (7, 9)]


def test_an_empty_source_changes_only_what_it_does_not_match(log: DeltaLog) -> None:
    empty = pa.schema([("id", pa.int64()), ("v", pa.int64())]).empty_table()
    result = log.merge(empty, "t.id = s.id", "s", "t").when_matched_delete().execute()
    assert (result.version, result.num_target_files_scanned, log.snapshot().version) == (None, 0, 0)
    merger = log.merge(empty, "t.id = s.id", "s", "t").when_not_matched_by_source_delete("t.v > 20")
    assert merger.when_not_matched_insert_all().execute().num_target_rows_deleted == 2
    assert _rows(log) == [(1, 10), (2, 20)]


def test_an_empty_table_takes_the_source(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table(ROWS).slice(0, 0))
    merger = log.merge(pa.table(ROWS), "t.id = s.id", "s", "t")
    result = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.num_target_rows_inserted, result.version) == (4, 1)


def test_rows_of_the_source_that_match_none_are_inserted_as_often_as_they_are_there(log: DeltaLog) -> None:
    source = pa.table({"id": [1, 9, 9], "v": [0, 1, 1]})
    assert log.merge(source, "t.id = s.id", "s", "t").when_not_matched_insert_all().execute().version == 1
    assert _rows(log)[-2:] == [(9, 1), (9, 1)]


def test_several_rows_may_delete_one(log: DeltaLog) -> None:
    source = pa.table({"id": [1, 1, 9]})
    merger = log.merge(source, "t.id = s.id", "s", "t")
    assert merger.when_matched_delete().execute().num_target_rows_deleted == 1
    merger = log.merge(pa.table({"id": [2, 2]}), "t.id = s.id", "s", "t").when_matched_delete("t.v > 0")
    with pytest.raises(UnsupportedOperationError) as raised:
        merger.execute()
    assert raised.value.condition == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert log.snapshot().version == 1


def test_a_stream_is_read_once_however_often_the_merge_runs(log: DeltaLog) -> None:
    merger = log.merge(pa.table({"id": [1]}).to_reader(), "t.id = s.id", "s", "t")
    merger.when_not_matched_by_source_delete()
    assert [merger.execute().num_target_rows_deleted for _ in range(2)] == [3, 0]
    assert _rows(log) == [(1, 10)]


def test_a_scan_of_a_table_is_a_source(log: DeltaLog) -> None:
    scan = log.snapshot().scan("id <= 2")
    merger = log.merge(scan, "t.id = s.id", "s", "t").when_matched_update({"v": "t.v + s.v"})
    assert merger.execute().num_target_rows_updated == 2
    assert _rows(log)[:2] == [(1, 20), (2, 40)]


# --- schemas


def test_columns_of_the_source_are_taken_where_the_schema_may_grow(log: DeltaLog) -> None:
    source = pa.table({"id": [1, 9], "city": ["Lyon", "Rome"], "s": [{"a": 1}, {"a": 2}]})
    merger = log.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert log.snapshot().schema.names == ["id", "v", "city", "s"]
    assert _rows(log)[0] == (1, 10, "Lyon", {"a": 1})
    assert _rows(log)[-1] == (9, None, "Rome", {"a": 2})
    assert _rows(log)[1] == (2, 20, None, None)


def test_a_named_new_column_is_taken_too(log: DeltaLog) -> None:
    merger = log.merge(pa.table({"id": [1], "city": ["Lyon"]}), "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update({"city": "upper(s.city)"}).execute()
    assert _rows(log)[:2] == [(1, 10, "LYON"), (2, 20, None)]


def test_an_empty_source_brings_its_columns(log: DeltaLog) -> None:
    empty = pa.schema([("id", pa.int64()), ("city", pa.string())]).empty_table()
    merger = log.merge(empty, "t.id = s.id", "s", "t", merge_schema=True).when_matched_update_all()
    assert merger.execute().version == 1
    assert (log.snapshot().schema.names, log.snapshot().scan().count()) == (["id", "v", "city"], 4)


def test_types_grow_where_the_table_widens_them(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": pa.array([1, 2], pa.int32())})
    log.write(rows, options={"delta.enableTypeWidening": "true"})
    source = pa.table({"id": [1, 2**40], "v": pa.array([7, 8], pa.int32())})
    merger = log.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update({"v": "s.v"}).when_not_matched_insert_all().execute()
    assert _rows(log) == [(1, 7), (2, 2), (2**40, 8)]


def test_fields_that_a_struct_of_the_source_does_not_have_are_null_in_new_rows(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "s": [{"a": 1, "b": 2}]}))
    source = pa.table({"id": [1, 9], "s": [{"c": 5, "a": 3}, {"c": 6, "a": 4}]})
    merger = log.merge(source, "t.id = u.id", "u", "t", merge_schema=True).when_not_matched_insert_all()
    merger.execute()
    assert _rows(log) == [(1, {"a": 1, "b": 2, "c": None}), (9, {"a": 4, "b": None, "c": 6})]


def test_star_needs_every_column_of_the_table(log: DeltaLog) -> None:
    merger = log.merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t")
    with pytest.raises(SchemaError, match="the source has no column 'v'"):
        merger.when_matched_update_all().execute()
    merger = log.merge(pa.table({"id": [9]}), "t.id = s.id", "s", "t")
    merger.when_not_matched_insert_all(except_cols=["V"]).execute()
    assert _rows(log)[-1] == (9, None)


def test_values_are_cast_to_the_types_of_their_columns(log: DeltaLog) -> None:
    source = pa.table({"id": pa.array(["1", "2"]), "v": pa.array([1.0, 2.0])})
    merger = log.merge(source, "t.id = s.id", "s", "t").when_matched_update({"v": "s.v", "id": "s.id"})
    assert merger.execute().num_target_rows_updated == 2
    assert _rows(log)[:2] == [(1, 1), (2, 2)]
    too_much = log.merge(pa.table({"id": [1], "v": [1e30]}), "t.id = s.id", "s", "t")
    with pytest.raises(InvariantViolationError, match="v"):
        too_much.when_matched_update_all().execute()
    with pytest.raises(SchemaError, match="cannot be cast"):
        log.merge(
            pa.table({"id": [1], "v": [True]}), "t.id = s.id", "s", "t"
        ).when_matched_update_all().execute()


def test_fields_of_structs_are_assigned_to(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(
        pa.table({"id": [1, 2, 3, 4], "s": [{"a": 1, "b": "x"}, None, {"a": 3, "b": "z"}, {"a": 4, "b": ""}]})
    )
    source = pa.table({"id": [1, 2, 3], "x": [10, 20, 30]})
    merger = log.merge(source, "t.id = u.id", "u", "t").when_matched_update(
        {"s.a": "t.s.a + x", "t.s.B": "'y'"}, "u.id < 3"
    )
    merger.when_matched_update({"id": "u.id * 10"}).when_not_matched_by_source_update(
        {"s.b": "s.b || '!'"}
    ).execute()
    assert _rows(log) == [
        (1, {"a": 11, "b": "y"}),
        (2, {"a": None, "b": "y"}),
        (4, {"a": 4, "b": "!"}),
        (30, {"a": 3, "b": "z"}),
    ]


def _special(tmp_path: Path) -> DeltaLog:
    table = TableBuilder(tmp_path / "special")
    generated = {"delta.generationExpression": "id * 10 + coalesce(v, 0)"}
    default = {"CURRENT_DEFAULT": "7"}
    schema = StructType(
        (
            StructField("id", LONG),
            StructField("v", LONG, metadata=default),
            StructField("g", LONG, metadata=generated),
            StructField("s", STRING, nullable=False),
        )
    )
    table.create(schema, writer_features=["generatedColumns", "allowColumnDefaults", "invariants"])
    log = DeltaLog(table.path)
    log.write(pa.table({"id": [1, 2], "v": [1, 2], "s": ["a", "b"]}))
    return log


def test_generated_columns_and_defaults_are_found_by_the_table(tmp_path: Path) -> None:
    log = _special(tmp_path)
    merger = log.merge(pa.table({"id": [1, 9], "w": [5, 5]}), "t.id = s.id", "s", "t")
    merger.when_matched_update({"v": "s.w"}).when_not_matched_insert({"id": "s.id", "s": "'n'"}).execute()
    assert _rows(log) == [(1, 5, 15, "a"), (2, 2, 22, "b"), (9, 7, 97, "n")]


def test_a_generated_column_that_some_clauses_name_is_computed_for_the_others(tmp_path: Path) -> None:
    log = _special(tmp_path)
    source = pa.table({"id": [1, 9], "v": [5, 5], "g": [15, 95], "s": ["x", "y"]})
    merger = log.merge(source, "t.id = s.id", "s", "t").when_matched_update({"v": "s.v + 1"})
    merger.when_not_matched_insert_all().when_not_matched_by_source_update({"v": "DEFAULT"}).execute()
    assert _rows(log) == [(1, 6, 16, "a"), (2, 7, 27, "b"), (9, 5, 95, "y")]
    wrong = log.merge(source, "t.id = s.id", "s", "t").when_matched_update({"g": "0"})
    with pytest.raises(InvariantViolationError):
        wrong.execute()


def test_a_row_that_breaks_a_constraint_leaves_nothing_behind(tmp_path: Path) -> None:
    log = _special(tmp_path)
    before = sorted(path.name for path in Path(log.storage.url).rglob("*"))
    merger = log.merge(pa.table({"id": [1, 9], "s": ["x", None]}), "t.id = s.id", "s", "t")
    merger.when_matched_update({"s": "s.s"}).when_not_matched_insert({"id": "s.id", "s": "s.s"})
    with pytest.raises(InvariantViolationError):
        merger.execute()
    assert [
        name for name in sorted(p.name for p in Path(log.storage.url).rglob("*")) if name not in before
    ] == []


def _with_identity(tmp_path: Path, *, explicit: bool) -> DeltaLog:
    table = TableBuilder(tmp_path / "identity")
    made = {
        "delta.identity.start": 10,
        "delta.identity.step": 5,
        "delta.identity.allowExplicitInsert": explicit,
    }
    schema = StructType((StructField("k", LONG, metadata=made), StructField("v", STRING)))
    table.create(schema, writer_features=["identityColumns"])
    log = DeltaLog(table.path)
    log.write(pa.table({"v": ["a", "b"]}))
    return log


def test_identity_columns_are_numbered_by_the_table(tmp_path: Path) -> None:
    log = _with_identity(tmp_path, explicit=False)
    source = pa.table({"k": [1, 2], "v": ["a", "c"]})
    merger = log.merge(source, "t.v = s.v", "s", "t").when_matched_update({"v": "upper(s.v)"})
    assert merger.when_not_matched_insert({"v": "s.v"}).execute().num_target_rows_inserted == 1
    assert _rows(log) == [(10, "A"), (15, "b"), (20, "c")]
    for add in (TableMerger.when_matched_update_all, TableMerger.when_not_matched_insert_all):
        with pytest.raises(UnsupportedOperationError) as raised:
            add(log.merge(source, "t.v = s.v", "s", "t")).execute()
        assert raised.value.condition.startswith("DELTA_IDENTITY_COLUMNS")


def test_identity_values_that_some_clauses_give_are_made_for_the_others(tmp_path: Path) -> None:
    log = _with_identity(tmp_path, explicit=True)
    source = pa.table({"k": [100, 200], "v": ["c", "d"]})
    merger = log.merge(source, "t.v = s.v", "s", "t").when_not_matched_insert_all("s.v = 'c'")
    merger.when_not_matched_insert({"v": "s.v"}).execute()
    assert _rows(log) == [(10, "a"), (15, "b"), (20, "d"), (100, "c")]


# --- refusals


@pytest.mark.parametrize(
    ("add", "error", "words"),
    [
        (lambda m: m, UnsupportedOperationError, "no WHEN clause"),
        (
            lambda m: m.when_matched_delete().when_matched_update_all(),
            UnsupportedOperationError,
            "put it last",
        ),
        (lambda m: m.when_matched_update({"x": "1"}), SchemaError, "x"),
        (lambda m: m.when_matched_update({"v": "w"}), SchemaError, "either side has no column w"),
        (lambda m: m.when_matched_update({"v": "s.w"}), SchemaError, "the source has no column s.w"),
        (lambda m: m.when_matched_update({"v": "v"}), SchemaError, "write t.v or s.v"),
        (lambda m: m.when_not_matched_insert({"v": "t.v"}), SchemaError, "the source has no column t.v"),
        (
            lambda m: m.when_not_matched_by_source_update({"v": "s.v"}),
            SchemaError,
            "the table has no column s.v",
        ),
        (lambda m: m.when_matched_update({"v": "reverse_it(s.v)"}), PredicateError, "reverse_it"),
        (lambda m: m.when_matched_update({"v": "1", "V": "2"}), SchemaError, "more than once"),
        (lambda m: m.when_matched_delete("s.v +"), PredicateError, "WHEN MATCHED DELETE"),
        (lambda m: m.when_matched_delete("s.v"), PredicateError, "WHEN MATCHED DELETE"),
        (lambda m: m.when_matched_update_all(except_cols=["w"]), SchemaError, "w"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    log: DeltaLog, add: Any, error: type[DeltaError], words: str
) -> None:
    with pytest.raises(error) as raised:
        add(log.merge(pa.table({"id": [1], "v": [2]}), "t.id = s.id", "s", "t")).execute()
    assert words in str(raised.value)
    assert log.snapshot().version == 0
    assert len(list(Path(log.storage.url).glob("*.parquet"))) == 1


@pytest.mark.parametrize("aliases", [("x", "X"), ("target", None), ("a.b", "t"), ("", "t")])
def test_aliases_have_to_tell_the_sides_apart(log: DeltaLog, aliases: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidOptionError, match="apart"):
        log.merge(pa.table({"id": [1]}), "true", *aliases).when_matched_delete().execute()


def test_a_struct_without_a_field_of_the_column_is_refused(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "s": [{"a": 1, "b": 2}]}))
    merger = log.merge(pa.table({"id": [1], "s": [{"a": 1}]}), "t.id = u.id AND t.s.a = u.s.a", "u", "t")
    with pytest.raises(SchemaError, match="b is not given"):
        merger.when_matched_update_all().execute()
    merger = log.merge(pa.table({"id": [9], "x": [5]}), "t.id = u.id", "u", "t")
    with pytest.raises(SchemaError, match="whole struct"):
        merger.when_not_matched_insert({"s.a": "u.x"}).execute()
    for twice in ({"s.a": "1", "S.A": "2"}, {"s": "t.s", "s.a": "1"}, {"s.nosuch": "1"}):
        with pytest.raises(SchemaError):
            log.merge(pa.table({"id": [1]}), "t.id = u.id", "u", "t").when_matched_update(twice).execute()
    assert log.snapshot().version == 0


def test_an_append_only_table_takes_inserts_alone(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table(ROWS), options={"delta.appendOnly": "true"})
    source = pa.table({"id": [1, 9], "v": [0, 0]})
    with pytest.raises(AppendOnlyError):
        log.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().execute()
    assert log.merge(source, "t.id = s.id", "s", "t").when_not_matched_insert_all().execute().version == 1


# --- other writers


def _with_another_writer(monkeypatch: pytest.MonkeyPatch, work: Any) -> None:
    commit, waiting = in_process.commit_dml, [work]

    def after_another(*arguments: Any) -> Any:
        if waiting:
            waiting.pop()()
        return commit(*arguments)

    monkeypatch.setattr(in_process, "commit_dml", after_another)


def test_a_merge_that_another_commit_contradicts_is_refused_or_begins_anew(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = pa.table({"id": [1, 9], "v": [0, 90]})

    def merger(retries: int) -> Any:
        found = DeltaLog(log.storage.url).merge(source, "t.id = s.id", "s", "t", retries=retries)
        return found.when_matched_update_all().when_not_matched_insert_all()

    _with_another_writer(monkeypatch, lambda: log.write(pa.table({"id": [9], "v": [1]})))
    with pytest.raises(DeltaConcurrentModificationException):
        merger(0).execute()
    assert len(list(Path(log.storage.url).glob("*.parquet"))) == 2
    _with_another_writer(monkeypatch, lambda: log.write(pa.table({"id": [1], "v": [11]})))
    result = merger(1).execute()
    assert (result.num_target_rows_updated, result.num_target_rows_inserted) == (3, 0)
    assert _rows(log) == [(1, 0), (1, 0), (2, 20), (3, 30), (4, 40), (9, 90)]


def test_a_merge_that_counts_as_a_transaction_is_done_once(log: DeltaLog) -> None:
    source = pa.table({"id": [9], "v": [9]})
    for wanted in (1, None):
        merger = log.merge(source, "t.id = s.id AND false", "s", "t", txn=("load", 7))
        assert merger.when_not_matched_insert_all().execute().version == wanted
    assert _rows(log).count((9, 9)) == 1
