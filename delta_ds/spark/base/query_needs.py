"""What a query needs of a read: filters that Spark pushes, and the columns and rows that a Connect client names.

Such a client finds it in the query (`engines/connect/needed.py`); the read goes by it (`engines/portable/batch.py`).

Up to Spark 4.3 every use of one DataFrame (or view) shares one read plan, made by whichever filter was
pushed last: after `df.where("a = 1").count()`, `df.count()` reads only the files that were planned for
`a = 1`, and in `df.where("a = 1").union(df.where("a = 2"))` both halves read the files of one of them.
Skipping files by pushed filters then loses rows, so it happens only

- where Spark plans each scan by itself (it then has `DataSourceReader.pushLimit`, SPARK-58551), or
- in a session that vouches for using each DataFrame in one scan: `register(spark, pushdown=True)`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, getcontext
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark

from delta_ds.events.spark import FILTER_NOT_PUSHED
from delta_ds.exceptions import DeltaError, PredicateError
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns,
    conjunction,
    conjuncts,
    postorder,
    without_qualifier,
)
from delta_ds.kernel.format.schema.char_varchar import path_compares_by_bytes
from delta_ds.kernel.format.schema.types import (
    BYTE,
    DATE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
    StructType,
    is_nested,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_COMPARISONS: dict[type, str] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "<=>",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.StringStartsWith: "startswith",
    spark.StringEndsWith: "endswith",
    spark.StringContains: "contains",
}
_NULL_TESTS: dict[type, str] = {spark.IsNull: "isnull", spark.IsNotNull: "isnotnull"}


def to_expression(
    filters: Sequence[Filter], schema: StructType, bind: Callable[[Expression], Expression]
) -> Expression | None:
    """The conjunction of the filters, as far as the kernel can express it.

    Leaving one out only means that less is skipped: Spark evaluates every filter again.

    Parameters
    ----------
    filters
        All of them must hold.
    schema
        The table's logical schema.
    bind
        Resolves columns and literals against that schema.

    Returns
    -------
    Expression or None
        A bound conjunction; None when nothing can be used.
    """
    parts = [_bind_filter(pushed, schema, bind) for pushed in filters]
    return conjunction([part for part in parts if part is not None])


def _bind_filter(
    pushed: Filter, schema: StructType, bind: Callable[[Expression], Expression]
) -> Expression | None:
    part = _translate(pushed, schema)
    try:
        return None if part is None else bind(part)
    except PredicateError as error:
        FILTER_NOT_PUSHED.log(filter=type(pushed).__name__, reason=error)
        return None


def _translate(pushed: Filter, schema: StructType) -> Expression | None:
    if isinstance(pushed, spark.Not):
        inner = _translate(pushed.child, schema)
        return None if inner is None else Call("not", (inner,))
    attribute: tuple[str, ...] | None = getattr(pushed, "attribute", None)
    if attribute is None or not path_compares_by_bytes(attribute, schema):
        return None
    column = Column(tuple(attribute))
    kind = type(pushed)
    if kind in _NULL_TESTS:
        return Call(_NULL_TESTS[kind], (column,))
    value: Any = getattr(pushed, "value", None)
    if any(map(_may_be_rounded, value if isinstance(pushed, spark.In) else (value,))):
        return None
    if kind in _COMPARISONS:
        return Call(_COMPARISONS[kind], (column, Literal(value)))
    if isinstance(pushed, spark.In):
        return Call("in", (column, *(Literal(v) for v in value)))
    return None


def _may_be_rounded(value: Any) -> bool:
    """Whether pyspark may have rounded a constant: it computes decimals in Python's context, of 28 digits."""
    return isinstance(value, Decimal) and len(value.as_tuple().digits) >= getcontext().prec


PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"

PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


def plans_each_scan() -> bool:
    """Whether this Spark keeps the read plans of different scans of one DataFrame apart."""
    from pyspark.sql.datasource import DataSourceReader

    return hasattr(DataSourceReader, "pushLimit")


