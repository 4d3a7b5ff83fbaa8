"""The distinct partition tuples of many files, so that predicates look at each once.

Source: PROTOCOL.md, "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.files.scan.bounds import DAY_US, Bounds, shift_instants
from delta_ds.kernel.format.expressions.arrays import scalar_of
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns,
    parts_of,
    postorder,
)
from delta_ds.kernel.format.schema.types import LONG, TIMESTAMP, VOID, DataType
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.format.values.statistics import FilesToPrune


_NAMES_A_ZONE = r"Z$|:\d\d(\.\d+)?\s*[+-]\d\d"


@dataclass(frozen=True, slots=True)
class PartitionTuples:
    """The distinct partition tuples of some files.

    Attributes
    ----------
    table
        One row a distinct tuple, one typed column a partition column, by logical name.
    code
        For each file, the row number of its tuple in `table`.
    inexact
        Columns whose values cannot be compared as they are: timestamps of an unknown zone (read as if of
        UTC), and strings that Spark pads or collates.
    timezone
        The session's zone; None if not known.
    """

    table: pa.Table
    code: pa.Int64Array
    inexact: frozenset[str]
    timezone: str | None
    _decided: dict[Expression, pa.Array | pa.Scalar | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.code)

    def take(self, files: pa.Int64Array) -> PartitionTuples:
        """The same tuples for some of the files."""
        return replace(self, code=self.code.take(files))

    def values(self, expression: Expression) -> pa.Array | pa.Scalar | None:
        """The value of an expression in each file, where partition values alone decide it.

        Returns
        -------
        pa.Array or pa.Scalar or None
            A value a file; a scalar if the expression reads no column; None if it reads data columns or
            inexact ones, depends on a zone that is not known, or cannot be evaluated.
        """
        if not self.decides(expression):
            return None
        values = self._decided[expression]
        return values.take(self.code) if isinstance(values, pa.Array) else values

    def decides(self, expression: Expression) -> bool:
        """Whether partition values alone decide an expression."""
        if expression not in self._decided:
            self._decided[expression] = self._decide(expression)
        return self._decided[expression] is not None

    def bounds(self, column: Column) -> Bounds:
        """The bounds of a partition column that is inexact."""
        name = column.path[0]
        values = self.table[name].chunk(0).take(self.code)
        low = high = None
        if column.type == TIMESTAMP:
            low, high = shift_instants(values, -DAY_US), shift_instants(values, DAY_US)
        return Bounds(low, high, values.is_null(), values.is_valid())

    def decidable(self, expression: Expression) -> frozenset[int]:
        """The identities of the nodes in an expression that partition values alone may decide."""
        found: set[int] = set()
        for node in postorder(expression):
            if self._is_known(node) and all(id(part) in found for part in parts_of(node)):
                found.add(id(node))
        return frozenset(found)

    def _is_known(self, node: Expression) -> bool:
        """Whether a node can be computed once the nodes below it are."""
        from delta_ds.kernel.format.expressions.evaluate import is_known

        if isinstance(node, Column):
            return node.path[0] in self.table.column_names and node.path[0] not in self.inexact
        if isinstance(node, (Cast, Call)) and node.timezone is not None and self.timezone is None:
            return False
        return is_known(node)

    def _decide(self, expression: Expression) -> pa.Array | pa.Scalar | None:
        if isinstance(expression, Literal):
            return _scalar(expression)
        if id(expression) not in self.decidable(expression):
            return None
        from delta_ds.kernel.format.expressions import evaluate

        names = {column.path[0] for column in columns(expression)}
        try:
            values = evaluate.evaluate(expression, self.table if names else _ONE_ROW)
        except PredicateError as error:
            from delta_ds.events.commands import PRUNING_NOT_EVALUATED

            PRUNING_NOT_EVALUATED.log(expression=expression, reason=error)
            return None
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        return values if names else values[0]


_ONE_ROW = pa.table([pa.nulls(1)], names=[""])


def _scalar(literal: Literal) -> pa.Scalar | None:
    if literal.value is None:
        return scalar_of(None, VOID)
    return None if literal.type is None else scalar_of(literal.value, literal.type)


def partition_tuples(
    files: FilesToPrune,
    wanted: Mapping[str, tuple[str, DataType]],
    opaque: frozenset[str],
    timezone: str | None,
) -> PartitionTuples:
    """Find the distinct partition tuples of some files.

    Cost is linear in files; only distinct texts are given a type.

    Parameters
    ----------
    wanted
        Logical name -> physical name and type of the partition columns to look at.
    opaque
        Logical names of those whose strings are not compared by their bytes.
    timezone
        Zone of timestamps that name none; None if not known.
    """
    code = pa.repeat(scalar_of(0, LONG), files.num_rows)
    picked: list[pa.Int64Array] = []  # per column: which distinct value each tuple has
    values: list[pa.Array] = []
    inexact = set(opaque)
    for name, (physical, data_type) in wanted.items():
        encoded = files.partition_texts(physical).dictionary_encode()
        if data_type == TIMESTAMP and timezone is None and not _all_zoned(encoded.dictionary):
            inexact.add(name)
        values.append(_typed(encoded.dictionary, data_type, timezone))
        own = encoded.indices.cast(pa.int64()).fill_null(scalar_of(len(encoded.dictionary), LONG))
        size = scalar_of(len(encoded.dictionary) + 1, LONG)
        pairs = pc.add(pc.multiply(code, size), own).dictionary_encode()
        code = pairs.indices.cast(pa.int64())
        before = pc.divide(pairs.dictionary, size)
        picked = [column.take(before) for column in picked]
        picked.append(pc.subtract(pairs.dictionary, pc.multiply(before, size)))
    arrays = [v.take(p) for v, p in zip(values, picked, strict=True)]
    table = pa.Table.from_arrays(arrays, names=list(wanted)) if wanted else _ONE_ROW
    return PartitionTuples(table, code, frozenset(inexact), timezone)


def _typed(texts: pa.StringArray, data_type: DataType, timezone: str | None) -> pa.Array:
    """The values, and a null behind them for files without one."""
    from delta_ds.kernel.format.values import partition_values

    parsed = partition_values.parse(texts, data_type, timezone or "UTC")
    return pa.concat_arrays([parsed, pa.nulls(1, parsed.type)])


def _all_zoned(texts: pa.StringArray) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, _NAMES_A_ZONE), min_count=0).as_py())
