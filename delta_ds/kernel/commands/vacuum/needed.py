"""What must stay, as VACUUM asks for it: the paths themselves, or of large tables their hashes, eight bytes a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import mask

if TYPE_CHECKING:
    import numpy.typing as npt

# Of the files that are looked up at once; more where more are needed, since each look-up hashes those first.
_ROWS = 131_072
# Rows of which all letters are numbers at the same time.
_HASHED_ROWS = 8_192
# The letters of a path that have a factor of their own; those after them share.
_FACTORS = 1 << 16


class Needed(Protocol):
    """The files that must stay, in the spelling of a listing."""

    @property
    def rows_at_once(self) -> int:
        """How many files are best asked for together."""
        ...

    def without(self, files: pa.Table) -> pa.Table:
        """The files (column `path`) that need not stay."""
        ...


class NeededPaths:
    """See `Needed`."""

    def __init__(self, paths: pa.ChunkedArray) -> None:
        self._paths = paths

    @property
    def rows_at_once(self) -> int:
        return max(_ROWS, len(self._paths))

    def without(self, files: pa.Table) -> pa.Table:
        return exclude_paths(files, self._paths)


def exclude_paths(files: pa.Table, needed: pa.ChunkedArray) -> pa.Table:
    """The files whose path is not among the needed ones."""
    if not (files.num_rows and len(needed)):
        return files
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=needed)))


class PathHashes:
    """Hashes of paths that a process of the same seed finds, too.

    Parameters
    ----------
    seed
        Chosen anew for every run: what two paths have in common in one, they have not in another.
    """

    def __init__(self, seed: int) -> None:
        factors = np.random.default_rng(seed).integers(0, 1 << 64, _FACTORS, np.uint64)
        self._factors = factors | np.uint64(1)

    def of(self, paths: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
        """The hash of each path; there are no nulls among them.

        Two paths share one with a probability of at most 2 to the power of -57: the sum of their letters, each times a
        random odd factor of its place (multilinear hashing).
        """
        found = [
            self._hashes(chunk.slice(start, _HASHED_ROWS))
            for chunk in paths.chunks
            for start in range(0, len(chunk), _HASHED_ROWS)
        ]
        return np.concatenate(found) if found else np.zeros(0, np.uint64)

    def _hashes(self, paths: pa.StringArray) -> npt.NDArray[np.uint64]:
        _, offsets, data = paths.buffers()
        ends = np.frombuffer(offsets, np.int32)[paths.offset :][: len(paths) + 1].astype(np.int64)
        lengths = np.diff(ends)
        letters = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
        places = np.arange(len(letters)) - np.repeat(ends[:-1] - ends[0], lengths)
        # No letter counts as nothing, so that what is longer is something else.
        terms = (letters + np.uint64(1)) * self._factors[places % _FACTORS]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        starts = ends - ends[0]
        found: npt.NDArray[np.uint64] = sums[starts[1:]] - sums[starts[:-1]]
        return found


class NeededHashes:
    """See `Needed`. Whatever must stay does; a file too many may stay, see `PathHashes.of`, until the next run.

    Parameters
    ----------
    hashes
        How paths are hashed.
    parts
        The hashes of the files that must stay.
    """

    def __init__(self, hashes: PathHashes, parts: Iterable[npt.NDArray[np.uint64]]) -> None:
        self._hashes = hashes
        self._known = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))

    @property
    def rows_at_once(self) -> int:
        return _ROWS

    def without(self, files: pa.Table) -> pa.Table:
        if not (files.num_rows and len(self._known)):
            return files
        found = self._hashes.of(files["path"])
        places = np.minimum(np.searchsorted(self._known, found), len(self._known) - 1)
        return files.filter(mask(self._known[places] != found))
