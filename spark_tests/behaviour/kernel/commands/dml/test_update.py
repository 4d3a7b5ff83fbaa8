"""UPDATE without Spark: rows afterwards, what readers of changes see, row ids, checks, and what is refused."""

from __future__ import annotations

import datetime
import pickle
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_ds.kernel.commands.dml import in_process, row_finder
from delta_ds.kernel.commands.dml.assignments import Assignments
from delta_ds.kernel.commands.dml.candidates import candidate_files
from delta_ds.kernel.commands.dml.changed_rows import UPDATE
from delta_ds.kernel.commands.dml.commit import Committed
from delta_ds.kernel.commands.dml.delete import UpdateResult
from delta_ds.kernel.commands.dml.plan import plan_dml, plan_file_rewrite
from delta_ds.kernel.files.write import partition_files
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.definitions import add_constraint
from delta_ds.testing import TableBuilder
from spark_tests.full_form import examples

_Row = dict[str, Any]
# By predicate, what Spark holds of a row: True only where the row changes.
PREDICATES: dict[str | None, Callable[[_Row], bool]] = {
    None: lambda row: True,
    "id % 3 = 0": lambda row: row["id"] % 3 == 0,
    "s = 'x'": lambda row: row["s"] == "x",
    "NOT s <=> 'x'": lambda row: row["s"] != "x",
    "p = 'a'": lambda row: row["p"] == "a",
    "p = 'a' AND id > 3": lambda row: row["p"] == "a" and row["id"] > 3,
    "f > 1": lambda row: row["f"] is not None and not row["f"] <= 1,
    "i.a IS NULL": lambda row: row["i"] is None or row["i"]["a"] is None,
    "id < 0": lambda row: False,
}


def _inner(row: _Row, **new: Any) -> _Row:
    return {**(row["i"] or {"a": None, "b": None}), **new}


# By what is set, what becomes of a row.
UPDATES: dict[tuple[tuple[str, str], ...], Callable[[_Row], _Row]] = {
    (("n", "n + id"),): lambda row: {"n": None if row["n"] is None else row["n"] + row["id"]},
    (("s", "p"), ("p", "coalesce(s, p)")): lambda row: {
        "s": row["p"], "p": row["p"] if row["s"] is None else row["s"],
    },
    (("f", "NULL"), ("n", "length(s)")): lambda row: {
        "f": None, "n": None if row["s"] is None else len(row["s"]),
    },
    (("i.a", "id"),): lambda row: {"i": _inner(row, a=row["id"])},
    (("i.b", "s"), ("i.a", "i.a + 1")): lambda row: {
        "i": _inner(row, b=row["s"], a=None if _inner(row)["a"] is None else _inner(row)["a"] + 1)
    },
    (("n", "CASE WHEN s = 'x' THEN 7 ELSE n END"), ("S", "'new'")): lambda row: {
        "n": 7 if row["s"] == "x" else row["n"], "s": "new",
    },
    (("n", "'12'"),): lambda row: {"n": 12},
}  # fmt: skip
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("p", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("i", pa.struct({"a": pa.int64(), "b": pa.string()})),
    ]
)


@st.composite
def _tables(draw: st.DrawFn) -> list[_Row]:
    texts = st.sampled_from([None, "x", "y"])
    numbers = st.sampled_from([None, 0, 5])
    rows = []
    for n in range(draw(st.integers(1, 14))):
        inner = None if draw(st.booleans()) else {"a": draw(numbers), "b": draw(texts)}
        floats = draw(st.sampled_from([None, -0.0, 1.5, float("nan")]))
        rows.append(
            {
                "id": n,
                "s": draw(texts),
                "p": draw(st.sampled_from("ab")),
                "n": draw(numbers),
                "f": floats,
                "i": inner,
            }
        )
    return rows


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(partition_files, "GROUP_ROWS", 3)
    yield


def _rows(log: DeltaLog, *metadata: str, version: int | None = None) -> list[_Row]:
    found = log.snapshot(version).scan(metadata_columns=metadata).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def _texts(rows: list[_Row]) -> list[str]:
    """Rows as texts, in which NaN equals NaN."""
    return sorted(repr(sorted(row.items())) for row in rows)