def in_pushdown_worker() -> bool:
    """Whether this process is the one in which Spark pushes filters.

    Spark starts it only while the configuration allows pushdown. In the other one, which plans reads
    without filters, a reader that overrides `pushFilters` makes the query fail if the configuration does
    not allow it, so no reader may do so there.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    # Its daemon imports it by name; without a daemon (on Windows) it is the main module.
    return PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == PUSHDOWN_WORKER


# Among the facts that travel with the options of a read.
NEEDED = "spark.pydelta.needed"
# The data source of the rows that a command looks at.
TARGET_FORMAT = "pydelta_target"


@dataclass(frozen=True)
class Needed:
    """The names by which a query may mean columns.

    Attributes
    ----------
    paths
        Names of columns, or of their fields, perhaps with the name of a table in front.
    words
        Names that may be something else.
    """

    paths: tuple[tuple[str, ...], ...] = ()
    words: tuple[str, ...] = ()

    def also(self, paths: Sequence[tuple[str, ...]] = (), words: Sequence[str] = ()) -> Needed:
        """With more of them."""
        return Needed((*self.paths, *paths), (*self.words, *words))

    def of(self, available: StructType) -> StructType:
        """The columns that may be meant, one at least; all where a name is none, so that Spark can name the nearest."""
        known = {name.lower() for name in available.names}
        if not all(known & {part.lower() for part in path} for path in self.paths):
            return available
        meant = {part.lower() for path in self.paths for part in path} | {word.lower() for word in self.words}
        fields = [field for field in available if field.name.lower() in meant]
        return StructType(tuple(fields or [min(available, key=_cost)]))


_WIDTHS = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "date": 4, "float": 4, "long": 8, "double": 8}


def _cost(field: StructField) -> int:
    return 1000 if is_nested(field.type) else _WIDTHS.get(str(field.type), 100)


def needed_of(facts: Mapping[str, str]) -> tuple[Needed | None, list[Expression]]:
    """The names that a query may mean columns by (None: all), and the conditions of all its rows, not bound."""
    text = facts.get(NEEDED)
    if text is None:
        return None, []
    from delta_ds.spark.base import wire

    # What follows makes it a query of its own: Spark keeps the plans of those that it knows.
    needed, filters, *_ = wire.decode(text)
    return needed, filters


# Calls whose values no setting of a session changes, where what they compare is alike.
_COMPARING = frozenset(["=", "<=>", "<>", "<", "<=", ">", ">=", "in"])
_PLAIN = _COMPARING | {"and", "or", "not", "isnull", "isnotnull", "like"}
_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
# No local time is the same moment in both.
_FAR_ZONES = ("Etc/GMT+12", "Etc/GMT-14")


def bound_filters(filters: Sequence[Expression], schema: StructType) -> Expression | None:
    """The conjunction of conditions of a client, as far as they mean the same in each session.

    Parameters
    ----------
    filters
        Not bound. Which settings the session has when the query runs is not known here: not its time zone, nor whether
        it is in ANSI mode.
    schema
        The table's logical schema.
    """
    found = (_bound_in_each_session(part, schema) for part in filters)
    return conjunction([part for part in found if part is not None])


def _bound_in_each_session(condition: Expression, schema: StructType) -> Expression | None:
    from delta_ds.kernel.format.expressions.bind import bind

    if not all(path_compares_by_bytes(column.path, schema) for column in columns(condition)):
        return None
    try:
        one, other = (bind(condition, schema, zone) for zone in _FAR_ZONES)
        return one if one == other and means_one_thing(condition, schema) else None
    except DeltaError as error:
        FILTER_NOT_PUSHED.log(filter="a condition", reason=error)
        return None


def means_one_thing(condition: Expression, schema: StructType) -> bool:
    """Whether a condition, not bound, is true for the same rows in ANSI mode and without it; False if not known."""
    from delta_ds.kernel.format.expressions.bind import bind

    for node in postorder(condition):
        if isinstance(node, Call) and node.name not in _PLAIN:
            return False
        if isinstance(node, Cast) and not _is_moment(node):
            return False
        if isinstance(node, Call) and node.name in _COMPARING:
            try:
                first, *others = (bind(part, schema, predicate=False).type for part in node.args)
            except PredicateError:
                return False
            if not all(_are_alike(first, other, node.name) for other in others):
                return False
    return True


def _is_moment(cast: Cast) -> bool:
    """Whether it is how `DATE'2020-01-01'` is read."""
    return isinstance(cast.child, Literal) and cast.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and not cast.safe


def _are_alike(one: DataType | None, other: DataType | None, call: str) -> bool:
    """Whether Spark compares values of two types in the same way in both modes."""
    kinds = {one, other}
    if STRING in kinds:
        # Lists are compared as texts without ANSI mode.
        return len(kinds) == 1 or (call != "in" and bool(kinds & {DATE, TIMESTAMP, TIMESTAMP_NTZ}))
    # As numbers of type float without ANSI mode, else of type double.
    return not (FLOAT in kinds and bool(kinds & {*_INTEGERS}))


# --- conditions in SQL text, as far as the kernel reads them

# Calls whose value changes with each binding.
_MOVING = ("current_timestamp", "current_date")
# Settings of Spark say whether these escape characters, and whether these quote names.
_BY_SETTING = re.compile(r"[\\\"]")


def parsed_text(source: Any, alias: str | None) -> list[Expression]:
    """The tree of SQL text, without the table's name before its columns; none of what the kernel does not know."""
    from delta_ds.kernel.format.expressions.sql import parse_predicate

    if not isinstance(source, str) or _BY_SETTING.search(source):
        return []
    try:
        tree = parse_predicate(source)
    except DeltaError:
        # Spark understands more than the kernel; then no file is skipped.
        return []
    return [without_qualifier(tree, alias) if alias else tree]


def usable_parts(source: Any, alias: str | None = None) -> list[Expression]:
    """The conjuncts of a condition in SQL text that mean the same whenever they are evaluated."""
    return [part for whole in parsed_text(source, alias) for part in conjuncts(whole) if not moves(part)]


def moves(tree: Expression) -> bool:
    """Whether an expression depends on the current time, whose value changes with each binding."""
    return any(isinstance(node, Call) and node.name in _MOVING for node in postorder(tree))
