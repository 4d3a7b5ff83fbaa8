"""DELETE, UPDATE and MERGE leave the rows that one pass over the table would leave, whatever their queries are.

The model below is that one pass, in Python. Rows, metrics and change feed have to agree with it in every layout.
"""

from __future__ import annotations

import datetime
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.spark.commands.dml_command import DmlExecution
from spark_tests.behaviour.spark.commands.row_changes import found_by_arrow
from spark_tests.behaviour.spark.commands.test_row_commands import FEED, TRACKING, VECTORS
from spark_tests.full_form import FULL

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

SAMPLED = {
    "rewritten": {},
    "marked": VECTORS,
    "rewritten-with-feed": FEED,
    "marked-with-feed-and-ids": {**VECTORS, **FEED, **TRACKING},
}
LAYOUTS = {
    **SAMPLED,
    "marked-with-feed": {**VECTORS, **FEED},
    "rewritten-with-ids": TRACKING,
    "marked-with-ids": {**VECTORS, **TRACKING},
    "rewritten-with-feed-and-ids": {**FEED, **TRACKING},
}
MERGES = 25 if FULL else 3

Row = tuple[int | None, int | None]
Pair = tuple[Row | None, Row | None]


# --- the model


def _more(a: int | None, b: int) -> bool:
    return a is not None and a > b


# SQL and its meaning for a row of the table `t` and one of the source `s`.
MATCHED = {
    "s.v > 4": lambda t, s: _more(s[1], 4),
    "t.v IS NULL": lambda t, s: t[1] is None,
    "t.v > 3 AND s.v < 8": lambda t, s: _more(t[1], 3) and s[1] is not None and s[1] < 8,
}
BY_SOURCE = {"t.v > 2": lambda t, s: _more(t[1], 2), "t.k IS NULL": lambda t, s: t[0] is None}
NOT_MATCHED = {"s.v <> 5": lambda t, s: s[1] is not None and s[1] != 5}
VALUES = {
    "s.v": lambda t, s: s[1],
    "t.v + 1": lambda t, s: None if t[1] is None else t[1] + 1,
    "-1": lambda t, s: -1,
}


@dataclass(frozen=True)
class Clause:
    when: str
    do: str
    condition: str | None = None
    value: str = "-1"

    def holds(self, pair: Pair) -> bool:
        known: dict[str, Callable[..., bool]] = {**MATCHED, **BY_SOURCE, **NOT_MATCHED}
        return self.condition is None or known[self.condition](*pair)


@dataclass
class Outcome:
    rows: list[Row] = field(default_factory=list)
    changes: Counter[tuple[int | None, int | None, str]] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    refused: bool = False


def merged(table: list[Row], source: list[Row], clauses: list[Clause]) -> Outcome:
    found = Outcome()
    matches = [[s for s in source if s[0] is not None and s[0] == t[0]] for t in table]
    matched = [c for c in clauses if c.when == "matched"]
    harmless = [(c.do, c.condition) for c in matched] == [("delete", None)]
    looks = any(c.do != "insert" for c in clauses)
    found.refused = looks and not harmless and any(len(each) > 1 for each in matches)
    for row, each in zip(table, matches, strict=True):
        _become(found, (row, each[0] if each else None), "matched" if each else "by_source", clauses)
    keys = {t[0] for t in table}
    for row in source:
        if row[0] is None or row[0] not in keys:
            _become(found, (None, row), "not_matched", clauses)
    return found


def _become(found: Outcome, pair: Pair, when: str, clauses: list[Clause]) -> None:
    row, given = pair
    clause = next((c for c in clauses if c.when == when and c.holds(pair)), None)
    if clause is None:
        found.rows += [row] if row is not None else []
        return
    found.counted[clause.do] += 1
    if clause.do == "insert":
        assert given is not None
        found.rows.append(given)
        found.changes[(*given, "insert")] += 1
        return
    assert row is not None
    if clause.do == "delete":
        found.changes[(*row, "delete")] += 1
        return
    new = (row[0], VALUES[clause.value](row, given))
    found.rows.append(new)
    found.changes[(*row, "update_preimage")] += 1
    found.changes[(*new, "update_postimage")] += 1


# --- what is generated


def some_rows(random: random.Random, keys: int, count: int) -> list[Row]:
    def one_of(top: int) -> int | None:
        return None if random.random() < 0.15 else random.randrange(top)

    return [(one_of(keys), one_of(10)) for _ in range(count)]


def some_source(random: random.Random) -> list[Row]:
    rows = some_rows(random, 12, random.randrange(1, 7))
    if random.random() < 0.5:
        return rows + rows[:1]
    keys: dict[int | None, Row] = {row[0]: row for row in rows}
    return list(keys.values())


