"""The hash join of a MERGE: the keys of the source, made ready once, in which rows of the table are looked up.

Candidates are found by a hash of all keys, whatever their types; who asks compares the values themselves, but where
equal hashes are equal values. Nulls equal nothing, or each other where the comparison is null-safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import flags
from delta_ds.kernel.commands.changes.key_codes import key_hashes

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
    Hashes = npt.NDArray[np.uint64]

# The steps of splitmix64, one to one on 64 bits.
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
_MOST_FILTER_BITS = 25
# So many pairs are made at a time.
_PAIRS = 1 << 18


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
