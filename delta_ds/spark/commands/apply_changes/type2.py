"""Type 2: the rows of a key and new events in one order, from which follow the rows that the key has to have.

The rows of the table are events too: each puts its values there at its beginning, and one that ends where none begins
ends by a delete. So late events find their place, and a row that one of them cuts in two is two rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.base.schema import quoted
from delta_ds.spark.commands.apply_changes.spec import (
    DELETED,
    DELETES,
    SEQUENCE,
    UNCHANGED,
    Spec,
)
from delta_ds.spark.commands.merge.plan import Clause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE, EVENTS = "t", "s"
# Of an event: what is in the table of it, and when the values that are not tracked were so.
_STORED, _MOMENT, _CLASH, _NEW, _PLACE, _REPLACED = "stored", "moment", "clash", "new", "place", "replaced"
_UNTIL, _CURRENT, _LATE, _DO = "until", "current", "late", "do"
# A version begins with it; it ends one.
_OPENS, _BOUNDS, _VERSION, _NEWEST = "opens", "bounds", "version", "newest"


def changed_rows(spec: Spec, events: DataFrame, table: DataFrame) -> DataFrame:
    """The rows of the table that events change, as they have to be.

    Parameters
    ----------
    events
        Of `new_events`.
    table
        Rows of the table, all that have one of their keys.

    Returns
    -------
    DataFrame
        Keys and values, the beginning, and what else there is to keep; and whether to insert, update or delete.
    """
    from pyspark.sql import functions as F

    touched = events.select(*spec.key_columns).distinct()
    known = _stored(spec, table).join(touched, spec.key_columns, "left_semi")
    parts = [events, known]
    if spec.late is None:
        parts.append(_ends(known))
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.unionByName(part)
    rows = _versions(spec, _one_a_moment(spec, merged))
    stored = F.col(_STORED)
    same = stored["until"].eqNullSafe(F.col(_UNTIL)) & stored["late"].eqNullSafe(F.col(_LATE))
    if spec.current is not None:
        same = same & stored["is_current"].eqNullSafe(F.col(_CURRENT))
    if spec.untracked:
        same = same & stored["moment"].eqNullSafe(F.col(_MOMENT))
    same = same & ~F.col(_REPLACED)
    wanted = F.col(_OPENS) if spec.late is None else F.lit(True)
    do = (
        F.when(wanted & stored.isNull(), "insert")
        .when(wanted & ~same, "update")
        .when(~wanted & stored.isNotNull(), "delete")
    )
    return rows.withColumn(_DO, do).where(f"{_DO} IS NOT NULL").drop(_STORED, _OPENS, _REPLACED)


def new_events(spec: Spec, source: DataFrame) -> DataFrame:
    """The rows of a source as events of this type."""
    from pyspark.sql import functions as F

    found = spec.events(source)
    sequence, nothing = F.col(SEQUENCE), F.lit(None)
    stored = F.struct(
        sequence.alias("until"), nothing.cast("boolean").alias("is_current"),
        nothing.cast("string").alias("late"), sequence.alias("moment"),
    )  # fmt: skip
    return found.select(
        "*",
        F.when(F.lit(False), stored).alias(_STORED),
        F.col(SEQUENCE).alias(_MOMENT),
        spec.clashes().alias(_CLASH),
    )


def _stored(spec: Spec, rows: DataFrame) -> DataFrame:
    """The rows of the table as events."""
    from pyspark.sql import functions as F

    late = F.lit(None).cast("string") if spec.late is None else F.col(quoted(spec.late))
    current = F.lit(None).cast("boolean") if spec.current is None else F.col(quoted(spec.current))
    begins, ends = F.col(quoted(spec.valid_from)), F.col(quoted(spec.valid_to))
    moment = begins if spec.kept_sequence is None else F.coalesce(quoted(spec.kept_sequence), begins)
    stored = F.struct(
        ends.alias("until"), current.alias("is_current"), late.alias("late"), moment.alias("moment")
    )
    return rows.select(
        *(F.col(quoted(name)).alias(own) for name, own in spec.own.items()),
        begins.alias(SEQUENCE),
        late.eqNullSafe(DELETED).alias(DELETES),
        stored.alias(_STORED),
        moment.alias(_MOMENT),
        F.lit(False).alias(_CLASH),
    )


def _ends(rows: DataFrame) -> DataFrame:
    """The ends of rows, which are events already, as deletes; where another row begins they do not count."""
    from pyspark.sql import functions as F

    until = F.col(_STORED)["until"]
    nothing = {
        _STORED: F.when(F.lit(False), F.col(_STORED)),
        SEQUENCE: until,
        _MOMENT: until,
        DELETES: F.lit(True),
    }
    return rows.where(until.isNotNull()).withColumns(nothing)


def _one_a_moment(spec: Spec, events: DataFrame) -> DataFrame:
    """Of the events of a key and sequence the one that counts, with what the table has of that moment."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    moment = Window.partitionBy(*spec.key_columns, SEQUENCE)
    upsert, is_stored = ~F.col(DELETES), F.col(_STORED).isNotNull()
    order = moment.orderBy(upsert.desc(), is_stored.desc())
    found = events.select(
        *(name for name in events.columns if name != _STORED),
        F.first(_STORED, ignorenulls=True).over(moment).alias(_STORED),
        (~is_stored).alias(_NEW),
        F.row_number().over(order).alias(_PLACE),
    )
    found = found.where(f"{_PLACE} = 1 OR {_CLASH}")
    deletes = F.when(F.col(_CLASH), spec.ambiguous().cast("boolean")).otherwise(F.col(DELETES))
    # Of a delete that the table remembers and a new row at the same moment the row counts: it takes its place.
    replaced = F.col(_NEW) & F.col(_STORED).isNotNull() & ~F.col(DELETES)
    return found.withColumn(DELETES, deletes).withColumn(_REPLACED, replaced).drop(_PLACE, _NEW, _CLASH)


