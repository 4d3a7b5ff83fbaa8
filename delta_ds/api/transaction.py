"""`Transaction`: the transaction of the kernel, with the version and the scans of it as users hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.api.snapshot import Scan, Snapshot
from delta_ds.kernel.transaction import transaction

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot as Version
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.transaction import CommitFollower


class Transaction(transaction.Transaction):
    """An optimistic transaction on a table: read, collect actions, commit once.

    Everything that the commit depends on has to be read through the transaction, or declared to it: other commits
    are checked against these reads. A transaction without reads that only adds files is a blind append.

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> from delta_ds.testing import TableBuilder
    >>> table = TableBuilder(tempfile.mkdtemp())
    >>> table.create(pa.schema([("id", pa.int64())]))
    0
    >>> add = table.write_file(pa.table({"id": [1, 2]}))
    >>> DeltaLog(table.path).start_transaction().add(add["add"]).commit("WRITE", {"mode": "Append"})
    1
    """

    def __init__(
        self,
        storage: Storage,
        base: Snapshot | Version | None,
        *,
        engine_info: str | None = None,
        use_statistics: bool = False,
        current: CommitFollower | None = None,
    ) -> None:
        self._shown = base if isinstance(base, Snapshot) else None
        version = base._version if isinstance(base, Snapshot) else base
        super().__init__(
            storage, version, engine_info=engine_info, use_statistics=use_statistics, current=current
        )

    @property
    def snapshot(self) -> Snapshot | None:
        """The version that was read; None if there is no table yet."""
        if self.base is None:
            return None
        if self._shown is None:
            self._shown = Snapshot(self.base)
        return self._shown

    def scan(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
        metadata_columns: Sequence[str] = (),
    ) -> Scan:
        """A scan of the version, recorded as read: its predicate, and the files left after skipping.

        Parameters
        ----------
        predicate, columns, timezone, metadata_columns
            As in `Snapshot.scan`, whose errors it has.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.scan("country = 'DE'").num_files
        2
        """
        found = self.recorded_scan(predicate, columns, timezone=timezone, metadata_columns=metadata_columns)
        read = self.snapshot
        assert read is not None  # else there was nothing to scan
        return Scan._around(read, found)