def some_clauses(random: random.Random) -> list[Clause]:
    found = []
    for _ in range(random.randrange(3)):
        value = random.choice(["s.v", "t.v + 1"])
        found.append(Clause("matched", random.choice(["update", "delete"]), random.choice([*MATCHED]), value))
    if random.random() < 0.5:
        # Alone it may delete what several rows match.
        last = random.choice(["update", "delete"])
        found = (
            [Clause("matched", "delete")]
            if random.random() < 0.5
            else [*found, Clause("matched", last, None, "s.v")]
        )
    if random.random() < 0.6:
        condition = random.choice([None, *BY_SOURCE])
        found.append(Clause("by_source", random.choice(["update", "delete"]), condition, "t.v + 1"))
    if random.random() < 0.6 or not found:
        found.append(Clause("not_matched", "insert", random.choice([None, *NOT_MATCHED])))
    return found


def run(table: DeltaTable, source: Any, clauses: list[Clause]) -> Any:
    merge = table.alias("t").merge(source.alias("s"), "t.k = s.k")
    for c in clauses:
        if c.when == "not_matched":
            merge = merge.whenNotMatchedInsert(c.condition, {"k": "s.k", "v": "s.v"})
        elif c.when == "matched":
            update = c.do == "update"
            merge = (
                merge.whenMatchedUpdate(c.condition, {"v": c.value})
                if update
                else merge.whenMatchedDelete(c.condition)
            )
        elif c.do == "update":
            merge = merge.whenNotMatchedBySourceUpdate(c.condition, {"v": c.value})
        else:
            merge = merge.whenNotMatchedBySourceDelete(c.condition)
    return merge.execute().collect()[0]


def _in_table(log: DeltaLog, *columns: str) -> list[Any]:
    found = log.snapshot().scan().to_arrow()
    return list(zip(*(found[name].to_pylist() for name in columns), strict=True))


def _in_feed(log: DeltaLog, version: int, *columns: str) -> Counter[Any]:
    found: pa.Table = log.changes(version, version).to_arrow()
    return Counter(zip(*(found[name].to_pylist() for name in (*columns, "_change_type")), strict=True))


