"""Writes that make their table, or put one in the place of another: CREATE and REPLACE ... AS SELECT in all forms.

Source: delta-spark, `CreateDeltaTableCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.events.reading import OPTION_PASSED_OVER
from delta_ds.kernel.format.operations import (
    CREATE_OR_REPLACE_TABLE_AS_SELECT,
    CREATE_TABLE_AS_SELECT,
    REPLACE_TABLE_AS_SELECT,
)
from delta_ds.kernel.format.options.write import ERROR, NewTableOptions
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.transaction.write.intent import OVERWRITE
from delta_ds.records import dataclass, field
from delta_ds.spark.session.writes.request import MAKE_TABLE, WriteRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create_or_replace"
_OPERATIONS = {
    CREATE: CREATE_TABLE_AS_SELECT,
    REPLACE: REPLACE_TABLE_AS_SELECT,
    CREATE_OR_REPLACE: CREATE_OR_REPLACE_TABLE_AS_SELECT,
}


@dataclass(frozen=True)
class NewTable:
    """A table as a call or statement describes it.

    Attributes
    ----------
    mode
        `create`, `replace` or `create_or_replace`.
    schema
        Its columns, with generated, identity and default values in their metadata; empty where none are given.
    partitioning, clustering
        Columns as in SQL.
    properties
        TBLPROPERTIES.
    options
        OPTIONS: of the write, and of the filesystem.
    comment
        The description of the table.
    """

    mode: str
    schema: StructType = StructType(())
    partitioning: Sequence[str] = ()
    clustering: Sequence[str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    comment: str | None = None


def as_new_table(
    rows: DataFrame,
    table: NewTable,
    options: Mapping[str, str],
    *,
    managed: bool = False,
    name: str | None = None,
    is_save_as_table: bool = False,
) -> WriteRequest:
    """The write that makes a table with its rows.

    Parameters
    ----------
    table
        The table; its columns are those of the rows.
    options
        Of the writer; `path` and what the filesystem needs among them.
    managed
        Whether the table's folder belongs to a catalog.
    name
        By which a catalog is to know the table; None: it is known by its path.
    is_save_as_table
        The call is `saveAsTable`: in mode overwrite it replaces rows, and the table that is there stays.
    """
    overwrites = table.mode == CREATE_OR_REPLACE and is_save_as_table
    definition = NewTableOptions(
        operation=_OPERATIONS[table.mode].name,
        properties=dict(table.properties),
        description=table.comment,
        managed=managed,
        name=name,
        is_save_as_table_overwrite=overwrites,
    )
    return WriteRequest(
        rows,
        MAKE_TABLE,
        ERROR if table.mode == CREATE else OVERWRITE,
        {**table.options, **_counting(table, options)},
        table.partitioning,
        table.clustering or (),
        definition=definition,
        replaces_table=table.mode != CREATE and not overwrites,
    )


def _counting(table: NewTable, options: Mapping[str, str]) -> dict[str, str]:
    """The writer's options but for `userMetadata`, which only counts where a table may be there, as in delta-spark."""
    if table.mode == CREATE_OR_REPLACE:
        return dict(options)
    kept = {name: text for name, text in options.items() if name.lower() != "usermetadata"}
    if len(kept) != len(options):
        hint = f"set spark.databricks.delta.commitInfo.userMetadata for {_OPERATIONS[table.mode].name}"
        OPTION_PASSED_OVER.log(option="userMetadata", kind="write", hint=hint)
    return kept