@given(
    rows=_tables(),
    files=st.integers(1, 3),
    on=st.sets(st.sampled_from(sorted(PROPERTIES))),
    partitioned=st.booleans(),
    commands=st.lists(
        st.tuples(st.sampled_from(list(UPDATES)), st.sampled_from(list(PREDICATES))), min_size=1, max_size=2
    ),
    threads=st.integers(1, 3),
)
@settings(max_examples=examples(60), deadline=None)
def test_rows_afterwards_are_those_of_one_pass_and_the_feed_is_the_difference(
    rows: list[_Row],
    files: int,
    on: set[str],
    partitioned: bool,
    commands: list[tuple[tuple[tuple[str, str], ...], str | None]],
    threads: int,
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(in_process, "threads_for", lambda storage: threads)
        log = DeltaLog(folder)
        options = {name: PROPERTIES[name] for name in on}
        layout = {"partitionBy": "p"} if partitioned else {}
        for n in range(files):
            table = pa.Table.from_pylist(rows[n::files], _SCHEMA)
            log.write(table, options={**layout, **options} if not n else {})
        tracked = "delta.enableRowTracking" in on
        for assignments, predicate in commands:
            before = _rows(log, *(("row_id", "row_commit_version") if tracked else ()))
            ids = {row["id"]: row.pop("_metadata") for row in before} if tracked else {}
            hit = [row for row in before if PREDICATES[predicate](row)]
            new = {row["id"]: {**row, **UPDATES[assignments](row)} for row in hit}
            result = log.update(dict(assignments), predicate=predicate)
            assert (result.rows, result.num_updated_rows) == (len(hit), len(hit))
            assert (result.version is not None) == bool(hit)
            after = _rows(log, *(("row_id", "row_commit_version") if tracked else ()))
            for row in after if tracked else ():
                was, now = ids[row["id"]], row.pop("_metadata")
                assert now["row_id"] == was["row_id"]
                version = result.version if row["id"] in new else was["row_commit_version"]
                assert now["row_commit_version"] == version
            assert _texts(after) == _texts([new.get(row["id"], row) for row in before])
            if hit and "delta.enableChangeDataFeed" in on:
                changes = log.changes(result.version, result.version).to_arrow().to_pylist()
                found: dict[str, list[_Row]] = {}
                for change in changes:
                    kind = change.pop("_change_type")
                    found.setdefault(kind, []).append({name: change[name] for name in _SCHEMA.names})
                assert sorted(found) == ["update_postimage", "update_preimage"]
                assert _texts(found["update_preimage"]) == _texts(hit)
                assert _texts(found["update_postimage"]) == _texts(list(new.values()))


def _table(path: Path, rows: pa.Table | None = None, **options: str) -> DeltaLog:
    log = DeltaLog(str(path))
    log.write(
        rows if rows is not None else pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]}), options=options
    )
    return log


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file())


def test_values_of_python_are_stored_as_their_columns(tmp_path: Path) -> None:
    noon = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.timezone.utc)
    values = {
        "i": 7, "d": Decimal("2.5"), "n": Decimal("1.10"), "s": "x", "b": True, "day": datetime.date(2024, 1, 2),
        "t": noon, "l": [1, None], "bytes": b"\x01", "nothing": None,
    }  # fmt: skip
    kinds = {
        "i": pa.int16(), "d": pa.float64(), "n": pa.decimal128(9, 2), "s": pa.string(), "b": pa.bool_(),
        "day": pa.date32(), "t": pa.timestamp("us", "UTC"), "l": pa.list_(pa.int64()), "bytes": pa.binary(),
        "nothing": pa.string(),
    }  # fmt: skip
    log = _table(tmp_path, pa.table({name: pa.nulls(2, kind) for name, kind in kinds.items()}))
    assert log.update(new_values=values).rows == 2
    found = log.snapshot().scan().to_arrow()
    assert found.slice(0, 1).to_pylist() == [{**values, "d": 2.5}]


