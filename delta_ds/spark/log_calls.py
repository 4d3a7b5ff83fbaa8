"""What `DeltaTable` asks of a log, as functions that can be sent to the server of a Spark Connect session."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from delta_ds.exceptions import DeltaConcurrentModificationException, NotADeltaTableError
from delta_ds.kernel.alter import constraints
from delta_ds.kernel.delta_log import DeltaLog


def location(log: DeltaLog) -> str:
    """The full path or URL of a table that is there, without secrets.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    """
    try:
        log.snapshot()
    except NotADeltaTableError as error:
        raise NotADeltaTableError(
            f"`{log.storage.url}` is not a Delta table: {error.text}", condition="DELTA_MISSING_DELTA_TABLE"
        ) from error
    return log.storage.url


def belongs_to_a_table(log: DeltaLog) -> bool:
    """Whether a path is that of a table, or of a folder inside one."""
    try:
        log.snapshot()
    except NotADeltaTableError:
        parent = log.storage.url.rstrip("/").rpartition("/")[0]
        at_the_top = not parent or parent.endswith((":", "/"))
        return not at_the_top and belongs_to_a_table(DeltaLog(parent))
    return True


def detail(log: DeltaLog) -> dict[str, Any]:
    """See `Snapshot.detail`, of the latest version."""
    return log.snapshot().detail()


class _Valid(Exception):
    """A constraint came as far as the check of the rows."""


def constraint_to_check(log: DeltaLog, name: str, expression: str) -> int:
    """Check a new CHECK constraint up to the rows; nothing is written.

    Returns
    -------
    int
        The version whose rows are to be checked before `add_checked_constraint`.

    Raises
    ------
    DeltaError
        As `add_constraint`, for everything but the rows.
    """

    def stop(_: str) -> None:
        raise _Valid

    version = log.snapshot().version
    with suppress(_Valid):
        constraints.add_constraint(log, name, expression, stop)
    return version


def add_checked_constraint(log: DeltaLog, name: str, expression: str, version: int) -> None:
    """Add a CHECK constraint that all rows of a version meet.

    Raises
    ------
    DeltaConcurrentModificationException
        There is a newer version, whose rows nobody has checked.
    """

    def unchanged(_: str) -> None:
        newest = log.snapshot().version
        if newest != version:
            raise DeltaConcurrentModificationException(
                f"while the rows of version {version} of {log.storage.url} were checked against the new CHECK "
                f"constraint {name}, version {newest} was committed. Add the constraint again. Nothing was written",
                parameters={"version": newest},
            )

    constraints.add_constraint(log, name, expression, unchanged)
