"""`Spec`: what to apply to which columns, checked against source and table; the source as events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from delta_ds.conditions.dml import (
    APPLY_CHANGES_AMBIGUOUS,
    APPLY_CHANGES_COLUMN,
    APPLY_CHANGES_COLUMN_TYPE,
    APPLY_CHANGES_EXCLUSIVE,
    APPLY_CHANGES_FEED_SEQUENCE,
    APPLY_CHANGES_INCOMPLETE,
    APPLY_CHANGES_KEPT_COLUMN,
    APPLY_CHANGES_NULL,
    APPLY_CHANGES_SOURCE_TYPE,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.commands.changes.commit import (
    CHANGE_FIELDS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
)
from delta_ds.kernel.commands.changes.net import BEFORE, DELETE
from delta_ds.kernel.format.schema.char_varchar import declared_char_type
from delta_ds.kernel.format.schema.column_paths import nearest_name
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    STRING,
    DataType,
    DecimalType,
    StructField,
    StructType,
    is_key_type,
)
from delta_ds.records import dataclass, field, replace
from delta_ds.spark.base.schema import from_spark, quoted
from delta_ds.spark.commands.store_casts import stored_value
from delta_ds.spark.engines.net_changes import comparable_value
from delta_ds.spark.errors.row_errors import ReportedValue, error_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Stored = Literal[1, 2]


# Columns of frames of events, which hold keys and values under names that no table decides (`Spec.own`).
SEQUENCE, DELETES = "sequence", "deletes"
# What the column of late events says of rows that only they need.
DELETED, UNCHANGED = "delete", "unchanged"
# Where a dimension of type 1 keeps the sequence, unless it is a column of the table anyway.
DEFAULT_SEQUENCE = "_sequence"


@dataclass(frozen=True)
class Asked:
    """What the user has said; None where nothing.

    Attributes
    ----------
    keys, sequence, deletes, excluded, tracked, untracked, late
        See the methods of `DeltaApplyChangesBuilder`.
    stored
        The type of the dimension.
    kept_sequence
        The column of the table that keeps the sequence of a row.
    valid_from, valid_to, current
        Columns of the table, of type 2.
    """

    keys: tuple[str, ...] = ()
    sequence: str | Column | None = field(default=None, compare=False)
    deletes: str | Column | None = field(default=None, compare=False)
    excluded: tuple[str, ...] = ()
    tracked: tuple[str, ...] | None = None
    untracked: tuple[str, ...] | None = None
    late: str | None = None
    stored: Stored | None = None
    kept_sequence: str | None = None
    valid_from: str = ""
    valid_to: str = ""
    current: str | None = None


@dataclass(frozen=True)
class Spec:
    """What to apply, by the names that the table has.

    Attributes
    ----------
    table
        For messages.
    keys, values
        Columns of the table that come from the source: those that tell rows apart, and the others.
    tracked
        Of `values`, those whose change opens a version of type 2.
    sequence, deletes
        Expressions over the source.
    given
        For each of `keys` and `values` what it is over the source, as the table holds it.
    types
        Of `keys` and `values` in the table.
    kept_sequence, valid_from, valid_to, current, late
        Columns of the table that are kept by this; see `Asked`.
    """

    table: str
    stored: Stored
    keys: tuple[str, ...]
    values: tuple[str, ...]
    tracked: tuple[str, ...]
    sequence: Column
    deletes: Column | None
    given: dict[str, Column]
    types: dict[str, DataType]
    kept_sequence: str | None
    valid_from: str
    valid_to: str
    current: str | None
    late: str | None

    @property
    def untracked(self) -> tuple[str, ...]:
        return tuple(name for name in self.values if name not in self.tracked)

    @cached_property
    def own(self) -> dict[str, str]:
        """The names of `keys` and `values` in frames of events, where other columns stand beside them."""
        keys = {name: f"k{at}" for at, name in enumerate(self.keys)}
        return keys | {name: f"v{at}" for at, name in enumerate(self.values)}

    @property
    def key_columns(self) -> list[str]:
        """The names of `keys` in frames of events."""
        return [self.own[key] for key in self.keys]

    def events(self, source: DataFrame) -> DataFrame:
        """The rows of a source as events: `keys` and `values`, the sequence, whether it deletes.

        A row without a key or sequence raises when it is read.
        """
        from pyspark.sql import functions as F

        missing = self.sequence.isNull()
        for key in self.keys:
            missing = missing | self.given[key].isNull()
        told = F.to_json(F.struct(*(self.given[name].alias(name) for name in self.keys)), _WITH_NULLS)
        error = APPLY_CHANGES_NULL(table=self.table, keys=list(self.keys), value="")
        deletes = F.lit(False) if self.deletes is None else F.coalesce(self.deletes, F.lit(False))
        checked = F.when(
            missing, error_column(error, {"key": ReportedValue(told)}).cast("boolean")
        ).otherwise(deletes)
        return source.select(
            *(self.given[name].alias(own) for name, own in self.own.items()),
            self.sequence.alias(SEQUENCE),
            checked.alias(DELETES),
        )

    def ambiguous(self) -> Column:
        """Raises, for an event whose key and sequence another row has too."""
        from pyspark.sql import functions as F

        error = APPLY_CHANGES_AMBIGUOUS(table=self.table, value="")
        keys = [F.col(self.own[key]).alias(key) for key in self.keys]
        return error_column(error, {"key": ReportedValue(F.to_json(F.struct(*keys, SEQUENCE)))})

    def clashes(self) -> Column:
        """Whether events of one key and sequence put different rows there."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        upsert, row = ~F.col(DELETES), self.row(self.values)
        same = Window.partitionBy(*self.key_columns, SEQUENCE)
        one = F.first(F.when(upsert, row), ignorenulls=True).over(same)
        return upsert & ~row.eqNullSafe(one)

    def row(self, names: Sequence[str]) -> Column:
        """Some of the values as one that Spark compares, null with null and NaN with NaN."""
        from pyspark.sql import functions as F

        values = [comparable_value(F.col(self.own[name]), self.types[name]) for name in names]
        return F.struct(F.lit(0).alias("v"), *(value.alias(f"v{at}") for at, value in enumerate(values)))


