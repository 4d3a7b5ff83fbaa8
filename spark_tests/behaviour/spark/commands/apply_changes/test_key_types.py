"""Keys of every type, values and columns of any name: dimensions are what the model says.

Each key differs from the first one in one column, by one value; an event writes its key in one of the ways that the
table takes for the same, as texts of `char` with and without blanks. Events come late and more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvariantViolationError, SchemaError
from spark_tests.behaviour.spark.commands.apply_changes import model
from spark_tests.behaviour.spark.commands.apply_changes.model import Event
from spark_tests.full_form import FULL

pytestmark = pytest.mark.long

# Type of the column, and its values: each as SQL writes it, in all of its forms.
KEYS: dict[str, list[list[str]]] = {
    "boolean": [["false"], ["true"]],
    "tinyint": [["0Y"], ["-128Y"]],
    "smallint": [["0Y"], ["7Y"]],  # narrower in the source
    "int": [["0"], ["2147483647"]],
    "bigint": [["0"], ["-5"]],
    "float": [["0F", "-0F"], ["float('NaN')"], ["1.5F"]],
    "double": [["0D", "-0D"], ["double('NaN')"], ["double('-Infinity')"]],
    "decimal(10,2)": [["0.0"], ["1.5"]],
    "string": [["''"], ["'a'"], ["'a '"], ["'A'"]],
    "char(5)": [["''", "'  '", "'     '"], ["'ab'", "'ab   '"], ["'b'"], ["' b'"]],
    "varchar(5)": [["''"], ["'ab'"], ["'ab   '"]],
    "binary": [["X''"], ["X'00'"], ["X'0000'"]],
    "date": [["DATE'1970-01-01'"], ["DATE'+12345-01-01'"], ["DATE'-0044-03-15'"], ["DATE'9999-12-31'"]],
    "timestamp": [["TIMESTAMP'1970-01-01 00:00:00'"], ["TIMESTAMP'+12345-01-01 00:00:00'"]],
    "timestamp_ntz": [["TIMESTAMP_NTZ'1970-01-01 00:00:00'"], ["TIMESTAMP_NTZ'-0044-03-15 00:00:00'"]],
}
# Names that columns have inside; `who` tells which key an event is about, without being one.
VALUES = {"who": "int", "_pydelta_do": "char(4)", "k0": "string", "v0": "array<char(4)>", "until": "date"}
STATES = ["'a'", "'a   '", "'b'", "NULL"]
_FIRST = [forms[0] for forms in KEYS.values()]


class Key(NamedTuple):
    """The number of the column in which a key differs from the first, and of its value there."""

    column: int
    value: int


ALL_KEYS = [Key(0, 0)] + [
    Key(column, value) for column, forms in enumerate(KEYS.values()) for value in range(1, len(forms))
]


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Some events of each key, at most one at a place; few states, so that some change nothing."""
    found = []
    for who in range(len(ALL_KEYS)):
        for ts in sorted(draw(st.sets(st.integers(1, 5), min_size=1, max_size=3))):
            state = draw(st.sampled_from([None, *STATES]))
            found.append(Event(who, ts, "D" if state is None else "U", state, None))
    return found


def frame(spark: SparkSession, events: Sequence[Event], dice: Any) -> DataFrame:
    def row(event: Event) -> str:
        key = ALL_KEYS[event.id]
        forms = [
            values[key.value] if at == key.column else values[0] for at, values in enumerate(KEYS.values())
        ]
        written = [dice.choice(of) for of in forms]
        state = "CAST(NULL AS STRING)" if event.city in (None, "NULL") else str(event.city)
        day = "DATE'+20000-01-01'" if event.city == "'b'" else "DATE'0001-01-01'"
        values = [str(event.id), state, state, f"array({state})", day]
        return f"({', '.join([*written, *values, str(event.ts), repr(event.op)])})"

    columns = ", ".join(f"`{name}`" for name in [*_names(), *VALUES, "sequence", "deletes"])
    return spark.sql(f"SELECT * FROM VALUES {', '.join(map(row, events))} AS t({columns})").coalesce(1)


def _names() -> list[str]:
    return [f"key {name}" for name in KEYS]


