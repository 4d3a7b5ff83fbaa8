"""Dimensions of many keys, each with random events of its own, are what the model says, however events come."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaTable
from spark_tests.behaviour.spark.commands.apply_changes import model
from spark_tests.behaviour.spark.commands.apply_changes.model import Event
from spark_tests.full_form import FULL

pytestmark = pytest.mark.long

in_full = pytest.mark.skipif(not FULL, reason="DELTA_DS_FULL=1: half a minute")
KEYS = 400 if FULL else 120
EVENTS = "id long, ts long, op string, city string, note string"


def dimension(spark: SparkSession, path: Path, **columns: str) -> DeltaTable:
    builder = DeltaTable.create(spark).location(str(path)).addColumn("id", "bigint")
    for name, kind in {"city": "string", "note": "string", **columns}.items():
        builder = builder.addColumn(name, kind)
    return builder.execute()


def type1(spark: SparkSession, path: Path, **more: str) -> DeltaTable:
    return dimension(spark, path, _sequence="bigint", **more)


def type2(spark: SparkSession, path: Path, **more: str) -> DeltaTable:
    return dimension(spark, path, valid_from="bigint", valid_to="bigint", **more)


def frame(spark: SparkSession, events: Sequence[Event]) -> DataFrame:
    return spark.createDataFrame(list(events), EVENTS).coalesce(1)


def builder(table: DeltaTable, events: DataFrame) -> Any:
    return (
        table.applyChanges(events).keys("id").sequenceBy("ts").applyAsDeletes("op = 'D'").exceptColumns("op")
    )


def rows(table: DeltaTable, *columns: str, where: str = "true") -> set[tuple[Any, ...]]:
    found = [tuple(row) for row in table.toDF().where(where).select("id", "city", "note", *columns).collect()]
    assert len(found) == len(set(found))
    return set(found)


def batches(events: Sequence[Event], count: int, seed: int) -> list[list[Event]]:
    dice = random.Random(seed)
    found: list[list[Event]] = [[] for _ in range(count)]
    for event in events:
        dice.choice(found).append(event)
    return found


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return model.random_events(11, KEYS)


def test_with_late_events_any_order_of_any_batches_gives_the_same_table(
    spark: SparkSession, tmp_path: Path, events: list[Event]
) -> None:
    one = type1(spark, tmp_path / "1", late="string")
    two = type2(spark, tmp_path / "2", late="string", is_current="boolean")
    parts = batches(events, 3, 5)
    for part in [*parts, parts[1]]:  # one of them comes again
        builder(one, frame(spark, part)).lateEvents("late").scd1().execute()
        builder(two, frame(spark, part)).lateEvents("late").scd2(current="is_current").execute()
    assert rows(one, "_sequence", where="late IS NULL") == model.type1(events)
    deleted = {
        (of[-1].id, None, None, of[-1].ts) for of in model.in_order(events).values() if of[-1].op == "D"
    }
    assert rows(one, "_sequence", where="late = 'delete'") == deleted
    assert rows(two, "valid_from", "valid_to", where="late IS NULL") == model.type2(events)
    assert rows(two, "valid_from", "late", where="late IS NOT NULL") == model.markers(events)
    assert two.toDF().where("late IS NOT NULL AND (valid_from <> valid_to OR is_current)").count() == 0
    # The rows that hold are those of type 1, but for the place at which they began.
    current = {row[:3] for row in rows(two, where="is_current")}
    assert current == {row[:3] for row in model.type1(events)}
    assert two.history(1).first()["version"] == 3  # the batch that came again made no version


def test_batches_in_order_give_the_same_table_as_one(
    spark: SparkSession, tmp_path: Path, events: list[Event]
) -> None:
    one, two = type1(spark, tmp_path / "1"), type2(spark, tmp_path / "2")
    for low, high in ((0, 4), (4, 9), (9, 99)):
        part = frame(spark, [event for event in events if low < event.ts <= high])
        builder(one, part).scd1().execute()
        builder(two, part).scd2().execute()
        builder(two, part).scd2().execute()
    assert rows(one, "_sequence") == model.type1(events)
    assert rows(two, "valid_from", "valid_to") == model.type2(events)
    at_once = type2(spark, tmp_path / "3", is_current="boolean")
    done = builder(at_once, frame(spark, events)).scd2(current="is_current").execute().first()
    assert done.num_inserted_rows == done.num_affected_rows == len(model.type2(events))
    assert rows(at_once, "valid_from", "valid_to") == model.type2(events)
    assert at_once.history(1).first()["version"] == 1
    # Versions of a key never overlap, and the rows that hold are those of type 1.
    view = at_once.toDF().alias("a").join(at_once.toDF().alias("b"), "id")
    overlap = "a.valid_from < b.valid_from AND (a.valid_to IS NULL OR a.valid_to > b.valid_from)"
    assert view.where(overlap).count() == 0
    assert {row[:3] for row in rows(at_once, where="is_current")} == {row[:3] for row in model.type1(events)}


@in_full
def test_late_upserts_overwrite_nothing_newer_and_cut_versions_in_two(
    spark: SparkSession, tmp_path: Path
) -> None:
    upserts = [event for event in model.random_events(3, KEYS) if event.op == "U"]
    different = [event._replace(note=f"n{event.ts}") for event in upserts]  # each opens a version
    one, two = type1(spark, tmp_path / "1"), type2(spark, tmp_path / "2")
    for part in batches(different, 2, 8):
        builder(one, frame(spark, part)).scd1().execute()
        builder(two, frame(spark, part)).scd2().execute()
    assert rows(one, "_sequence") == model.type1(different)
    assert rows(two, "valid_from", "valid_to") == model.type2(different)


@in_full
def test_changes_of_columns_without_history_go_into_the_version_that_holds(
    spark: SparkSession, tmp_path: Path, events: list[Event]
) -> None:
    two = type2(spark, tmp_path / "2", seen="bigint")
    for low, high in ((0, 5), (5, 99)):
        part = frame(spark, [event for event in events if low < event.ts <= high])
        builder(two, part).trackHistoryExcept("note").scd2(sequence="seen").execute()
    assert rows(two, "valid_from", "valid_to") == model.type2(events, tracked=("city",))
    late = (
        frame(spark, [Event(10_000, 5, "U", "a", "new")]),
        frame(spark, [Event(10_000, 3, "U", "a", "old")]),
    )
    for part in (*late, frame(spark, [Event(10_000, 4, "U", "a", "older than the first")])):
        builder(two, part).trackHistory("city").scd2(sequence="seen").execute()
    assert rows(two, "valid_from", "valid_to", "seen", where="id = 10000") == {
        (10_000, "a", "new", 3, None, 5)
    }
