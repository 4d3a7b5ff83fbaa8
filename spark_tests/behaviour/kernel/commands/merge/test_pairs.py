"""Which rows of source and table meet: what stands before a key in the condition guards it, and null is no key."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import PredicateError, UnsupportedOperationError
from delta_ds.kernel.commands.dml.candidates import Rewritten
from delta_ds.kernel.commands.dml.in_process import InProcessDml
from spark_tests.full_form import examples

# Of rows of kind n the text is a number.
_TEXTS = st.tuples(
    st.sampled_from(["n", "s", None]), st.integers(0, 3), st.sampled_from(["1", "2", "x", None])
)
_ROWS = st.lists(_TEXTS, max_size=8)
CONDITIONS = [
    "t.kind = 'n' AND CAST(t.k AS BIGINT) = s.id",
    "s.kind = 'n' AND t.id = CAST(s.k AS BIGINT)",
    "t.kind = 'n' AND s.kind = 'n' AND CAST(t.k AS BIGINT) = CAST(s.k AS BIGINT)",
    "t.kind = 'n' AND t.id = s.id AND CAST(t.k AS BIGINT) = s.id",
    "s.kind = t.kind AND s.kind = 'n' AND CAST(s.k AS BIGINT) = t.id",
    "t.id >= s.id AND t.kind = 'n' AND CAST(t.k AS BIGINT) = s.id",
]


def _number(row: tuple[Any, ...]) -> int | None:
    return int(row[2]) if row[0] == "n" and row[2] in ("1", "2") else None


def _meet(n: int, t: tuple[Any, ...], s: tuple[Any, ...]) -> bool:
    of_t, of_s = _number(t), _number(s)
    return [
        of_t is not None and of_t == s[1],
        of_s is not None and of_s == t[1],
        of_t is not None and of_t == of_s,
        of_t is not None and of_t == s[1] and t[1] == s[1],
        of_s is not None and t[0] == "n" and of_s == t[1],
        of_t is not None and of_t == s[1] and t[1] >= s[1],
    ][n]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = {"kind": pa.string(), "id": pa.int64(), "k": pa.string()}
    return pa.table(
        {
            name: pa.array(list(column), kind)
            for (name, kind), column in zip(kinds.items(), columns, strict=True)
        }
    )


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=examples(6), deadline=None)
@given(_ROWS, _ROWS)
def test_a_key_is_asked_only_of_rows_that_all_before_it_lets_through(
    condition: str, ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]
) -> None:
    def readable(row: tuple[Any, ...]) -> tuple[Any, ...]:
        # NULL AND what fails, fails: only a conjunct of one side that comes first leaves such rows out.
        guarded = row[0] == "s" or (row[0] is None and not condition.startswith("t.id >="))
        return row if guarded or row[2] != "x" else (row[0], row[1], "1")

    ours, theirs = [readable(row) for row in ours], [readable(row) for row in theirs]
    n = CONDITIONS.index(condition)
    left = [t for t in ours if not any(_meet(n, t, s) for s in theirs)]
    new = [s for s in theirs if not any(_meet(n, t, s) for t in ours)]
    with tempfile.TemporaryDirectory() as folder:
        log = DeltaLog(folder)
        log.write(_table(ours))
        log.merge(
            _table(theirs), condition, "s", "t"
        ).when_matched_delete().when_not_matched_insert_all().execute()
        found = [tuple(row.values()) for row in log.snapshot().scan().to_arrow().to_pylist()]
    assert sorted(found, key=str) == sorted([*left, *new], key=str)


@pytest.mark.parametrize(
    "condition",
    ["CAST(t.k AS BIGINT) = s.id", "t.id = CAST(s.k AS BIGINT)", "t.id > 0 AND CAST(t.k AS BIGINT) = s.id"],
)
def test_a_key_that_nothing_guards_fails(tmp_path: Path, condition: str) -> None:
    log = DeltaLog(tmp_path)
    log.write(_table([("s", 1, "x")]))
    merger = log.merge(_table([("s", 1, "x")]), condition, "s", "t").when_matched_delete()
    with pytest.raises(PredicateError, match="'x'"):
        merger.execute()
    assert log.snapshot().version == 0


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("t.id = s.n", [(1, "a"), (2, "b")]),
        ("t.v = s.n", [(1, "a"), (2, "b")]),
        ("t.id > s.n", [(1, "a"), (2, "b")]),
        ("t.id = s.id AND s.n IS NULL", [(1, None), (2, "b")]),
        ("t.id = coalesce(s.n, 2)", [(1, "a"), (2, None)]),
    ],
)
def test_a_column_without_a_type_is_null_of_any(
    tmp_path: Path, condition: str, rows: list[tuple[Any, ...]]
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    source = pa.table({"id": [1], "n": pa.nulls(1)})
    log.merge(source, condition, "s", "t").when_matched_update({"v": "s.n"}).execute()
    assert sorted(tuple(row.values()) for row in log.snapshot().scan().to_arrow().to_pylist()) == rows


def test_a_row_that_is_changed_twice_is_an_error_wherever_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2]}))
    monkeypatch.setattr(InProcessDml, "rewrite", lambda *_, **__: Rewritten(seen=True, ambiguous=True))
    with pytest.raises(UnsupportedOperationError, match="multiple source rows"):
        log.merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t").when_matched_delete().execute()
    assert log.snapshot().version == 0


@pytest.mark.parametrize("condition", ["s.op = 'update'", "false"])
def test_pairs_count_whatever_the_conditions_of_clauses_say(tmp_path: Path, condition: str) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1, 2]}))
    source = pa.table({"id": [1, 1], "op": ["update", "none"]})
    with pytest.raises(UnsupportedOperationError, match="multiple source rows"):
        log.merge(source, "t.id = s.id", "s", "t").when_matched_delete(condition).execute()
    assert log.snapshot().version == 0
