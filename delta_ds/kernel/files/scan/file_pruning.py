"""Decide from partition values and statistics whether a predicate can be true or false in each file.

Negation needs no rewriting: `NOT p` may be true where `p` may be false, `p AND q` may be false where either
may be, and a comparison may be false where its opposite may be true. Null is neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.files.scan import bounds
from delta_ds.kernel.files.scan.bounds import Bounds, exact_bounds, may_compare, same_for_all, unknown_bounds
from delta_ds.kernel.files.scan.partitions import PartitionTuples
from delta_ds.kernel.format.expressions.arrays import TRUE, scalar_of
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal, columns, fold
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_mapping import physical_path
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from delta_ds.kernel.format.values.statistics import Path, Statistics
from delta_ds.records import dataclass, field

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "<=>": "<!=>"}
_PARTITION_VALUES, _MIN_MAX, _NULL_COUNT = "partition values", "min/max", "null count"
# A longer list is looked at as this many ranges.
_MOST_IN_ITEMS = 100
_NONE = scalar_of(0, LONG)
_LOGIC = frozenset(["and", "or", "not"])
# A condition, and whether it is to be true or false.
_Asked = tuple[Expression, bool]


@dataclass(frozen=True, slots=True)
class StatisticsColumnRef:
    """A data column that may have statistics.

    Attributes
    ----------
    path
        Its physical path.
    comparable
        Whether its stored bounds order as its values do.
    was_float
        Whether the column was widened from float to double.
    """

    path: Path
    type: DataType
    comparable: bool
    was_float: bool


def find_statistics_column(
    schema: StructType, path: tuple[str, ...], mapping_mode: str
) -> StatisticsColumnRef | None:
    """The leaf at a logical path through structs; None where there is none with statistics of its own."""
    physical = physical_path(schema, path, mapping_mode)
    level: DataType = schema
    field_: StructField | None = None
    comparable = True
    for name in path:
        field_ = level.find(name) if isinstance(level, StructType) else None
        if field_ is None:
            return None
        # The declared type of a `char` inside a column is with the column.
        comparable = comparable and compares_by_bytes(field_)
        level = field_.type
    if physical is None or field_ is None or isinstance(level, StructType):
        return None
    changes = field_.metadata.get(TYPE_CHANGES) or []
    was_float = level == DOUBLE and any(change.get("fromType") == "float" for change in changes)
    return StatisticsColumnRef(physical, level, comparable, was_float)


@dataclass(slots=True)
class FilePruning:
    """The values of some files, by partition values and statistics; answers are one boolean a file.

    Attributes
    ----------
    partitions
        Their partition values.
    statistics, leaves
        Their statistics, and by logical path the columns these cover; None to go by partition values only.
    used
        The kinds of evidence that answers have been drawn from; the caller clears it.
    numbers
        Float columns whose NaN are of no interest: another part of the predicate is not true of them.
    counts_nan
        Whether all statistics count NaN, also where they do not say so themselves.
    """

    partitions: PartitionTuples
    statistics: Statistics | None = None
    leaves: Mapping[tuple[str, ...], StatisticsColumnRef] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    numbers: frozenset[tuple[str, ...]] = frozenset()
    counts_nan: Callable[[], bool] = lambda: False

    def may_be(self, expression: Expression, wanted: bool) -> pa.BooleanArray:
        """Tell for each file whether a boolean expression may be `wanted` for some row."""
        decidable = self.partitions.decidable(expression)

        def below(asked: _Asked) -> tuple[_Asked, ...]:
            node, wanted = asked
            if not isinstance(node, Call) or node.name not in _LOGIC:
                return ()
            if id(node) in decidable and self.partitions.decides(node):
                return ()
            return tuple((part, wanted != (node.name == "not")) for part in node.args)

        def combine(asked: _Asked, answers: list[pa.BooleanArray]) -> pa.BooleanArray:
            node, wanted = asked
            if not answers or not isinstance(node, Call):
                return self._condition(node, wanted)
            # AND is true where all parts are, OR false where all are; one part is enough for the other two.
            needs_all = (node.name == "and") == wanted
            return functools.reduce(pc.and_ if needs_all else pc.or_, answers)

        return fold((expression, wanted), combine, below)

    def _condition(self, expression: Expression, wanted: bool) -> pa.BooleanArray:
        """As `may_be`, of what is not made of other conditions, or is decided by partition values as a whole."""
        exact = self._exact(expression)
        if exact is not None:
            return may_compare("=", exact, self._constant(wanted))
        if isinstance(expression, Call):
            name, args = expression.name, expression.args
            if name in _OPPOSITE and len(args) == 2:
                operator = name if wanted else _OPPOSITE[name]
                return may_compare(operator, self.bounds(args[0]), self.bounds(args[1]))
            if name in ("isnull", "isnotnull"):
                return self._nullness(args[0], (name == "isnull") == wanted)
            if name == "in":
                return self._in(expression, wanted)
            if name in ("like", "startswith"):
                return self._prefixed(expression, wanted)
        return may_compare("=", self.bounds(expression), self._constant(wanted))

    def bounds(self, expression: Expression) -> Bounds:
        """The bounds of an expression's values in each file."""
        exact = self._exact(expression)
        if exact is not None:
            return exact
        if isinstance(expression, Column):
            if expression.path[0] in self.partitions.inexact:
                self.used.add(_PARTITION_VALUES)
                return self.partitions.bounds(expression)
            return self._column(expression)
        if isinstance(expression, Cast):
            inner = self.bounds(expression.child)
            out = bounds.cast(inner, expression.child.type, expression.type, self.partitions.timezone)
            if out is not None:
                return out
        return unknown_bounds(len(self.partitions))

    def gaps(self, expression: Expression) -> Iterator[tuple[str, pa.BooleanArray]]:
        """The statistics that an expression needs and that are missing, and of which files."""
        for column in dict.fromkeys(columns(expression)):
            if column.path[0] in self.partitions.table.column_names:
                continue
            leaf = self.leaves.get(column.path)
            if leaf is None or self.statistics is None:
                yield f"{column} has no statistics", same_for_all(True, len(self.partitions))
                continue
            known = self.statistics.null_count[leaf.path].is_valid()
            if leaf.path in self.statistics.min:
                known = pc.or_(known, self.statistics.min[leaf.path].is_valid())
            yield f"no statistics on {column}", pc.invert(known)

    def _constant(self, value: bool) -> Bounds:
        return exact_bounds(scalar_of(value, BOOLEAN), len(self.partitions))

    def _exact(self, expression: Expression) -> Bounds | None:
        values = self.partitions.values(expression)
        if values is None:
            return None
        if isinstance(values, pa.Array):
            self.used.add(_PARTITION_VALUES)
        return exact_bounds(values, len(self.partitions))

    def _column(self, column: Column) -> Bounds:
        leaf = self.leaves.get(column.path)
        if leaf is None or self.statistics is None:
            return unknown_bounds(len(self.partitions))
        low = high = None
        self.used.add(_NULL_COUNT)
        if leaf.comparable and leaf.path in self.statistics.min:
            self.used.add(_MIN_MAX)
            low, high = self.statistics.min[leaf.path], self.statistics.max[leaf.path]
            if leaf.type in (TIMESTAMP, TIMESTAMP_NTZ):
                high = bounds.after_truncation(high)
            if leaf.was_float:
                low, high = bounds.or_float(low, upper=False), bounds.or_float(high, upper=True)
            if isinstance(leaf.type, DecimalType):
                low, high = bounds.or_rounded(low, upper=False), bounds.or_rounded(high, upper=True)
            if leaf.type in (FLOAT, DOUBLE) and column.path not in self.numbers and not self.counts_nan():
                high = bounds.or_nan(high, unless=self.statistics.counts_nan)
        nulls = self.statistics.null_count[leaf.path]
        # Only "none" and "all" are asked for, so counts that are not tight (tightBounds=false) serve too.
        return Bounds(
            low,
            high,
            may_be_null=pc.not_equal(nulls, _NONE).fill_null(TRUE),
            may_be_value=pc.not_equal(nulls, self.statistics.num_records).fill_null(TRUE),
        )

    def _nullness(self, expression: Expression, null: bool) -> pa.BooleanArray:
        before = set(self.used)
        inner = self.bounds(expression)
        if _MIN_MAX not in before:
            self.used.discard(_MIN_MAX)
        return inner.may_be_null if null else inner.may_be_value

    def _in(self, expression: Call, wanted: bool) -> pa.BooleanArray:
        value, items = self.bounds(expression.args[0]), expression.args[1:]
        some = [item for item in items if not (isinstance(item, Literal) and item.value is None)]
        if not wanted and len(some) < len(items):
            return same_for_all(False, len(self.partitions))  # x NOT IN (..., NULL) is never true
        if wanted:
            out = same_for_all(False, len(self.partitions))
            for covered in self._ranges(some):
                out = pc.or_(out, may_compare("=", value, covered))
            return out
        out = value.may_be_value
        for item in some[:_MOST_IN_ITEMS]:
            out = pc.and_(out, may_compare("<>", value, self.bounds(item)))
        return out

    def _ranges(self, items: list[Expression]) -> Iterator[Bounds]:
        """Bounds that cover the items: each its own, or for a long list of constants consecutive ranges."""
        constants = [item for item in items if isinstance(item, Literal) and item.value == item.value]
        kinds = {(type(item.value), item.type) for item in constants}
        if len(items) <= _MOST_IN_ITEMS or len(constants) < len(items) or len(kinds) != 1:
            yield from map(self.bounds, items)
            return
        constants.sort(key=lambda item: item.value)
        step = -(-len(constants) // _MOST_IN_ITEMS)
        for i in range(0, len(constants), step):
            group = constants[i : i + step]
            low, high = self.bounds(group[0]), self.bounds(group[-1])
            yield Bounds(low.low, high.high, low.may_be_null, low.may_be_value)

    def _prefixed(self, expression: Call, wanted: bool) -> pa.BooleanArray:
        values = self.bounds(expression.args[0])
        pattern = _pattern(expression)
        if pattern is None:
            return values.may_be_value
        prefix, rest = pattern
        if rest == "":
            same = exact_bounds(scalar_of(prefix, STRING), len(self.partitions))
            return may_compare("=" if wanted else "<>", values, same)
        if wanted:
            return bounds.may_start_with(values, prefix)
        return bounds.may_not_start_with(values, prefix) if rest == "%" else values.may_be_value


def without_nan(part: Expression) -> frozenset[tuple[str, ...]]:
    """The float columns that hold no NaN where a predicate is true."""

    def below(node: Expression) -> tuple[Expression, ...]:
        return node.args if isinstance(node, Call) and node.name in ("and", "or") else ()

    def combine(node: Expression, inside: list[frozenset[tuple[str, ...]]]) -> frozenset[tuple[str, ...]]:
        if not inside:
            return _compared_with_numbers(node)
        is_and = isinstance(node, Call) and node.name == "and"
        return frozenset.union(*inside) if is_and else frozenset.intersection(*inside)

    return fold(part, combine, below)


def _compared_with_numbers(part: Expression) -> frozenset[tuple[str, ...]]:
    if not isinstance(part, Call):
        return frozenset()
    args = part.args
    if part.name in (">", ">=") or (part.name in ("=", "<=>") and isinstance(args[0], Literal)):
        args = args[::-1]
    elif part.name not in ("=", "<=>", "<", "<=", "in", "isnull"):
        return frozenset()
    column = args[0].child if isinstance(args[0], Cast) and args[0].type == DOUBLE else args[0]
    numbers = all(isinstance(arg, Literal) and arg.value == arg.value for arg in args[1:])
    if isinstance(column, Column) and column.type in (FLOAT, DOUBLE) and numbers:
        return frozenset([column.path])
    return frozenset()


def _pattern(expression: Call) -> tuple[str, str] | None:
    """The constant start of a pattern and what follows it (`%`: anything); None if it is no constant text."""
    pattern = expression.args[1]
    escape = expression.args[2] if len(expression.args) > 2 else Literal("\\")
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    if expression.name == "startswith":
        return pattern.value, "%"
    if not isinstance(escape, Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
        return None
    prefix, text = "", pattern.value
    i = 0
    while i < len(text) and text[i] not in ("%", "_"):
        if text[i] == escape.value:
            i += 1
            if i == len(text):
                return None  # ends in the escape: Spark refuses it
        prefix, i = prefix + text[i], i + 1
    return prefix, text[i:]
