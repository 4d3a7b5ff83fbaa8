"""`TableLog`: the log of a table as commands take it: its versions, and transactions on it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError, NotADeltaTableError
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.current import Current
    from delta_ds.kernel.transaction.transaction import Transaction


class TableLog:
    """The log of the table on a storage; what users hold is a `DeltaLog`."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._current: Current | None = None

    def open_snapshot(self, version: int | None = None, timestamp: datetime | int | None = None) -> Snapshot:
        """The state of the table at a version, at a timestamp, or (neither given) as it is now.

        Parameters and errors are those of `DeltaLog.snapshot`.
        """
        latest = open_snapshot(self.storage)
        if timestamp is not None:
            if version is not None:
                raise InvalidOptionError("give a version or a timestamp, not both")
            version = history.version_at(
                self.storage, list_log(self.storage), latest.table_state, history.milliseconds(timestamp)
            )
        # A table whose newest version is damaged or not supported is refused at every version, as delta-spark does.
        return latest if version in (None, latest.version) else open_snapshot(self.storage, version)

    def start_transaction(
        self,
        version: int | None = None,
        *,
        create: bool = False,
        engine_info: str | None = None,
        use_statistics: bool = False,
    ) -> Transaction:
        """A transaction on the table.

        Parameters and errors are those of `DeltaLog.start_transaction`.
        """
        from delta_ds.kernel.transaction.current import Current
        from delta_ds.kernel.transaction.transaction import Transaction

        if self._current is None:
            self._current = Current(self.storage)
        base: Snapshot | None
        try:
            base = self._current.snapshot() if version is None else open_snapshot(self.storage, version)
        except NotADeltaTableError:
            if not create or version is not None:
                raise
            base = None
        return Transaction(
            self.storage, base, engine_info=engine_info, use_statistics=use_statistics, current=self._current
        )