_WITH_NULLS = {"ignoreNullFields": "false"}


def settled(
    asked: Asked, source: DataFrame, target: StructType, partitions: Collection[str], table: str
) -> Spec:
    """What was asked for, checked.

    Parameters
    ----------
    source
        A batch or a stream.
    target, partitions
        The schema of the table, and its partition columns.
    table
        For messages.

    Raises
    ------
    InvalidOptionError
        Something is missing, or does not order the source.
    SchemaError
        A column is not there (with the nearest), or of a wrong type.
    """
    from pyspark.sql import functions as F

    schema = from_spark(source.schema)
    is_feed = all(schema.find(name) is not None for name in CHANGE_FIELDS.names)
    if not asked.keys:
        raise APPLY_CHANGES_INCOMPLETE(
            table=table, what="the columns that tell rows apart", how='.keys("id")'
        )
    stored = asked.stored
    if stored is None:
        raise APPLY_CHANGES_INCOMPLETE(
            table=table, what="the type of the dimension", how=".scd1() or .scd2(...)"
        )
    sequence, deletes = asked.sequence, asked.deletes
    if sequence is None:
        if not is_feed:
            raise APPLY_CHANGES_INCOMPLETE(
                table=table, what="the order of events", how='.sequenceBy("updated_at")'
            )
        sequence = COMMIT_VERSION
    deletes = F.expr(deletes) if isinstance(deletes, str) else deletes
    if is_feed:
        # The row before an update counts where no row of its key comes after it: its key has changed.
        gone = F.col(CHANGE_TYPE).isin(DELETE, BEFORE)
        deletes = gone if deletes is None else gone | F.coalesce(deletes, F.lit(False))
    asked = replace(asked, sequence=sequence)
    kept_sequence = _kept_name(asked, target)
    kept = {kept_sequence, asked.late, asked.current, asked.valid_from, asked.valid_to}
    names, fields = _columns(asked, schema, target, table, kept, is_feed)
    types = {name: field.type for name, field in fields.items()}
    keys = tuple(_found(key, target, table, "the table").name for key in asked.keys)
    for key in keys:
        if key not in names:
            raise _not_found(key, schema, table, "the source")
        if not is_key_type(types[key]):
            raise APPLY_CHANGES_COLUMN_TYPE(
                table=table, column=key, type=str(types[key]), wanted="a type that can be compared, for a key"
            )
    spelled = F.expr(sequence) if isinstance(sequence, str) else sequence
    if is_feed:
        _check_feed_sequence(source.select(spelled).columns[0], table)
    kind = from_spark(source.select(spelled.alias(SEQUENCE)).schema).fields[0].type
    _check_kept(asked, target, table, kind)
    values = tuple(name for name in names if name not in keys)
    return Spec(
        table=table,
        stored=stored,
        keys=keys,
        values=values,
        tracked=_tracked(asked, values, target, table),
        sequence=spelled,
        deletes=deletes,
        given={
            name: stored_value(
                F.col(quoted(column.name)), column.type, fields[name], partitions=name in partitions
            )
            for name, column in names.items()
        },
        types=types,
        kept_sequence=kept_sequence,
        valid_from=asked.valid_from,
        valid_to=asked.valid_to,
        current=asked.current,
        late=asked.late,
    )


