"""`net_changes`: what the rows of a change feed come to, key by key, as a plan of Spark.

The twin of `kernel/commands/changes/net.py`. One shuffle and one sort by the keys: windows find the first and the last
change of each key, and over these two, which stay where they are, show each the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.streaming import CHANGES_COLUMN_MISSING, NET_CHANGES_DUPLICATE_KEY
from delta_ds.kernel.commands.changes.commit import (
    CHANGE_FIELDS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
)
from delta_ds.kernel.commands.changes.key_codes import check_keys
from delta_ds.kernel.commands.changes.net import AFTER, BEFORE, DELETE, INSERT, Net, check_net
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.spark.base.schema import from_spark, quoted
from delta_ds.spark.engines.arguments import public
from delta_ds.spark.errors.row_errors import ReportedValue, error_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIRST, _LAST, _PUTS, _CLASH, _BEFORE, _AFTER, _KIND = (
    f"__pydelta_{name}" for name in ("first", "last", "puts", "clash", "before", "after", "kind")
)


@public
def net_changes(changes: DataFrame, keys: Sequence[str], net: str = "net") -> DataFrame:
    """What the rows of a change feed come to, key by key.

    For feeds that are at hand as a DataFrame, as in `foreachBatch`; `DeltaTable.changes` and the options `net` and
    `keys` of a read say the same of a range of versions.

    Parameters
    ----------
    changes
        Rows with `_change_type`, `_commit_version` and `_commit_timestamp`, in any order; of whole versions.
    keys
        The columns that tell rows apart, of any type but nested ones. Null is a value like any other.
    net
        `net`: the effect of all changes of a key, an insert, a delete, or both sides of an update; nothing where a row
        came and went, or is as it was. `latest`: the last change of each key.

    Returns
    -------
    DataFrame
        Of the same columns. Rows carry the version and time of the last change of their key.

    Raises
    ------
    InvalidOptionError, SchemaError
        `net` is something else, a key is no column, or columns of a change feed are missing.
    InvariantViolationError
        When the rows are asked for: two rows have one key.

    Examples
    --------
    >>> from delta_ds import net_changes
    >>> table = DeltaTable.forPath(spark, "/data/orders")
    >>> updated = table.update("id = 3", {"amount": "amount + 1"})
    >>> net_changes(table.changes(1), ["id"]).select("id", "amount", "_change_type").orderBy("id").show()
    +---+------+------------+
    | id|amount|_change_type|
    +---+------+------------+
    |  3|  31.0|      insert|
    |  4|  40.0|      insert|
    +---+------+------------+
    """
    schema = from_spark(changes.schema)
    missing = [name for name in CHANGE_FIELDS.names if schema.find(name) is None]
    if missing:
        raise CHANGES_COLUMN_MISSING(missing=missing, columns=schema.names)
    kind = check_net(net, keys)
    assert kind is not None
    data = StructType(tuple(f for f in schema if CHANGE_FIELDS.find(f.name) is None))
    return _Netting(changes, schema, data, check_keys(keys, data, "the DataFrame"), "the DataFrame").rows(
        kind
    )


def net_of_table(changes: DataFrame, keys: Sequence[str], net: Net, table: str) -> DataFrame:
    """The same of the feed of a table; arguments and errors as for `net_changes`, `table` for messages."""
    schema = from_spark(changes.schema)
    data = StructType(tuple(f for f in schema if CHANGE_FIELDS.find(f.name) is None))
    return _Netting(changes, schema, data, check_keys(keys, data, table), table).rows(net)


class _Netting:
    def __init__(
        self, changes: DataFrame, schema: StructType, data: StructType, keys: Sequence[str], table: str
    ) -> None:
        from pyspark.sql import functions as F

        self._schema = schema
        self._data = data
        self._plain_keys = list(keys)
        self._table = table
        # Columns of the user get names that no column of ours has.
        self._own = {name: f"c{at}" for at, name in enumerate(data.names)}
        self._keys = [self._own[key] for key in keys]
        self._changes = changes.select(
            *(F.col(quoted(name)).alias(self._own.get(name, name)) for name in schema.names)
        )

    def rows(self, net: Net) -> DataFrame:
        return self._latest() if net == "latest" else self._net()

    def _ends(self) -> DataFrame:
        """The first and the last change of each key, and those that cannot be, marked."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        puts = F.col(CHANGE_TYPE).isin(INSERT, AFTER)
        order = Window.partitionBy(*self._keys).orderBy(COMMIT_VERSION, _PUTS)
        before = F.lag(_PUTS).over(order)
        found = self._changes.withColumn(_PUTS, puts)
        return found.withColumns(
            {
                _FIRST: before.isNull(),
                _LAST: F.lead(_PUTS).over(order).isNull(),
                _CLASH: F.coalesce(before == F.col(_PUTS), F.lit(False)),
            }
        ).where(f"{_FIRST} OR {_LAST} OR {_CLASH}")

    def _error(self) -> Column:
        """Raises, for a row whose key has one already."""
        from pyspark.sql import functions as F

        error = NET_CHANGES_DUPLICATE_KEY(table=self._table, keys=self._plain_keys, value="")
        keys = [F.col(self._own[key]).alias(key) for key in self._plain_keys]
        values = F.to_json(F.struct(*keys, COMMIT_VERSION), {"ignoreNullFields": "false"})
        return error_column(error, {"key": ReportedValue(values)})

    def _latest(self) -> DataFrame:
        from pyspark.sql import functions as F

        kind = F.when(F.col(_PUTS), F.col(CHANGE_TYPE)).otherwise(DELETE)
        # Where a condition raises, it does so whichever columns are asked for, and for a count too.
        last = F.when(F.col(_CLASH), self._error().cast("boolean")).otherwise(F.col(_LAST))
        return self._named(self._ends().where(last), {CHANGE_TYPE: kind})

    def _net(self) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        # Of a key there are two rows at most, and each sees the other: sorted as they are, at the price of a pass.
        order = Window.partitionBy(*self._keys).orderBy(COMMIT_VERSION, _PUTS)
        # Without the keys, which are equal.
        values = [field for field in self._data if field.name not in self._plain_keys]
        whole = F.struct(
            _PUTS,
            COMMIT_VERSION,
            COMMIT_TIMESTAMP,
            *(F.col(self._own[field.name]).alias(f"v{at}") for at, field in enumerate(values)),
        )
        ends = self._ends()
        ends = ends.withColumns({_BEFORE: F.lag(whole).over(order), _AFTER: F.lead(whole).over(order)})
        first, last, puts = F.col(_FIRST), F.col(_LAST), F.col(_PUTS)
        before, after = F.col(_BEFORE), F.col(_AFTER)
        begins, stops = first & ~last & ~puts, last & ~first & puts
        kind = (
            F.when(F.col(_CLASH), self._error().cast("string"))
            .when(first & last, F.when(puts, INSERT).otherwise(DELETE))
            .when(begins & ~after[_PUTS], DELETE)
            .when(begins & ~self._same(values, after), BEFORE)
            .when(stops & before[_PUTS], INSERT)
            .when(stops & ~self._same(values, before), AFTER)
        )
        of_last = {
            name: F.when(first & ~last, after[name]).otherwise(F.col(name))
            for name in (COMMIT_VERSION, COMMIT_TIMESTAMP)
        }
        found = ends.withColumn(_KIND, kind).where(F.col(_KIND).isNotNull())
        return self._named(found, {CHANGE_TYPE: F.col(_KIND), **of_last})

    def _named(self, rows: DataFrame, described: Mapping[str, Column]) -> DataFrame:
        """Rows under the names that they came with."""
        from pyspark.sql import functions as F

        return rows.select(
            *(
                described.get(name, F.col(self._own.get(name, name))).alias(name)
                for name in self._schema.names
            )
        )

    def _same(self, values: Sequence[StructField], other: Column) -> Column:
        from pyspark.sql import functions as F

        found = F.lit(True)
        for at, field in enumerate(values):
            sides = F.col(self._own[field.name]), other[f"v{at}"]
            one, two = (comparable_value(side, field.type) for side in sides)
            found = found & one.eqNullSafe(two)
        return found


def comparable_value(value: Column, data_type: DataType) -> Column:
    """A value that Spark compares: maps as their entries, variants as their text."""
    from pyspark.sql import functions as F

    if not _holds_map(data_type):
        return value
    if isinstance(data_type, MapType):
        entries = ArrayType(
            StructType((StructField("key", data_type.key), StructField("value", data_type.value)))
        )
        return comparable_value(F.map_entries(value), entries)
    if isinstance(data_type, ArrayType):
        return F.transform(value, lambda item: comparable_value(item, data_type.element))
    if isinstance(data_type, StructType):
        fields = [comparable_value(value.getField(f.name), f.type).alias(f.name) for f in data_type]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.to_json(value)


def _holds_map(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_holds_map(field.type) for field in data_type)
    if isinstance(data_type, ArrayType):
        return _holds_map(data_type.element)
    return isinstance(data_type, MapType) or str(data_type) == "variant"
