"""Admission control: how many files and bytes one batch reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.options.stream_read import DEFAULT_MAX_FILES, StreamReadOptions
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one batch reads at most; None for no limit.

    Attributes
    ----------
    max_files
        Files of a batch.
    max_bytes
        Soft: the file that passes it is still read, so that large files get through.
    """

    max_files: int | None = None
    max_bytes: int | None = None


ALL_AVAILABLE = ReadLimits()


def default_limits(options: StreamReadOptions) -> ReadLimits:
    """The limits that the options ask for.

    Source: delta-spark, `DeltaSource.AdmissionLimits`: bytes alone lift the default number of files.
    """
    files = options.max_files
    if files is None and options.max_bytes is None:
        files = DEFAULT_MAX_FILES
    return ReadLimits(files, options.max_bytes)


class Admission:
    """What is left of the limits of a batch."""

    def __init__(self, limits: ReadLimits) -> None:
        self._files = limits.max_files
        self._bytes = limits.max_bytes
        self._taken = False

    def has_room(self) -> bool:
        """Whether another file is admitted."""
        return (self._files is None or self._files > 0) and (self._bytes is None or self._bytes > 0)

    @property
    def files_left(self) -> int | None:
        """How many files may still come; None for no limit."""
        return self._files

    def take(self, sizes: np.ndarray[Any, Any]) -> int:
        """Admit files in order until the limits are reached; returns how many.

        Parameters
        ----------
        sizes
            Bytes of each file, int64.
        """
        import numpy as np

        if not self.has_room():
            return 0
        count = len(sizes)
        if self._files is not None:
            count = min(count, self._files)
        if self._bytes is not None:
            # A file is let in as long as those before it leave room.
            before = np.cumsum(sizes[:count]) - sizes[:count]
            count = int(np.searchsorted(before, self._bytes, "left"))
        self._spend(count, int(sizes[:count].sum()))
        return count

    def take_whole(self, files: int, size: int) -> bool:
        """Admit files that belong together, all or none; the first of a batch always."""
        fits = (self._files is None or files <= self._files) and (self._bytes is None or size <= self._bytes)
        if self._taken and not fits:
            return False
        self._spend(files, size)
        return True

    def _spend(self, files: int, size: int) -> None:
        if files:
            self._taken = True
        if self._files is not None:
            self._files -= files
        if self._bytes is not None:
            self._bytes -= size
