"""The pairs of rows that match in a MERGE: found by the hashes of keys, and compared by all else that is asked.

What stands before in the search condition decides first: a row that it excludes is looked at by nothing behind it,
so that `t.kind = 'n' AND CAST(t.k AS BIGINT) = s.k` fails at no row of another kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import flags, integers
from delta_ds.kernel.commands.merge.join import SourceKeys
from delta_ds.kernel.commands.merge.plan import Key, MergePlan
from delta_ds.kernel.commands.merge.sides import SOURCE, TARGET, Name
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.tree import Expression, Literal, conjunction
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]

# So many pairs are looked at at a time where there are no keys.
_PAIRS = 1 << 18


@dataclass(frozen=True, slots=True)
class _Join:
    """How pairs are found by the first of the keys.

    Attributes
    ----------
    keys
        None: every row meets every other one.
    rest
        What pairs that are found have to meet.
    target, source
        The columns of the two sides that are joined.
    """

    keys: SourceKeys | None
    rest: Expression | None
    target: tuple[str, ...]
    source: tuple[str, ...]


class Pairs:
    """Finds the pairs of rows that match; serves several threads.

    Parameters
    ----------
    plan
        The MERGE.
    source
        All rows of the source, by the names of bound expressions.
    reads
        What is evaluated over pairs that match.
    """

    def __init__(self, plan: MergePlan, source: pa.Table, reads: Collection[Expression | None]) -> None:
        self._plan, self._source, self._reads = plan, source, tuple(reads)
        sides, conditions = plan.sides, plan.conditions
        keyed = {id(key.condition) for key in plan.keys}
        # What stands before all else and asks one side only leaves out rows before they meet any.
        first = list(
            takewhile(lambda part: id(part) not in keyed and len(sides.read_by(part)) == 1, conditions)
        )
        self._rest = conditions[len(first) :]
        self._of_target = conjunction([part for part in first if sides.read_by(part) == {TARGET}])
        of_source = conjunction([part for part in first if sides.read_by(part) == {SOURCE}])
        self._numbers: Rows = np.arange(source.num_rows)
        if of_source is not None:
            self._numbers = np.flatnonzero(flags(one_array(evaluate(of_source, source)).fill_null(FALSE)))
        rows = source if of_source is None else source.take(integers(self._numbers))
        self._values = _before_the_first_error([key.source for key in plan.keys], rows)
        self._joins: dict[int, _Join] = {}
        self._join(len(self._values))

    @property
    def key_values(self) -> Iterator[tuple[Key, pa.Array]]:
        """Keys, and what of the source they can equal."""
        return zip(self._plan.keys, self._values, strict=False)

    def matches(self, rows: pa.RecordBatch) -> Iterator[tuple[Rows, Rows, pa.RecordBatch]]:
        """Matching rows: their numbers in a batch of the table and in the source, and the columns of both that count.

        Parameters
        ----------
        rows
            Of the table, by the names of bound expressions.

        Raises
        ------
        PredicateError
            The search condition fails, and nothing before it in the condition excludes the row.
        """
        if not len(self._numbers) or any(
            isinstance(part, Literal) and part.value is not True for part in self._plan.conditions
        ):
            return  # as in ON FALSE
        kept = None
        if self._of_target is not None:
            holds = evaluate(self._of_target, rows).fill_null(FALSE)
            if holds.false_count:
                kept, rows = np.flatnonzero(flags(holds)), rows.filter(holds)
        if not rows.num_rows:
            return
        values = self._values_of(rows)
        join = self._join(len(values))
        for at, source in self._candidates(join, values, rows.num_rows):
            joined = self._joined(join, rows, at, source)
            if join.rest is not None:
                holds = evaluate(join.rest, joined).fill_null(FALSE)
                if holds.false_count:
                    true = flags(holds)
                    at, source, joined = at[true], source[true], joined.filter(holds)
            if len(at):
                yield at if kept is None else kept[at], source, joined

    def _values_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The keys of rows of the table, up to one that fails where something before it may exclude the row."""
        keys = self._plan.keys[: len(self._values)]
        found = _before_the_first_error([key.target for key in keys], rows)
        if keys and not found and keys[0].condition is self._rest[0]:
            evaluate(keys[0].target, rows)  # nothing excludes the row: it fails again, and is told
        return found

    def _candidates(self, join: _Join, values: Sequence[pa.Array], count: int) -> Iterator[tuple[Rows, Rows]]:
        if join.keys is not None:
            for at, source in join.keys.pairs(values):
                yield at, self._numbers[source]
            return
        step = max(1, _PAIRS // len(self._numbers))
        for start in range(0, count, step):
            some = np.arange(start, min(start + step, count))
            yield np.repeat(some, len(self._numbers)), np.tile(self._numbers, len(some))

    def _join(self, count: int) -> _Join:
        """How pairs are found by the first keys, so many of them; made once."""
        found = self._joins.get(count)
        if found is None:
            keys = self._plan.keys[:count]
            by_hash = SourceKeys(self._values[:count], [key.null_safe for key in keys]) if keys else None
            proven = by_hash is not None and by_hash.exact
            rest = conjunction([p for p in self._rest if not (proven and p is keys[0].condition)])
            names = [self._names(side, rest) for side in (TARGET, SOURCE)]
            found = self._joins[count] = _Join(by_hash, rest, *names)
        return found

    def _names(self, side: Name, rest: Expression | None) -> tuple[str, ...]:
        sides = self._plan.sides
        names = sorted(sides.column_names(side, [rest, *self._reads]))
        return tuple(sides.name_of(side, name) for name in names)

    def _joined(self, join: _Join, rows: pa.RecordBatch, at: Rows, source: Rows) -> pa.RecordBatch:
        left = rows.select(join.target).take(integers(at)).columns if join.target else []
        right = self._source.select(join.source).take(integers(source)).columns if join.source else []
        return batch_of([*left, *map(one_array, right)], [*join.target, *join.source], len(at))


def _before_the_first_error(keys: Iterable[Expression], rows: pa.Table | pa.RecordBatch) -> list[pa.Array]:
    """The values of keys, up to one that fails on some row: what stands before it may exclude the row."""
    found: list[pa.Array] = []
    try:
        found.extend(one_array(evaluate(key, rows)) for key in keys)
    except PredicateError:
        return found  # the condition tells of it, where it gets so far
    return found


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece; not copied where it is."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def batch_of(columns: Sequence[pa.Array], names: Sequence[str], rows: int) -> pa.RecordBatch:
    """A batch that knows how many rows it has, even without columns."""
    if columns:
        return pa.RecordBatch.from_arrays(list(columns), names=list(names))
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
