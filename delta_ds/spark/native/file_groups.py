"""Files in directories, as Spark takes them: those that share all partition values are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


class FileGroups:
    """Files in directories: those that share all values share one.

    Attributes
    ----------
    rows
        int64 rows of live files, directory by directory.
    counts, starts
        int32, int64: files of each directory, and where in `rows` they begin.
    codes
        int64: the partition tuple of each directory.
    """

    def __init__(
        self, rows: npt.NDArray[np.int64], counts: npt.NDArray[np.int32], codes: npt.NDArray[np.int64]
    ) -> None:
        self.rows = rows
        self.counts = counts
        self.codes = codes
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])[:-1]

    def only(self, numbers: npt.NDArray[np.int64]) -> FileGroups:
        """Some of the directories, by ascending numbers."""
        chosen = np.zeros(len(self.counts), np.bool_)
        chosen[numbers] = True
        return FileGroups(
            self.rows[np.repeat(chosen, self.counts)], self.counts[numbers], self.codes[numbers]
        )


def group_files(codes: pa.Array, rows: pa.Array, alone: npt.NDArray[np.bool_] | None) -> FileGroups:
    """Files grouped by their partition tuple, in log order within one; those that stand alone by themselves."""
    numbers, code = np.asarray(rows, np.int64), np.asarray(codes, np.int64)
    if not len(numbers):
        return FileGroups(numbers, np.zeros(0, np.int32), code)
    single = np.zeros(len(code), np.int64)
    if alone is not None:
        single[alone] = np.arange(1, int(alone.sum()) + 1)
    order = np.lexsort((single, code))
    code, single = code[order], single[order]
    changes = np.flatnonzero((code[1:] != code[:-1]) | (single[1:] != single[:-1])) + 1
    starts = np.concatenate([np.zeros(1, np.int64), changes])
    counts = np.diff(np.append(starts, len(code))).astype(np.int32)
    return FileGroups(numbers[order], counts, code[starts])
