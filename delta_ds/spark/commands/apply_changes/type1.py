"""Type 1: the last event of each key becomes the row of the table, or takes it away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.commands.apply_changes.spec import DELETED, DELETES, SEQUENCE, Spec
from delta_ds.spark.commands.merge.clauses import Clause
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE, EVENTS = "t", "s"
_LAST, _CLASH = "last", "clash"


def last_events(spec: Spec, source: DataFrame) -> DataFrame:
    """Of the events of each key the one that counts: the last by sequence, of a delete and another the other."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    upserts = F.expr(f"NOT {DELETES}")
    order = Window.partitionBy(*spec.key_columns).orderBy(SEQUENCE, upserts)
    found = spec.events(source).select(
        "*", F.lead(F.lit(True)).over(order).isNull().alias(_LAST), spec.clashes().alias(_CLASH)
    )
    deletes = F.when(F.col(_CLASH), spec.ambiguous().cast("boolean")).otherwise(F.col(DELETES))
    return found.where(f"{_LAST} OR {_CLASH}").withColumn(DELETES, deletes).drop(_LAST, _CLASH)


def condition(spec: Spec) -> str:
    """Which row of the table an event is about."""
    return " AND ".join(f"{TABLE}.{quoted(key)} = {EVENTS}.{spec.own[key]}" for key in spec.keys)


def clauses(spec: Spec) -> tuple[Clause, ...]:
    """What a MERGE of `last_events` does."""
    assert spec.kept_sequence is not None
    kept, given = f"{TABLE}.{quoted(spec.kept_sequence)}", f"{EVENTS}.{SEQUENCE}"
    newer = f"({kept} IS NULL OR {given} > {kept}"
    if spec.late is not None:
        newer += (
            f" OR ({given} = {kept} AND NOT {EVENTS}.{DELETES} AND {TABLE}.{quoted(spec.late)} = '{DELETED}')"
        )
    newer += ")"
    values = {quoted(name): f"{EVENTS}.{spec.own[name]}" for name in spec.values}
    sequence = {quoted(spec.kept_sequence): given}
    keys = {quoted(name): f"{EVENTS}.{spec.own[name]}" for name in spec.keys}
    if spec.late is None:
        upserted = {**values, **sequence}
        return (
            Clause("matched", "delete", f"{newer} AND {EVENTS}.{DELETES}", None),
            Clause("matched", "update", newer, upserted),
            Clause("not_matched", "insert", f"NOT {EVENTS}.{DELETES}", {**keys, **upserted}),
        )
    # A deleted row stays without its values: an older event that comes later finds that it is older.
    remembered = {
        **{name: f"CASE WHEN NOT {EVENTS}.{DELETES} THEN {value} END" for name, value in values.items()},
        **sequence,
        quoted(spec.late): f"CASE WHEN {EVENTS}.{DELETES} THEN '{DELETED}' END",
    }
    return (
        Clause("matched", "update", newer, remembered),
        Clause("not_matched", "insert", None, {**keys, **remembered}),
    )
