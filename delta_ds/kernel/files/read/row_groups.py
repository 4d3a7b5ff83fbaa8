"""The row groups that a slice reads: by byte range, wanted positions and footer statistics.

Leaving a row group out never changes the result: statistics only tell that no row in it can match.
Source: Apache Parquet, `Statistics` in parquet.thrift; Spark, `ParquetFileFormat` (splits by middle byte).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.kernel.files.read import column_conversion
from delta_ds.kernel.format.expressions.moments import days_of, micros_of
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, fold
from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    StructType,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
_FLOATS = (FLOAT, DOUBLE)


def row_starts(metadata: pq.FileMetaData) -> np.ndarray[Any, Any]:
    """Physical position of the first row of each row group, and at the end the number of rows."""
    if metadata.num_row_groups == 1:
        return np.array([0, metadata.num_rows])
    return np.cumsum([0, *(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))])


def in_range(metadata: pq.FileMetaData, start: int, length: int | None, size: int) -> list[int]:
    """The row groups whose middle byte lies in [start, start + length); ranges that tile a file tile them.

    A range that reaches the end (`size`, as the log says, or None) takes all that is left.
    """
    end = None if length is None or start + length >= size else start + length
    count = metadata.num_row_groups
    if start == 0 and end is None:
        return list(range(count))
    middles = [_middle(metadata.row_group(i)) for i in range(count)]
    return [i for i, at in enumerate(middles) if at >= start and (end is None or at < end)]


def _middle(group: Any) -> int:
    first = group.column(0)
    start = int(first.data_page_offset)
    if first.has_dictionary_page and 0 < first.dictionary_page_offset < start:
        start = int(first.dictionary_page_offset)
    size: int = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    return start + size // 2


def groups_of_positions(
    groups: Sequence[int], starts: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]
) -> list[int]:
    """The row groups that hold at least one of the sorted positions."""
    edges = np.searchsorted(positions, starts.astype(positions.dtype))
    return [group for group in groups if edges[group + 1] > edges[group]]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The footer statistics of a column in a row group; None where there are none."""

    low: Any
    high: Any
    nulls: int | None
    rows: int


_BoundsOf = Callable[[Column], "_Bounds | None"]


class StatisticsFilter:
    """A predicate against the footer statistics of one file.

    Only comparisons of a top-level column with a constant, null tests, `in`, `and` and `or` are used, and
    only where the file stores the column's values as they are read: no widening, calendar or padding.
    """

    def __init__(
        self, predicate: Expression, schema: StructType, rules: column_conversion.Rules, file: pa.Schema
    ) -> None:
        self._predicate = predicate
        found = column_conversion.match_fields(list(file), schema, rules.mapping_mode)
        self._leaves: dict[str, int] = {}
        firsts = column_conversion.first_leaves(file)
        for field, index in zip(schema, found, strict=True):
            readable = index is not None and _same_values(file.field(index).type, field.type, rules)
            if index is not None and readable and char_varchar.declared_char_type(field) is None:
                self._leaves[field.name] = firsts[index]

    def matching(self, metadata: pq.FileMetaData, groups: Sequence[int]) -> list[int]:
        """The row groups that may hold a matching row."""
        return [g for g in groups if _can_match(self._predicate, self._bounds_in(metadata.row_group(g)))]

    def _bounds_in(self, group: Any) -> _BoundsOf:
        def bounds(column: Column) -> _Bounds | None:
            leaf = self._leaves.get(column.path[0]) if len(column.path) == 1 else None
            statistics = None if leaf is None else group.column(leaf).statistics
            if statistics is None:
                return None
            low, high = (statistics.min_raw, statistics.max_raw) if statistics.has_min_max else (None, None)
            if isinstance(low, float) and math.isnan(low + statistics.max_raw):
                low = high = None
            nulls = statistics.null_count if statistics.has_null_count else None
            return _Bounds(low, high, nulls, group.num_rows)

        return bounds


def _same_values(file_type: pa.DataType, wanted: Any, rules: column_conversion.Rules) -> bool:
    """Whether raw statistics of the file's column order like the table's values."""
    if wanted == STRING:
        return bool(pa.types.is_string(file_type))
    if wanted in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        want = {TIMESTAMP: pa.timestamp("us", "UTC"), TIMESTAMP_NTZ: pa.timestamp("us"), DATE: pa.date32()}
        return bool(file_type == want[wanted]) and not rules.rebase
    if wanted in _FLOATS:
        return bool(pa.types.is_floating(file_type))
    return str(wanted) in ("byte", "short", "integer", "long") and bool(pa.types.is_signed_integer(file_type))


def _can_match(expression: Expression, bounds: _BoundsOf) -> bool:
    def combine(node: Expression, answers: list[bool]) -> bool:
        if not answers:
            return _condition_can_match(node, bounds)
        return all(answers) if isinstance(node, Call) and node.name == "and" else any(answers)

    return fold(expression, combine, _conditions_in)


def _conditions_in(node: Expression) -> tuple[Expression, ...]:
    return node.args if isinstance(node, Call) and node.name in ("and", "or") else ()


def _condition_can_match(expression: Expression, bounds: _BoundsOf) -> bool:
    if not isinstance(expression, Call):
        return not (isinstance(expression, Literal) and not expression.value)
    name, args = expression.name, expression.args
    if name in ("isnull", "isnotnull") and isinstance(args[0], Column):
        return _null_test(name, bounds(args[0]))
    if name == "in" and all(isinstance(arg, Literal) for arg in args[1:]):
        return any(_condition_can_match(Call("=", (args[0], arg)), bounds) for arg in args[1:])
    if name not in _FLIPPED or len(args) != 2:
        return True
    left, right = args
    if isinstance(left, Literal) and isinstance(right, Column):
        name, left, right = _FLIPPED[name], right, left
    if isinstance(left, Column) and isinstance(right, Literal) and left.type == right.type:
        return _compare(name, bounds(left), left, right)
    return True


def _null_test(name: str, bounds: _Bounds | None) -> bool:
    if bounds is None or bounds.nulls is None:
        return True
    return bounds.nulls > 0 if name == "isnull" else bounds.nulls < bounds.rows


def _compare(name: str, bounds: _Bounds | None, column: Column, literal: Literal) -> bool:
    if bounds is None:
        return True
    if literal.value is None:
        return name == "<=>" and _null_test("isnull", bounds)
    if not _null_test("isnotnull", bounds):
        return False
    value = _raw(literal)
    if bounds.low is None or bounds.high is None or type(value) is not type(bounds.low) or value != value:
        return True
    # Statistics leave NaN out, and it is above every number.
    unbounded = column.type in _FLOATS
    if name == "<":
        return bool(bounds.low < value)
    if name == "<=":
        return bool(bounds.low <= value)
    if name == ">":
        return unbounded or bool(bounds.high > value)
    if name == ">=":
        return unbounded or bool(bounds.high >= value)
    return bool(bounds.low <= value <= bounds.high)


def _raw(literal: Literal) -> Any:
    """The literal as the footer holds values of its type; the raw value itself where that is the same."""
    value = literal.value
    if literal.type == STRING and isinstance(value, str):
        return value.encode()
    if literal.type == DATE:
        return days_of(value)
    if literal.type in (TIMESTAMP, TIMESTAMP_NTZ):
        return micros_of(value)
    return value