@pytest.mark.parametrize(
    ("new_values", "error"),
    [
        ({"id": "x"}, InvariantViolationError),
        ({"id": 1 << 70}, InvalidOptionError),
        ({"id": object()}, InvalidOptionError),
        ({"id": True}, SchemaError),
        ({"s": b"x"}, SchemaError),
    ],
)
def test_a_value_that_is_none_for_its_column_is_refused(
    tmp_path: Path, new_values: dict[str, Any], error: type[DeltaError]
) -> None:
    log = _table(tmp_path)
    with pytest.raises(error):
        log.update(new_values=new_values)
    assert log.snapshot().version == 0


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize(
    ("updates", "predicate", "error", "words"),
    [
        ({"id": "reflect('a', 'b')"}, None, UnsupportedFeatureError, "reflect"),
        ({"id": "1"}, "reflect('a', 'b') = id", PredicateError, "Nothing was changed"),
        ({"id": "1 / (id - 3)"}, None, PredicateError, "(?i)zero"),
        ({"id": "1"}, "1 / (id - 3) > 5", PredicateError, "(?i)zero"),
        ({"id": "9223372036854775807 + id"}, None, PredicateError, "(?i)overflow"),
        ({"id": "s"}, "id = 3", InvariantViolationError, "id"),
        ({"idd": "1"}, None, SchemaError, "'idd'"),
        ({"id": "1", "ID": "2"}, None, SchemaError, "more than once"),
        ({"id.x": "1"}, None, SchemaError, "id.x"),
        ({}, None, InvalidOptionError, "updates="),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    tmp_path: Path,
    vectors: str,
    updates: dict[str, str],
    predicate: str | None,
    error: type[DeltaError],
    words: str,
) -> None:
    log = _table(tmp_path, **{"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"})
    log.write(pa.table({"id": [4], "s": ["d"]}))
    files = _files(tmp_path)
    with pytest.raises(error, match=words):
        log.update(updates, predicate=predicate)
    assert _files(tmp_path) == files


def test_new_rows_meet_constraints_and_only_new_ones_are_checked(tmp_path: Path) -> None:
    log = _table(tmp_path)
    add_constraint(log, "small", "id < 10", lambda text: None)
    with pytest.raises(InvariantViolationError, match="small"):
        log.update({"id": "id * 5"})
    assert log.update({"id": "id * 5"}, predicate="id = 1").rows == 1
    assert [row["id"] for row in _rows(log)] == [2, 3, 5]


def test_not_null_columns_take_no_null(tmp_path: Path) -> None:
    TableBuilder(str(tmp_path)).create(StructType((StructField("id", LONG, False),)))
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1, 2]}))
    with pytest.raises(InvariantViolationError):
        log.update({"id": "NULL"}, predicate="id = 2")
    with pytest.raises(InvariantViolationError):
        log.update(new_values={"id": None})


def _special(path: Path, metadata: dict[str, Any], *features: str) -> DeltaLog:
    """A table of `id`, and a column of which there is something to say."""
    schema = StructType((StructField("id", LONG), StructField("special", LONG, True, metadata)))
    TableBuilder(str(path)).create(schema, writer_features=features)
    log = DeltaLog(str(path))
    log.write(pa.table({"id": [1, 2]}))
    return log


def test_generated_columns_follow_and_given_ones_are_verified(tmp_path: Path) -> None:
    log = _special(tmp_path, {"delta.generationExpression": "id * 2"}, "generatedColumns")
    assert log.update({"id": "id + 10"}, predicate="id = 1").rows == 1
    assert _rows(log) == [{"id": 2, "special": 4}, {"id": 11, "special": 22}]
    with pytest.raises(InvariantViolationError):
        log.update({"special": "5"})


def test_identity_columns_are_not_assigned_to_and_keep_their_values(tmp_path: Path) -> None:
    identity = {"start": 1, "step": 1, "allowExplicitInsert": False}
    log = _special(tmp_path, {f"delta.identity.{k}": v for k, v in identity.items()}, "identityColumns")
    with pytest.raises(UnsupportedOperationError):
        log.update({"special": "1"})
    before = _rows(log)
    assert log.update({"id": "id + 10"}).rows == 2
    assert _rows(log) == [{**row, "id": row["id"] + 10} for row in before]


def test_the_word_default_is_the_default_of_the_column_or_null(tmp_path: Path) -> None:
    log = _special(tmp_path, {"CURRENT_DEFAULT": "40 + 2"}, "allowColumnDefaults")
    assert log.update({"special": "default", "id": "id + 10"}, predicate="id = 1").rows == 1
    assert log.update({"id": "DEFAULT"}, predicate="id = 2").rows == 1
    assert log.snapshot().scan("id = 11").to_arrow()["special"].to_pylist() == [42]
    assert log.snapshot().scan("id IS NULL").count() == 1


def test_a_reader_of_history_sees_what_was_done(tmp_path: Path) -> None:
    log = _table(tmp_path)
    result = log.update({"s": "'n'"}, predicate="id > 1", user_metadata="why", engine_info="mine")
    newest = log.history(1)[0]
    assert (newest["version"], newest["operation"], newest["userMetadata"]) == (1, "UPDATE", "why")
    assert newest["operationParameters"]["predicate"] == '["id > 1"]'
    metrics = newest["operationMetrics"]
    assert (metrics["numUpdatedRows"], metrics["numCopiedRows"]) == ("2", "1")
    assert (result.num_copied_rows, result.num_added_files, result.num_removed_files) == (1, 1, 1)
    assert result.num_added_bytes == int(metrics["numAddedBytes"])
    assert newest["engineInfo"].startswith("mine")