def _versions(spec: Spec, events: DataFrame) -> DataFrame:
    """Which events open a version, and until when it holds."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy(*spec.key_columns).orderBy(SEQUENCE)
    state = spec.row(spec.tracked)
    before, gone = F.lag(state).over(order), F.lag(DELETES).over(order)
    same = before.eqNullSafe(state) & (gone == F.lit(False))
    opens = ~F.col(DELETES) & ~F.coalesce(same, F.lit(False))
    found = events.withColumn(_OPENS, opens).withColumn(_BOUNDS, F.col(_OPENS) | F.col(DELETES))
    backwards = Window.partitionBy(*spec.key_columns).orderBy(F.col(SEQUENCE).desc())
    later = backwards.rowsBetween(Window.unboundedPreceding, -1)
    following = F.last(F.when(F.col(_BOUNDS), F.col(SEQUENCE)), ignorenulls=True).over(later)
    found = found.withColumn(_UNTIL, following)
    if spec.untracked:
        found = _newest_untracked(spec, found)
    late = F.when(F.col(DELETES), DELETED).when(~F.col(_OPENS), UNCHANGED)
    return found.withColumns(
        {
            # What only late events need holds at no time.
            _UNTIL: F.when(F.col(_OPENS), F.col(_UNTIL)).otherwise(F.col(SEQUENCE)),
            _CURRENT: F.col(_OPENS) & F.col(_UNTIL).isNull(),
            _LATE: late if spec.late is not None else F.lit(None).cast("string"),
        }
    ).drop(_BOUNDS, DELETES)


def _newest_untracked(spec: Spec, rows: DataFrame) -> DataFrame:
    """Values that are not tracked: of the version's events the newest."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy(*spec.key_columns).orderBy(SEQUENCE)
    untracked = [spec.own[name] for name in spec.untracked]
    numbered = rows.withColumn(_VERSION, F.sum(F.col(_BOUNDS).cast("int")).over(order))
    version = Window.partitionBy(*spec.key_columns, _VERSION)
    chosen = F.max_by(F.struct(_MOMENT, *untracked), F.col(_MOMENT)).over(version)
    found = numbered.withColumn(_NEWEST, chosen)
    newest = F.col(_NEWEST)
    return found.withColumns(
        {
            # Rows from before this kept their sequences have none.
            name: F.when(newest.isNull(), F.col(name)).otherwise(newest.getField(name))
            for name in (_MOMENT, *untracked)
        }
    ).drop(_NEWEST, _VERSION)


def condition(spec: Spec) -> str:
    """Which row of the table is meant."""
    keys = [f"{TABLE}.{quoted(key)} = {EVENTS}.{spec.own[key]}" for key in spec.keys]
    return " AND ".join([*keys, f"{TABLE}.{quoted(spec.valid_from)} <=> {EVENTS}.{SEQUENCE}"])


def clauses(spec: Spec) -> tuple[Clause, ...]:
    """What a MERGE of `changed_rows` does."""
    kept = {quoted(spec.valid_to): f"{EVENTS}.{_UNTIL}"}
    for name, column in ((spec.current, _CURRENT), (spec.late, _LATE), (spec.kept_sequence, _MOMENT)):
        if name is not None:
            kept[quoted(name)] = f"{EVENTS}.{column}"
    values = {quoted(name): f"{EVENTS}.{spec.own[name]}" for name in spec.values}
    if spec.late is not None:
        values = {
            name: f"CASE WHEN NOT {EVENTS}.{_LATE} <=> '{DELETED}' THEN {v} END" for name, v in values.items()
        }
    keys = {quoted(name): f"{EVENTS}.{spec.own[name]}" for name in spec.keys}
    begins = {quoted(spec.valid_from): f"{EVENTS}.{SEQUENCE}"}
    return (
        Clause("matched", "delete", f"{EVENTS}.{_DO} = 'delete'", None),
        Clause("matched", "update", f"{EVENTS}.{_DO} = 'update'", {**values, **kept}),
        Clause("not_matched", "insert", f"{EVENTS}.{_DO} = 'insert'", {**keys, **begins, **values, **kept}),
    )
