"""Apply events to a table: a batch, or the batches of a stream, each in one MERGE."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.schema.types import DATE, INTEGER, LONG, SHORT, STRING, DecimalType
from delta_ds.records import replace
from delta_ds.spark.base.schema import from_spark, quoted
from delta_ds.spark.commands.apply_changes import type2
from delta_ds.spark.commands.apply_changes.spec import DELETED, DELETES, SEQUENCE, Asked, Spec, settled
from delta_ds.spark.commands.handle import Handle, open_handle
from delta_ds.spark.commands.merge.plan import Clause
from delta_ds.spark.commands.merge.run import run_merge
from delta_ds.spark.engines.connect.connect_bridge import ask
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.api.delta_log import DeltaLog
    from delta_ds.kernel.format.schema.types import DataType

# --- type 1: the last event of each key becomes the row of the table, or takes it away

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


# --- apply events to a table: a batch, or the batches of a stream, each in one MERGE

Txn = tuple[str, int]
# Whose bounds, as literals, mean the same whatever the session says.
_BOUNDED = (SHORT, INTEGER, LONG, DATE, STRING)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def specified(handle: Handle, asked: Asked, source: DataFrame) -> Spec:
    """What was asked for, checked against the table as it is; see `settled`."""
    target = from_spark(read(handle.spark, handle.options).schema)
    return settled(asked, source, target, ask(handle.log, _partition_columns), handle.where)


def _partition_columns(log: DeltaLog) -> list[str]:
    return log.snapshot().partition_columns


def apply_events(handle: Handle, asked: Asked, source: DataFrame, txn: Txn | None = None) -> DataFrame:
    """Apply a batch; see `DeltaApplyChangesBuilder.execute`.

    Parameters
    ----------
    txn
        The application and version that the batch counts as; None for those of the session.
    """
    spec = specified(handle, asked, source)
    target = replace(handle, alias=TABLE)
    if spec.stored == 1:
        events = last_events(spec, source).alias(EVENTS)
        return run_merge(target, events, condition(spec), clauses(spec), False, txn)
    with engine_of(handle.spark).frames.kept(type2.new_events(spec, source)) as events:
        rows = type2.changed_rows(spec, events, _near(spec, events, read(handle.spark, handle.options)))
        return run_merge(
            target, rows.alias(type2.EVENTS), type2.condition(spec), type2.clauses(spec), False, txn
        )


def _near(spec: Spec, events: DataFrame, table: DataFrame) -> DataFrame:
    """The rows of the table between the smallest and the largest keys, so that files are skipped."""
    from pyspark.sql import functions as F

    bounded = [
        key for key in spec.keys if spec.types[key] in _BOUNDED or isinstance(spec.types[key], DecimalType)
    ]
    if not bounded:
        return table
    ends = [_end(end(spec.own[key]), spec.types[key]) for key in bounded for end in (F.min, F.max)]
    found = events.agg(*(end.alias(f"b{at}") for at, end in enumerate(ends))).collect()[0]
    for at, key in enumerate(bounded):
        low, high = (_bound(value, spec.types[key]) for value in found[2 * at : 2 * at + 2])
        if low is not None:
            table = table.where(F.col(quoted(key)) >= F.lit(low))
        if high is not None:
            table = table.where(F.col(quoted(key)) <= F.lit(high))
    return table


def _end(value: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    return F.unix_date(value) if kind == DATE else value


def _bound(value: Any, kind: DataType) -> Any:
    """A value as a literal; None for a date that Python does not have, which bounds nothing."""
    if kind != DATE or value is None:
        return value
    day = _EPOCH_DAY + value
    return date.fromordinal(day) if 1 <= day <= date.max.toordinal() else None


def batch_function(handle: Handle, asked: Asked) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls: applies each batch once, however often it is tried."""
    stores = {name: text for name, text in handle.options.items() if name != "path"}
    reopened = partial(open_handle, path=handle.options["path"], options=stores)
    return engine_of(handle.spark).jobs.batch_function(partial(_apply_batch, asked), handle, reopened)


def _apply_batch(asked: Asked, handle: Handle, batch: DataFrame, txn: Txn | None) -> None:
    apply_events(handle, asked, batch, txn)
