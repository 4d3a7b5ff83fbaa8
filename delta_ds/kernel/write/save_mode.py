"""The save modes `errorifexists` and `ignore` where the table exists."""

from __future__ import annotations

from delta_ds.conditions.commands import CREATE_TABLE_OVER_TABLE
from delta_ds.conditions.write import PATH_EXISTS
from delta_ds.kernel.options.write import ERROR, IGNORE, WriteOptions


def keeps_existing_table(options: WriteOptions, version: int, table: str) -> bool:
    """Whether a write leaves the table that it found as it is.

    Parameters
    ----------
    options
        Of the write.
    version
        Of the table that is there.
    table
        Its address, for messages.

    Raises
    ------
    TableExistsError
        `ifExists` is `error`.
    """
    if options.if_exists == ERROR and options.definition is not None and options.definition.name is not None:
        raise CREATE_TABLE_OVER_TABLE(tableId=options.definition.name, tableLocation=table, version=version)
    if options.if_exists == ERROR:
        raise PATH_EXISTS(path=table, version=version)
    return options.if_exists == IGNORE
