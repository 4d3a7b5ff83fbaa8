"""`TableLog`: what a command needs of the log of a table; `DeltaLog` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.transaction import Transaction


class TableLog(Protocol):
    """The log of a table: where it lies, and transactions on it."""

    storage: Storage

    def start_transaction(self, *, create: bool = False) -> Transaction:
        """A transaction on the latest version; see `DeltaLog.start_transaction`."""
        ...
