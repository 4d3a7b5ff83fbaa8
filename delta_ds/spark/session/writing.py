"""`df.write` of tables by path, with all save modes, partitioning and clustering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.conditions.session import TABLE_OR_VIEW_ALREADY_EXISTS
from delta_ds.exceptions import TableExistsError
from delta_ds.kernel.format.options.write import ERROR, IGNORE
from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE, save_mode
from delta_ds.spark.base.table_names import with_path
from delta_ds.spark.session.writes.request import (
    APPEND_AS_TABLE,
    INSERT_INTO,
    MAKE_TABLE,
    SAVE,
    WriteRequest,
)
from delta_ds.spark.session.writes.write import CREATE, CREATE_OR_REPLACE, NewTable, as_new_table, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def save(
    df: DataFrame,
    path: str | None,
    mode: str | None,
    options: Mapping[str, str],
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
) -> None:
    """Write rows to the table at a path, as `df.write.save` of delta-spark does.

    Parameters
    ----------
    df
        The rows.
    path
        None: it is among the options.
    mode
        `append`, `overwrite`, `ignore`, `error` or `errorifexists`, in any case; None is `errorifexists`.
    options
        As of `df.write`; see `WRITE_OPTIONS`.
    partition_by, cluster_by
        Columns of a new table; of one that is there they must be the same. Empty: not said.

    Raises
    ------
    TableExistsError
        `errorifexists`, and there is a table, or another one has made it in the meantime.
    DeltaError
        As `write`.
    """
    complete = with_path(options, path, "save")
    write(WriteRequest(df, SAVE, save_mode(mode), complete, partition_by, cluster_by))


def save_as_table(
    df: DataFrame,
    path: str,
    mode: str | None,
    options: Mapping[str, str],
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
) -> None:
    """Write rows as ``df.write.saveAsTable("pydelta.`/path`")`` does; arguments as for `save`.

    As with delta-spark, columns go by their names, an append needs a table and casts to its types, and an overwrite
    keeps the table's schema and partitioning unless the option `overwriteSchema` is set.

    Raises
    ------
    NotADeltaTableError
        `append`, and there is no table.
    DeltaError
        As `write`.
    """
    wanted, complete = save_mode(mode), with_path(options, path, "saveAsTable")
    if wanted == APPEND:
        write(WriteRequest(df, APPEND_AS_TABLE, APPEND, complete, partition_by, cluster_by))
        return
    if wanted == IGNORE:
        write(WriteRequest(df, MAKE_TABLE, IGNORE, complete, partition_by, cluster_by))
        return
    made = CREATE if wanted == ERROR else CREATE_OR_REPLACE
    table = NewTable(made, partitioning=partition_by, clustering=cluster_by)
    with as_existing_name(path):
        write(as_new_table(df, table, complete, is_save_as_table=True))


def insert_into(df: DataFrame, path: str, mode: str | None, options: Mapping[str, str]) -> None:
    """Write rows as ``df.write.insertInto("pydelta.`/path`")`` does: columns go by their place.

    Parameters
    ----------
    mode
        `overwrite` replaces what is there; every other one appends, as in Spark.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    SchemaError
        There are fewer columns than the table has.
    DeltaError
        As `write`.
    """
    wanted = OVERWRITE if save_mode(mode) == OVERWRITE else APPEND
    write(WriteRequest(df, INSERT_INTO, wanted, with_path(options, path, "insertInto")))


@contextmanager
def as_existing_name(path: str) -> Iterator[None]:
    """The error for an existing table, as delta-spark raises it in `saveAsTable` and `create`."""
    try:
        yield
    except TableExistsError as error:
        raise TABLE_OR_VIEW_ALREADY_EXISTS(
            error.parameters, relationName=f"pydelta.`{path}`", reason=error.text
        ) from error