def _check_feed_sequence(name: str, table: str) -> None:
    """Refuse what does not order changes: a delete has the values of the row that is gone, which are never newer."""
    if name.lower() not in (COMMIT_VERSION, COMMIT_TIMESTAMP):
        raise APPLY_CHANGES_FEED_SEQUENCE(table=table, sequence=name)


def _columns(
    asked: Asked, source: StructType, target: StructType, table: str, kept: set[str | None], is_feed: bool
) -> tuple[dict[str, StructField], dict[str, StructField]]:
    """The columns of the source that go to the table, and those of the table, by the table's names."""
    excluded = {_found(name, source, table, "the source").name for name in asked.excluded}
    if is_feed:
        excluded |= {f.name for f in source if CHANGE_FIELDS.find(f.name) is not None}
    names: dict[str, StructField] = {}
    fields: dict[str, StructField] = {}
    folded = {name.lower() for name in kept if name}
    for column in source:
        if column.name in excluded or column.name.lower() in folded:
            continue
        found = target.find(column.name)
        if found is None:
            if isinstance(asked.sequence, str) and column.name.lower() == asked.sequence.strip(" `").lower():
                continue  # it is kept under another name
            raise APPLY_CHANGES_COLUMN(
                table=table, where="the table", column=column.name,
                hint="add it to the table, or leave it out by exceptColumns",
            )  # fmt: skip
        if not _fits(column.type, found.type):
            raise APPLY_CHANGES_SOURCE_TYPE(
                table=table, column=column.name, type=str(column.type), wanted=str(found.type)
            )
        names[found.name], fields[found.name] = column, found
    return names, fields


_WIDER = (("byte", "short", "integer", "long"), ("float", "double"))


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether values of a type are those of another one: rows of the source are compared with rows of the table."""
    one, other = str(given).lower(), str(wanted).lower()
    if isinstance(given, DecimalType) and isinstance(wanted, DecimalType):
        digits = wanted.precision - wanted.scale
        return given.scale <= wanted.scale and given.precision - given.scale <= digits
    return one in (other, "void") or any(
        one in row and other in row and row.index(one) < row.index(other) for row in _WIDER
    )


def _found(name: str, schema: StructType, table: str, where: str) -> StructField:
    found = schema.find(name)
    if found is None:
        raise _not_found(name, schema, table, where)
    return found


def _not_found(name: str, schema: StructType, table: str, where: str) -> SchemaError:
    nearest = nearest_name(name, schema.names)
    hint = f"did you mean {nearest!r}?" if nearest else f"it has {', '.join(schema.names)}"
    return APPLY_CHANGES_COLUMN(table=table, where=where, column=name, hint=hint)


def _kept_name(asked: Asked, target: StructType) -> str | None:
    """The column of the table that keeps the sequence, besides those of validity."""
    if asked.kept_sequence is not None:
        return asked.kept_sequence
    if asked.stored == 2:
        return None
    plain = asked.sequence if isinstance(asked.sequence, str) else None
    found = None if plain is None else target.find(plain)
    return DEFAULT_SEQUENCE if found is None else found.name


def _check_kept(asked: Asked, target: StructType, table: str, kind: DataType) -> None:
    """Refuse a table without the columns that are kept by this, or with others of their names."""
    wanted: list[tuple[str | None, DataType]] = [(_kept_name(asked, target), kind), (asked.late, STRING)]
    if asked.stored == 2:
        wanted += [(asked.valid_from, kind), (asked.valid_to, kind), (asked.current, BOOLEAN)]
    for name, of in wanted:
        if name is None:
            continue
        found = target.find(name)
        if found is None:
            raise APPLY_CHANGES_KEPT_COLUMN(table=table, column=name, type=str(of), quoted=repr(name))
        padded = declared_char_type(found)
        if found.type != of or padded is not None:
            shown = str(found.type) if padded is None else padded
            raise APPLY_CHANGES_COLUMN_TYPE(
                table=table, column=name, type=shown, wanted=f"{of}, as what it keeps"
            )


def _tracked(asked: Asked, values: Sequence[str], target: StructType, table: str) -> tuple[str, ...]:
    if asked.tracked is None and asked.untracked is None:
        return tuple(values)
    if asked.late is not None:
        raise APPLY_CHANGES_EXCLUSIVE(table=table)
    if asked.kept_sequence is None:
        raise APPLY_CHANGES_INCOMPLETE(
            table=table,
            what="the column that keeps the sequence of the values that are not tracked",
            how='.scd2(..., sequence="_sequence")',
        )
    chosen = asked.tracked if asked.tracked is not None else asked.untracked or ()
    names = [_found(name, target, table, "the table").name for name in chosen]
    for name in names:
        if name not in values:
            raise APPLY_CHANGES_COLUMN(
                table=table, where="the source", column=name, hint=f"history is kept of {', '.join(values)}"
            )
    if asked.tracked is not None:
        return tuple(name for name in values if name in names)
    return tuple(name for name in values if name not in names)