def test_a_command_that_counts_once_is_done_once(tmp_path: Path) -> None:
    log = _table(tmp_path)
    assert log.update({"id": "id + 1"}, txn=("app", 4)).version == 1
    assert log.update({"id": "id + 1"}, txn=("app", 4)) == UpdateResult(None, 0)
    assert log.delete("id = 2", txn=("app", 3)).version is None
    assert log.delete("id = 2", txn=("app", 5)).version == 2
    assert [row["id"] for row in _rows(log)] == [3, 4]


def _meanwhile(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Something else is committed when the next command is about to."""
    commit = in_process.commit_dml

    def second(*arguments: Any) -> Committed:
        monkeypatch.setattr(in_process, "commit_dml", commit)
        other()
        return commit(*arguments)

    monkeypatch.setattr(in_process, "commit_dml", second)


def test_a_command_that_was_contradicted_is_an_error_or_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _table(tmp_path)

    def add_one() -> UpdateResult:
        return DeltaLog(str(tmp_path)).update({"id": "id + 1"}, predicate="id = 3")

    _meanwhile(monkeypatch, add_one)
    with pytest.raises(DeltaConcurrentModificationException):
        log.update({"id": "id + 1"})
    assert [row["id"] for row in _rows(log)] == [1, 2, 4]
    _meanwhile(monkeypatch, lambda: DeltaLog(str(tmp_path)).delete("id = 1"))
    assert log.update({"id": "id + 1"}, retries=1).rows == 2
    assert [row["id"] for row in _rows(log)] == [3, 5]


def test_other_rows_of_a_file_may_change_meanwhile_where_rows_are_tracked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _table(tmp_path, **{"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"})
    _meanwhile(monkeypatch, lambda: DeltaLog(str(tmp_path)).delete("id = 1"))
    assert log.update({"s": "'n'"}, predicate="id = 3").rows == 1
    assert _rows(log) == [{"id": 2, "s": None}, {"id": 3, "s": "n"}]


def test_append_only_tables_keep_their_rows(tmp_path: Path) -> None:
    log = _table(tmp_path, **{"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        log.update({"id": "1"})


def test_the_current_time_is_one_in_a_command(tmp_path: Path) -> None:
    log = _table(tmp_path, pa.table({"id": range(8), "t": pa.nulls(8, pa.timestamp("us", "UTC"))}))
    log.write(pa.table({"id": [8]}))
    assert (
        log.update(
            {"t": "current_timestamp()"}, predicate="t IS NULL AND current_date() > DATE'2020-01-01'"
        ).rows
        == 9
    )
    assert len({row["t"] for row in _rows(log)}) == 1


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _table(tmp_path, pa.table({"id": range(12), "s": ["a"] * 12}))
    seen: list[int] = []
    evaluate = row_finder.Matching.holds

    def counting(self: Any, batch: pa.RecordBatch) -> Any:
        seen.append(batch.num_rows)
        assert batch.schema.names[0] == "id" and "s" not in batch.schema.names
        return evaluate(self, batch)

    monkeypatch.setattr(row_finder.Matching, "holds", counting)
    assert log.update({"s": "'b'"}, predicate="id = 7").rows == 1
    assert sum(seen) == 3


def test_what_tasks_of_other_processes_are_given_can_be_pickled(tmp_path: Path) -> None:
    log = _table(tmp_path)
    snapshot = log.open_snapshot()
    plan = plan_file_rewrite(snapshot, plan_dml(snapshot), candidate_files(snapshot, None, "UTC"), [UPDATE])
    now = datetime.datetime.now(datetime.timezone.utc)
    values = Assignments(snapshot.table_state, "UPDATE", "UTC", now).plan({"id": "id * 2"}, {"s": "new"})
    predicate = bind(parse_predicate("id > 1"), snapshot.schema)
    finder = row_finder.RowFinder.of(snapshot, predicate, "UTC", values)
    there_plan, there = pickle.loads(pickle.dumps((plan, finder)))
    found = there.rewrite(there_plan, [*there_plan.files])
    assert (found.rows, found.result.rows, found.files) == (2, 3, (0,))
    rows = pq.read_table(tmp_path / found.result.adds[0]["path"]).to_pylist()
    assert rows == [{"id": 1, "s": "a"}, {"id": 4, "s": "new"}, {"id": 6, "s": "new"}]
