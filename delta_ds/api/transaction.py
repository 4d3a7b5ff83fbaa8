"""`Transaction`: the transaction of the kernel, with the version that was read as users hold it."""

from __future__ import annotations

from delta_ds.api.snapshot import Snapshot
from delta_ds.kernel.transaction import transaction


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

    _shown: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The version that was read; None if there is no table yet."""
        if self.base is None:
            return None
        if self._shown is None:
            self._shown = Snapshot(self.base)
        return self._shown
