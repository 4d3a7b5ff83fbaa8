"""The pairs of rows that match in a MERGE: found by the hashes of keys, and compared by all else that is asked.

The keys of the source are made ready once; rows of the table are looked up in them by a hash of all keys, whatever
their types. The values themselves are compared after that, but where equal hashes are equal values. Nulls equal
nothing, or each other where the comparison is null-safe.

What stands before in the search condition decides first: a row that it excludes is looked at by nothing behind it,
so that `t.kind = 'n' AND CAST(t.k AS BIGINT) = s.k` fails at no row of another kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import flags, integers
from delta_ds.kernel.commands.changes.key_codes import key_hashes
from delta_ds.kernel.commands.merge.plan import Key, MergePlan
from delta_ds.kernel.commands.merge.sides import SOURCE, TARGET, Name
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.tree import Expression, Literal, conjunction
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
    Hashes = npt.NDArray[np.uint64]

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


# The steps of splitmix64, one to one on 64 bits.
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
_MOST_FILTER_BITS = 25
# So many pairs are made at a time.


class SourceKeys:
    """The keys of the rows of a source.

    Parameters
    ----------
    keys
        For each key the values of all rows.
    null_safe
        For each key whether null equals null.

    Attributes
    ----------
    exact
        Whether all that is found is equal, so that nobody has to compare it again.
    """

    def __init__(self, keys: Sequence[pa.Array], null_safe: Sequence[bool]) -> None:
        self._null_safe = tuple(null_safe)
        self.exact = len(keys) == 1 and _is_whole(keys[0].type) and not null_safe[0]
        hashes, valid = self._hashes(keys)
        if valid is None:
            self._rows = np.argsort(hashes, kind="stable").astype(np.int32)
        else:
            there = np.flatnonzero(valid).astype(np.int32)
            self._rows = there[np.argsort(hashes[there], kind="stable")]
        in_order = hashes[self._rows]
        first = np.ones(len(in_order), np.bool_)
        first[1:] = in_order[1:] != in_order[:-1]
        self._starts = None if first.all() else np.append(np.flatnonzero(first), len(in_order))
        self._index(in_order if self._starts is None else in_order[first])

    def _index(self, distinct: Hashes) -> None:
        """Buckets of the distinct hashes by their leading bits, and a finer table of those that there are."""
        self._count = count = len(distinct)
        bits = max(1, max(1, count - 1).bit_length())
        self._bucket_shift = np.uint64(64 - bits)
        buckets = (distinct >> self._bucket_shift).astype(np.int64)
        steps = np.diff(buckets, prepend=-1, append=(1 << bits) - 1)
        # Of each bucket the place of the first hash that lies in it or behind it.
        self._heads = np.repeat(np.arange(count + 1, dtype=np.int32), steps)
        fine = min(bits + 4, _MOST_FILTER_BITS)
        self._filter_shift = np.uint64(64 - fine)
        self._filter = np.zeros(1 << fine, np.bool_)
        self._filter[distinct >> self._filter_shift] = True
        # Past the end there is one that equals none but itself, and is checked for.
        self._distinct = np.append(distinct, np.uint64(2**64 - 1))

    def __len__(self) -> int:
        """How many rows can match at all."""
        return len(self._rows)

    def pairs(self, keys: Sequence[pa.Array], most: int = _PAIRS) -> Iterator[tuple[Rows, Rows]]:
        """Rows that may be equal, some at a time: their numbers among those given, ascending, and in the source.

        Parameters
        ----------
        keys
            For each key the values of rows of the table, of the types of the source's.
        most
            About so many pairs at a time; all of one row come together.
        """
        if not self._count or not len(keys[0]):
            return
        hashes, valid = self._hashes(keys)
        known = self._filter[hashes >> self._filter_shift]
        if valid is not None:
            known &= valid
        rows = np.flatnonzero(known)
        at, found = self._look_up(hashes[rows])
        rows, at = rows[found], at[found]
        if not len(rows):
            return
        starts = self._starts
        if starts is None:
            for start in range(0, len(rows), most):
                yield rows[start : start + most], self._rows[at[start : start + most]].astype(np.int64)
            return
        counts = starts[at + 1] - starts[at]
        before = np.cumsum(counts) - counts
        cuts = np.flatnonzero(np.diff(before // most, prepend=-1))
        for low, high in zip(cuts, np.append(cuts[1:], len(rows)), strict=True):
            some, firsts = counts[low:high], before[low:high] - before[low]
            within = np.arange(int(some.sum())) - np.repeat(firsts, some)
            found = self._rows[np.repeat(starts[at[low:high]], some) + within].astype(np.int64)
            yield np.repeat(rows[low:high], some), found

    def _look_up(self, hashes: Hashes) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """The places of hashes among the distinct ones, and which of them are there."""
        at = self._heads[hashes >> self._bucket_shift].astype(np.int64)
        behind = np.flatnonzero(self._distinct[at] < hashes)
        while len(behind):
            at[behind] += 1
            behind = behind[self._distinct[at[behind]] < hashes[behind]]
        return at, (self._distinct[at] == hashes) & (at < self._count)

    def _hashes(self, keys: Sequence[pa.Array]) -> tuple[Hashes, npt.NDArray[np.bool_] | None]:
        """A hash for each row, and which rows can be equal to others; None: all."""
        valid = None
        for key, null_safe in zip(keys, self._null_safe, strict=True):
            if key.null_count and not null_safe:
                there = flags(pc.is_valid(key))
                valid = there if valid is None else valid & there
        if len(keys) == 1 and _is_whole(keys[0].type) and not self._null_safe[0]:
            return _mixed(_as_numbers(keys[0])), valid
        names = [str(n) for n in range(len(keys))]
        return key_hashes(pa.table(list(keys), names=names), names), valid


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values are whole numbers, dates or timestamps: the same bits, the same value."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _as_numbers(key: pa.Array) -> Hashes:
    """The values as 64 bits; those of nulls mean nothing."""
    if not len(key):
        return np.empty(0, np.uint64)
    size = key.type.bit_width // 8
    values = np.frombuffer(key.buffers()[1], f"<i{size}")[key.offset :][: len(key)]
    return values.astype(np.int64).view(np.uint64)


def _mixed(values: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        for shift, factor in _STEPS:
            values ^= values >> np.uint64(shift)
            values *= np.uint64(factor)
    return values