@pytest.mark.parametrize("finder", ["arrow", "spark"])
@pytest.mark.parametrize("layout", LAYOUTS if FULL else SAMPLED)
def test_merges_leave_what_one_pass_leaves(
    spark: SparkSession, tmp_path: Path, layout: str, finder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by_arrow(monkeypatch, wanted=finder == "arrow")
    chance = random.Random(layout)
    rows = some_rows(chance, 8, 12)
    frame = spark.createDataFrame(rows, "k int, v int").repartition(2)
    frame.write.format("pydelta").options(**LAYOUTS[layout]).save(str(tmp_path))
    table, log = DeltaTable.forPath(spark, str(tmp_path)), DeltaLog(tmp_path)
    for _ in range(MERGES):
        source, clauses = some_source(chance), some_clauses(chance)
        before, want = log.snapshot().version, merged(rows, source, clauses)
        said = f"{clauses} of {source} on {rows}"
        given = spark.createDataFrame(source, "k int, v int")
        if want.refused:
            with pytest.raises(UnsupportedOperationError, match="multiple source rows matched"):
                run(table, given, clauses)
            assert log.snapshot().version == before, said
            continue
        answer = run(table, given, clauses)
        assert Counter(_in_table(log, "k", "v")) == Counter(want.rows), said
        done = [want.counted[kind] for kind in ("update", "delete", "insert")]
        assert tuple(answer) == (sum(done), *done), said
        version = log.snapshot().version
        if version > before:
            metrics = log.history(1)[0]["operationMetrics"]
            kinds = ("Updated", "Deleted", "Inserted")
            assert [int(metrics[f"numTargetRows{kind}"]) for kind in kinds] == done, said
            if FEED.items() <= LAYOUTS[layout].items():
                assert _in_feed(log, version, "k", "v") == want.changes, said
        rows = want.rows
        if len(rows) < 4:
            more = some_rows(chance, 8, 8)
            spark.createDataFrame(more, "k int, v int").write.format("pydelta").mode("append").save(
                str(tmp_path)
            )
            rows = rows + more


# --- the time of day


@pytest.mark.parametrize("layout", LAYOUTS if FULL else ["marked", "rewritten-with-feed"])
def test_a_command_has_one_time_of_day(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    """Every row tells when it was changed: that is one moment, and the rows are those that it chooses."""
    table, log = None, DeltaLog(tmp_path)
    for command in (update_now, merge_now, delete_now):
        start = F.timestamp_micros(F.expr("unix_micros(now()) + id * 60000 - 1000000"))
        rows = spark.range(0, 1000, 1, 2).select(
            "id", start.alias("ts"), F.lit(None).cast("timestamp").alias("at")
        )
        rows.write.format("pydelta").mode("overwrite").options(**LAYOUTS[layout]).save(str(tmp_path))
        table = DeltaTable.forPath(spark, str(tmp_path))
        before = dict(_in_table(log, "id", "ts"))
        command(table, spark)
        after = {n: (ts, at) for n, ts, at in _in_table(log, "id", "ts", "at")}
        assert len(after) == log.snapshot().scan().to_arrow().num_rows
        metrics = {k: int(v) for k, v in log.history(1)[0]["operationMetrics"].items() if "Rows" in k}
        if command is delete_now:
            gone = set(before) - set(after)
            assert metrics["numDeletedRows"] == len(gone)
            assert 0 < len(gone) < 1000
            assert max(before[n] for n in gone) < min(ts for ts, _ in after.values())
        else:
            (moment,) = {at for _, at in after.values()} - {None}
            assert set(after) == set(before)
            assert {n for n, (_, at) in after.items() if at} == {n for n, ts in before.items() if ts > moment}
            kinds = ("numUpdatedRows", "numTargetRowsUpdated")
            assert sum(metrics.get(k, 0) for k in kinds) == sum(ts > moment for ts in before.values()) > 0
        if FEED.items() <= LAYOUTS[layout].items():
            found = _in_feed(log, log.snapshot().version, "id")
            changed = {n for n, _ in found}
            assert set(found.values()) == {1}
            assert changed == (gone if command is delete_now else {n for n, (_, at) in after.items() if at})


def update_now(table: DeltaTable, spark: SparkSession) -> None:
    table.update("ts > current_timestamp()", {"at": "now()"})


def delete_now(table: DeltaTable, spark: SparkSession) -> None:
    table.delete(F.col("ts") <= F.now())


def merge_now(table: DeltaTable, spark: SparkSession) -> None:
    source = spark.range(0, 500).select("id", F.current_timestamp().alias("seen"))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate("t.ts > now()", {"at": "current_timestamp()"})
    merge = merge.whenMatchedUpdate("t.ts <= current_timestamp() AND t.at = s.seen", {"at": "s.seen"})
    merge = merge.whenNotMatchedBySourceUpdate("t.ts > current_timestamp()", {"at": "now()"})
    merge.execute()


def test_all_that_spark_calls_current_is_settled_also_in_subqueries(spark: SparkSession) -> None:
    from delta_ds.spark.engines.classic.resolution import ExpressionContext, resolve

    texts = [
        "current_timestamp()", "now()", "current_date()", "localtimestamp()", "unix_timestamp()", "current_time(3)",
        "current_user()", "session_user()", "current_catalog()", "current_database()", "current_timezone()",
        "cast('now' as timestamp)", "(SELECT max(now()) FROM range(2) WHERE current_date() > '2020-01-01')",
    ]  # fmt: skip
    frame = spark.range(1)
    context = ExpressionContext(frame)
    chosen = frame.select(*(F.expr(text).alias(f"v{n}") for n, text in enumerate(texts)))
    once, again = (resolve(frame, chosen, context) for _ in range(2))
    assert once is not None
    assert again is not None
    told = [e.text for e in once]
    assert not [text for text in told[:-2] if "current" in text or "now" in text or "stamp()" in text]
    columns = [e.column.alias(f"v{n}") for n, e in enumerate(once)]
    first = frame.select(*columns).collect()
    assert frame.select(*columns).collect() == first
    assert [e.text for e in again][:-2] == told[:-2]
    row = first[0]
    assert row[0] == row[1] == row[-1]
    assert row[2] == row[0].date() or abs(row[0] - datetime.datetime.now()) < datetime.timedelta(days=2)


def test_clauses_of_a_merge_are_one_flat_case(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in the other they would take a time that grows faster than their number."""
    found_by_arrow(monkeypatch, wanted=False)
    spark.range(4).withColumn("v", F.lit(0)).write.format("pydelta").save(str(tmp_path))
    merge = (
        DeltaTable.forPath(spark, str(tmp_path)).alias("t").merge(spark.range(9).alias("s"), "t.id = s.id")
    )
    for number in range(12):
        merge = merge.whenMatchedUpdate(f"s.id % 12 = {number}", {"v": f"{number} + 1"})
        merge = merge.whenNotMatchedInsert(f"s.id % 12 = {number}", {"id": "s.id", "v": f"-{number}"})
    update, insert = DmlExecution.rows_to_update, DmlExecution.insert
    with (
        mock.patch.object(DmlExecution, "rows_to_update", autospec=True, side_effect=update) as updates,
        mock.patch.object(DmlExecution, "insert", autospec=True, side_effect=insert) as inserts,
    ):
        merge.execute()
    for calls in (updates, inserts):
        plan = str(calls.call_args.args[1]._jdf.queryExecution().analyzed().toString())
        nested = re.search(r"CASE(?:(?!END).)*CASE", plan)
        assert "CASE" in plan
        assert nested is None, nested
    assert sorted(_in_table(DeltaLog(tmp_path), "id", "v")) == [(n, n + 1 if n < 4 else -n) for n in range(9)]
