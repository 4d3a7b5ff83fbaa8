"""Whether a table may come to be at a place: what else lies there would become its own, and VACUUM would delete it.

Source: delta-spark, `CreateDeltaTableCommand.assertPathEmpty`.
"""

from __future__ import annotations

from delta_ds.conditions.commands import (
    CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG,
    CREATE_TABLE_OVER_FILES,
)
from delta_ds.kernel.log.filenames import LOG_DIRECTORY
from delta_ds.kernel.storage.filesystem import Storage


def check_place_is_free(storage: Storage, *, has_columns: bool = True) -> None:
    """Refuse a place that holds anything, where there is no table.

    Parameters
    ----------
    storage
        Of the place; what a catalog has made ready is free.
    has_columns
        Whether the table is described; else it was expected to be there.

    Raises
    ------
    TableExistsError
        There is something, and no table.
    """
    if storage.managed:
        return
    first = _first_entry(storage)
    if first is None:
        return
    refusal = CREATE_TABLE_OVER_FILES if has_columns else CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG
    raise refusal(tableId=storage.url, tableLocation=storage.url, file=first)


def _first_entry(storage: Storage) -> str | None:
    """The path of any file or folder, but for those of a log without versions; None where there is none."""
    for batch in storage.list_below("", lambda folder: False):
        for path in batch["path"].to_pylist():
            if path.split("/", 1)[0] != LOG_DIRECTORY:
                return str(path)
    return None
