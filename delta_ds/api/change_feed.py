"""`ChangeFeed`: the changes of a range of versions, as users hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.files.scan.scan import DEFAULT_PARTITION_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.commands.changes import feed as state
    from delta_ds.kernel.files.read.plan import FileSlice
    from delta_ds.kernel.format.schema.types import StructType


@checked
class ChangeFeed:
    """The changes of a range of versions, at the schema of its end; made by `DeltaLog.changes`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> feed = DeltaLog("/data/orders").changes(0)
    >>> feed.start, feed.end, feed.to_arrow().num_rows
    (0, 1, 4)
    """

    def __init__(self, feed: state.ChangeFeed) -> None:
        self._feed = feed

    @property
    def start(self) -> int:
        """The first version."""
        return self._feed.start

    @property
    def end(self) -> int:
        """The last version, whose changes belong to it."""
        return self._feed.end

    @property
    def net(self) -> str | None:
        """Which changes of a key are kept, `net` or `latest`; None where each change counts."""
        return self._feed.net

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell rows apart, where changes are netted."""
        return self._feed.keys

    @property
    def schema(self) -> StructType:
        """The columns at the end version, and `_change_type`, `_commit_version`, `_commit_timestamp`."""
        return self._feed.schema

    def slices(self) -> list[FileSlice]:
        """One slice a changed file and kind of change, in order of version; of all changes, also where they are netted.

        Examples
        --------
        >>> len(DeltaLog("/data/orders").changes(0).slices())
        4
        """
        return self._feed.slices()

    def tasks(
        self, max_partition_bytes: int = DEFAULT_PARTITION_BYTES, parallelism: int | None = None
    ) -> list[list[FileSlice]]:
        """The slices packed into tasks of about equal size, largest first; of all changes, as `slices`.

        Parameters
        ----------
        max_partition_bytes, parallelism
            As in `Scan.tasks`.

        Examples
        --------
        >>> len(DeltaLog("/data/orders").changes(0).tasks(parallelism=1))
        1
        """
        return self._feed.tasks(max_partition_bytes, parallelism)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changed rows, version by version; net changes in parts, with both sides of an update together.

        Raises
        ------
        InvariantViolationError
            Of net changes: the keys do not tell rows apart.

        Examples
        --------
        >>> batches = DeltaLog("/data/orders").changes(0).to_batches()
        >>> next(batches).schema.names
        ['id', 'country', 'amount', '_change_type', '_commit_version', '_commit_timestamp']
        """
        yield from self._feed.to_batches()

    def to_arrow(self) -> pa.Table:
        """The changed rows as one Arrow table; files are read in parallel.

        Examples
        --------
        >>> DeltaLog("/data/orders").changes(0).to_arrow()["_commit_version"].to_pylist()
        [0, 0, 1, 1]
        """
        return self._feed.to_arrow()