def table(spark: SparkSession, path: Path, *kept: str) -> DeltaTable:
    builder = DeltaTable.create(spark).location(str(path)).property("delta.columnMapping.mode", "name")
    for name, kind in {**dict(zip(_names(), KEYS, strict=True)), **VALUES}.items():
        builder = builder.addColumn(name, kind)
    for name in kept:
        builder = builder.addColumn(name, "string" if name == "late" else "int")
    return builder.execute()


def states(found: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    shown = found.toDF().where("late IS NULL").selectExpr("who", "rtrim(_pydelta_do)", *columns)
    return sorted((tuple(row) for row in shown.collect()), key=repr)


def wanted(rows: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of the model in the form of `states`: without the note."""
    return sorted(((row[0], row[1], *row[3:]) for row in rows), key=repr)


def _as_stored(event: Event) -> Event:
    text = None if event.city in (None, "NULL") else str(event.city).strip("' ")
    return event._replace(city=text)


@pytest.mark.skipif(not FULL, reason="takes minutes: in the full form only, DELTA_DS_FULL=1")
@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_dimensions_of_all_types_of_keys_are_what_the_model_says(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, history: list[Event], dice: Any
) -> None:
    path = tmp_path_factory.mktemp("keys")
    one = table(spark, path / "1", "_sequence", "late")
    two = table(spark, path / "2", "valid_from", "valid_to", "late")
    parts: list[list[Event]] = [[], []]
    for event in history:
        dice.choice(parts).append(event)
    parts[1] += dice.sample(parts[0], len(parts[0]) // 2)  # some come again
    for part in filter(None, parts):
        for stored in (one, two):
            events = stored.applyChanges(frame(spark, [*part, part[0]], dice)).keys(*_names())
            events = events.sequenceBy("sequence").applyAsDeletes("deletes = 'D'").exceptColumns("deletes")
            events = events.lateEvents("late")
            (events.scd1() if stored is one else events.scd2()).execute()
    known = list(map(_as_stored, history))
    assert states(one, "_sequence") == wanted(model.type1(known))
    assert states(two, "valid_from", "valid_to") == wanted(model.type2(known))


def dimension(spark: SparkSession, path: Path, columns: str, partitions: Sequence[str] = ()) -> DeltaTable:
    builder = DeltaTable.create(spark).location(str(path))
    for column in columns.split(", "):
        builder = builder.addColumn(*column.split(" "))
    return (builder.partitionedBy(*partitions) if partitions else builder).execute()


@pytest.mark.parametrize("build", ["scd1", "scd2"])
def test_events_that_come_again_change_nothing_in_values_that_the_table_writes_otherwise(
    spark: SparkSession, tmp_path: Path, build: str
) -> None:
    kept = "_sequence int" if build == "scd1" else "valid_from int, valid_to int"
    columns = f"k date, p string, c char(4), s struct<x:char(3)>, m map<char(2),string>, {kept}"
    found = dimension(spark, tmp_path / "t", columns, ["p"])
    event = "DATE'+12345-01-01' k, '' p, 'x' c, named_struct('x', 'y') s, map('a', 'b') m"  # an empty partition is null
    for day in (1, 1, 2):
        events = found.applyChanges(spark.sql(f"SELECT {event}, {day} day")).keys("k").sequenceBy("day")
        getattr(events, build)().execute()
    assert found.toDF().count() == 1
    written = [int(c["operationMetrics"].get("numOutputRows", 0)) for c in DeltaLog(tmp_path / "t").history()]
    assert sum(written) == (2 if build == "scd1" else 1)  # the sequence of the last one is kept


def test_what_the_table_would_not_keep_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    found = dimension(
        spark, tmp_path / "t", "k string, c string, padded char(9), valid_from int, valid_to int", ["k"]
    )
    events = found.applyChanges(spark.sql("SELECT '' k, 'x' c, 1 day")).keys("k").sequenceBy("day")
    with pytest.raises(InvariantViolationError, match=r"null in its key \(k\)"):
        events.scd2().execute()
    late = found.applyChanges(spark.sql("SELECT 'a' k, 'x' c, 1 day")).keys("k").sequenceBy("day")
    with pytest.raises(SchemaError, match=r"'padded' .* is of type char\(9\); .* of string"):
        late.lateEvents("padded").scd2().execute()
    assert DeltaLog(tmp_path / "t").snapshot().version == 0
