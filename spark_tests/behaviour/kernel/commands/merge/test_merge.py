"""MERGE without Spark: the rows afterwards, what readers of changes see, row ids, and what is refused."""

from __future__ import annotations

import datetime
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.api.merge import TableMerger
from delta_ds.exceptions import UnsupportedOperationError
from spark_tests.full_form import examples

Row = dict[str, Any]
Pair = Callable[[Row, Row], "bool | None"]

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone.utc)
# The key's type in the table, in the source, and values.
KEYS: dict[str, tuple[pa.DataType, pa.DataType, list[Any]]] = {
    "long": (pa.int64(), pa.int64(), [None, 0, 1, 2, 2**62]),
    "int of long": (pa.int32(), pa.int64(), [None, 0, 1, 2]),
    "double": (pa.float64(), pa.float64(), [None, 0.0, -0.0, math.nan, 1.5]),
    "string": (pa.string(), pa.large_string(), [None, "", "a", "b"]),
    "binary": (pa.binary(), pa.binary(), [None, b"", b"\0", b"a"]),
    "bool": (pa.bool_(), pa.bool_(), [None, True, False]),
    "date": (pa.date32(), pa.date32(), [None, DAY, datetime.date(1, 1, 1)]),
    "timestamp": (pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Paris"), [None, MOMENT]),
    "decimal": (pa.decimal128(10, 2), pa.decimal128(12, 3), [None, Decimal("0"), Decimal("1.5")]),
}
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def _equal(left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def _both(left: bool | None, right: bool | None) -> bool | None:
    return False if left is False or right is False else None if left is None or right is None else True


def _less(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else bool(left < right)


def _null_safe(left: Any, right: Any) -> bool:
    return left is right if left is None or right is None else bool(_equal(left, right))


PREDICATES: dict[str, Pair] = {
    "t.k = s.k": lambda t, s: _equal(t["k"], s["k"]),
    "s.k <=> t.k": lambda t, s: _null_safe(t["k"], s["k"]),
    "t.k = s.k AND t.p = s.p": lambda t, s: _both(_equal(t["k"], s["k"]), _equal(t["p"], s["p"])),
    "t.k = s.k AND s.v > t.v": lambda t, s: _both(_equal(t["k"], s["k"]), _less(t["v"], s["v"])),
    "t.p = s.p AND t.v = s.v + 1": lambda t, s: _both(
        _equal(t["p"], s["p"]), _equal(t["v"], None if s["v"] is None else s["v"] + 1)
    ),
    "t.k = s.k AND t.p = 'a'": lambda t, s: _both(_equal(t["k"], s["k"]), _equal(t["p"], "a")),
    "t.v < s.v AND s.p = 'b'": lambda t, s: _both(_less(t["v"], s["v"]), _equal(s["p"], "b")),
    "false": lambda t, s: False,
}


class _Clause:
    """A clause, and what it means for a row of the table, of the source, or of both."""

    def __init__(
        self,
        add: Callable[[TableMerger], object],
        applies: Pair = lambda t, s: True,
        row: Callable[[Row, Row], Row | None] = lambda t, s: None,
        *,
        always: bool = False,
        deletes: bool = False,
    ) -> None:
        self.add, self.applies, self.row = add, applies, row
        self.always, self.deletes = always, deletes


NEVER: Row = {}


def _plus(value: int | None, more: int) -> int | None:
    return None if value is None else value + more


MATCHED = [
    _Clause(
        lambda m: m.when_matched_update({"v": "s.v + 1", "t.p": "s.p"}, "s.v > t.v"),
        lambda t, s: _less(t["v"], s["v"]),
        lambda t, s: {**t, "v": _plus(s["v"], 1), "p": s["p"]},
    ),
    _Clause(lambda m: m.when_matched_delete("t.p = 'a'"), lambda t, s: _equal(t["p"], "a"), deletes=True),
    _Clause(
        lambda m: m.when_matched_update({"v": "t.v + 100"}, "s.p = 'b'"),
        lambda t, s: _equal(s["p"], "b"),
        lambda t, s: {**t, "v": _plus(t["v"], 100)},
    ),
    _Clause(
        lambda m: m.when_matched_update_all(except_cols=["n"]),
        row=lambda t, s: {**s, "n": t["n"]},
        always=True,
    ),
    _Clause(lambda m: m.when_matched_delete(), always=True, deletes=True),
]
NOT_MATCHED = [
    _Clause(
        lambda m: m.when_not_matched_insert({"n": "s.n", "v": "s.v * 10"}, "s.v > 1"),
        lambda t, s: _less(1, s["v"]),
        lambda t, s: {"n": s["n"], "k": None, "v": s["v"] * 10, "p": None},
    ),
    _Clause(
        lambda m: m.when_not_matched_insert_all("s.p = 'a'"),
        lambda t, s: _equal(s["p"], "a"),
        lambda t, s: dict(s),
    ),
    _Clause(lambda m: m.when_not_matched_insert_all(), row=lambda t, s: dict(s), always=True),
]
BY_SOURCE = [
    _Clause(
        lambda m: m.when_not_matched_by_source_delete("t.v = 1"),
        lambda t, s: _equal(t["v"], 1),
        deletes=True,
    ),
    _Clause(
        lambda m: m.when_not_matched_by_source_update({"v": "t.v + 7"}, "v > 1"),
        lambda t, s: _less(1, t["v"]),
        lambda t, s: {**t, "v": _plus(t["v"], 7)},
    ),
    _Clause(
        lambda m: m.when_not_matched_by_source_update({"p": "'c'"}),
        row=lambda t, s: {**t, "p": "c"},
        always=True,
    ),
    _Clause(lambda m: m.when_not_matched_by_source_delete(), always=True, deletes=True),
]


def _first(clauses: list[_Clause], target: Row, source: Row) -> _Clause | None:
    return next((c for c in clauses if c.applies(target, source) is True), None)


def _model(
    target: list[Row], source: list[Row], on: Pair, kinds: tuple[list[_Clause], ...]
) -> tuple[list[Row], dict[str, int]] | None:
    """The rows afterwards and how many changed; None where several rows of the source match one of the table."""
    matched, not_matched, by_source = kinds
    after: list[Row] = []
    counts = {"updated": 0, "deleted": 0, "inserted": 0}
    seen: set[int] = set()
    may_repeat = len(matched) == 1 and matched[0].always and matched[0].deletes
    for row in target:
        pairs = [n for n, other in enumerate(source) if on(row, other) is True]
        seen.update(pairs)
        if len(pairs) > 1 and not may_repeat and (matched or by_source):
            return None
        clause = _first(matched, row, source[pairs[0]]) if pairs else _first(by_source, row, NEVER)
        if clause is None:
            after.append(row)
        elif clause.deletes:
            counts["deleted"] += 1
        else:
            counts["updated"] += 1
            new = clause.row(row, source[pairs[0]] if pairs else NEVER)
            assert new is not None
            after.append(new)
    for n, other in enumerate(source):
        clause = None if n in seen else _first(not_matched, NEVER, other)
        if clause is not None:
            counts["inserted"] += 1
            new = clause.row(NEVER, other)
            assert new is not None
            after.append(new)
    return after, counts


def _comparable(rows: list[Row]) -> Counter[str]:
    return Counter(repr([row[name] for name in ("n", "k", "v", "p")]) for row in rows)


@st.composite
def _clauses(draw: Callable[..., Any]) -> tuple[list[_Clause], ...]:
    kinds = []
    for options in (MATCHED, NOT_MATCHED, BY_SOURCE):
        some = draw(st.lists(st.sampled_from([c for c in options if not c.always]), max_size=2, unique=True))
        last = draw(st.sampled_from([None, *(c for c in options if c.always)]))
        kinds.append([*some, *([] if last is None else [last])])
    return tuple(kinds)


def _rows(draw: Callable[..., Any], values: list[Any], start: int, most: int) -> list[Row]:
    row = st.tuples(st.sampled_from(values), st.sampled_from([None, 0, 1, 2, 3]), st.sampled_from("ab"))
    return [
        {"n": start + n, "k": k, "v": v, "p": p}
        for n, (k, v, p) in enumerate(draw(st.lists(row, max_size=most)))
    ]


@st.composite
def _tables(draw: Callable[..., Any]) -> tuple[str, list[Row], list[Row]]:
    kind = draw(st.sampled_from(sorted(KEYS)))
    values = KEYS[kind][2]
    return kind, _rows(draw, values, 0, 10), _rows(draw, values, 100, 5)


def _table(rows: list[Row], key: pa.DataType) -> pa.Table:
    kind = pa.schema([("n", pa.int64()), ("k", key), ("v", pa.int64()), ("p", pa.string())])
    return pa.Table.from_pylist(rows, kind)


def _written(folder: str, rows: list[Row], key: pa.DataType, files: int, options: dict[str, str]) -> DeltaLog:
    log = DeltaLog(folder)
    for n in range(files):
        log.write(_table(rows[n::files], key), options=options if not n else {})
    return log


@given(
    tables=_tables(),
    on=st.sampled_from(sorted(PREDICATES)),
    kinds=_clauses(),
    files=st.integers(1, 3),
    properties=st.sets(st.sampled_from(sorted(PROPERTIES))),
    partitioned=st.booleans(),
)
@settings(max_examples=examples(80), deadline=None)
def test_rows_afterwards_are_those_of_a_merge_row_by_row(
    tables: tuple[str, list[Row], list[Row]],
    on: str,
    kinds: tuple[list[_Clause], ...],
    files: int,
    properties: set[str],
    partitioned: bool,
) -> None:
    kind, target, source = tables
    if not any(kinds):
        return
    of_table, of_source, _ = KEYS[kind]
    options = {name: PROPERTIES[name] for name in properties} | ({"partitionBy": "p"} if partitioned else {})
    with tempfile.TemporaryDirectory() as folder:
        log = _written(folder, target, of_table, files, options)
        metadata = ("row_id",) if "delta.enableRowTracking" in properties else ()
        before = log.snapshot().scan(metadata_columns=metadata).to_arrow().to_pylist()
        version = log.snapshot().version
        merger = log.merge(_table(source, of_source), on, "s", "t")
        for clause in (c for some in kinds for c in some):
            clause.add(merger)
        # What the two sides hold is what Arrow gives back of them.
        other = _table(source, of_source).to_pylist()
        wanted = _model(before, other, PREDICATES[on], kinds)
        if wanted is None:
            with pytest.raises(UnsupportedOperationError, match="multiple source rows"):
                merger.execute()
            assert log.snapshot().version == version
            assert sorted(path.name for path in Path(folder).rglob("*.parquet")) == sorted(
                Path(path).name for path in log.snapshot().files()["path"].to_pylist()
            )
            return
        rows, counts = wanted
        result = merger.execute()
        after = log.snapshot().scan(metadata_columns=metadata).to_arrow().to_pylist()
        assert _comparable(after) == _comparable(_as(rows, of_table))
        assert result.num_target_rows_updated == counts["updated"]
        assert result.num_target_rows_deleted == counts["deleted"]
        assert result.num_target_rows_inserted == counts["inserted"]
        assert (result.version is not None) == any(counts.values())
        if metadata:
            ids = {row["n"]: row["_metadata"]["row_id"] for row in before}
            assert all(
                ids.get(row["n"], row["_metadata"]["row_id"]) == row["_metadata"]["row_id"] for row in after
            )
            assert len({row["_metadata"]["row_id"] for row in after}) == len(after)
        if result.version is not None and "delta.enableChangeDataFeed" in properties:
            commit = Path(folder, "_delta_log", f"{result.version:020d}.json").read_text()
            # New files tell of new rows all there is to tell.
            assert ('"cdc":' in commit) == bool(counts["deleted"] or counts["updated"])
            _check_feed(log, result.version, before, after, counts)


def _as(rows: list[Row], key: pa.DataType) -> list[Row]:
    """The rows as a table has them."""
    plain = [{name: row[name] for name in ("n", "k", "v", "p")} for row in rows]
    keys = pa.array(
        [row["k"] for row in plain], None if key != pa.decimal128(10, 2) else pa.decimal128(12, 3)
    )
    cast = pa.chunked_array([keys]).cast(key) if len(rows) else []
    return [{**row, "k": k.as_py()} for row, k in zip(plain, cast, strict=True)]


def _check_feed(
    log: DeltaLog, version: int, before: list[Row], after: list[Row], counts: dict[str, int]
) -> None:
    changes = log.changes(version, version).to_arrow().to_pylist()
    by_kind = {
        kind: _comparable([c for c in changes if c["_change_type"] == kind])
        for kind in ("delete", "insert", "update_preimage", "update_postimage")
    }
    assert _comparable(before) - by_kind["delete"] - by_kind["update_preimage"] + by_kind["insert"] + by_kind[
        "update_postimage"
    ] == _comparable(after)
    assert by_kind["delete"].total() == counts["deleted"]
    assert by_kind["insert"].total() == counts["inserted"]
    assert by_kind["update_preimage"].total() == by_kind["update_postimage"].total() == counts["updated"]
