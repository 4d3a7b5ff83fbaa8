"""`df.write` and `df.writeTo` of tables by path, with all save modes, partitioning and clustering.

`DataFrameWriterV2` for a table by path: ``df.writeTo("pydelta.`/path`")``.
Source: Spark, `DataFrameWriterV2`; conditions and outcomes as delta-spark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.session import TABLE_OR_VIEW_ALREADY_EXISTS
from delta_ds.conditions.tables import CANNOT_REPLACE_MISSING_TABLE_AT_PATH
from delta_ds.exceptions import InvalidOptionError, TableExistsError
from delta_ds.kernel.format.options.write import ERROR, IGNORE
from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE, save_mode
from delta_ds.spark.base.table_names import FORMAT, is_ours, with_path
from delta_ds.spark.engines.arguments import public_methods
from delta_ds.spark.session.conditions import column_name, sql_of
from delta_ds.spark.session.writes.request import (
    APPEND_AS_TABLE,
    INSERT_INTO,
    MAKE_TABLE,
    SAVE,
    WRITE_PARTITIONS,
    WRITE_TO,
    WriteRequest,
    existing_table,
    find_table,
)
from delta_ds.spark.session.writes.write import (
    CREATE,
    CREATE_OR_REPLACE,
    REPLACE,
    NewTable,
    as_new_table,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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


@public_methods
class PathWriter:
    """Says what to write, then writes: like `pyspark.sql.DataFrameWriterV2`, for a table by its path."""

    def __init__(self, df: DataFrame, path: str) -> None:
        self._df = df
        self._path = path
        self._options: dict[str, str] = {}
        self._properties: dict[str, str] = {}
        self._partition_by: tuple[str, ...] = ()
        self._cluster_by: tuple[str, ...] = ()

    def using(self, provider: str) -> PathWriter:
        """The data source of a new table, which can only be this one."""
        if not is_ours(provider):
            raise InvalidOptionError(
                f"{FORMAT}.`{self._path}` is a table of {FORMAT}, it cannot be written using {provider!r}"
            )
        return self

    def option(self, key: str, value: Any) -> PathWriter:
        """An option, as of `df.write`; None leaves it out."""
        if value is not None:
            self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> PathWriter:
        """Options, as of `df.write`."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def tableProperty(self, property: str, value: str) -> PathWriter:
        """A property of a new table."""
        self._properties[property] = value
        return self

    def partitionedBy(self, col: Column | str, *cols: Column | str) -> PathWriter:
        """The partition columns of a new table; expressions such as `years(...)` are refused."""
        spark = self._df.sparkSession
        self._partition_by = tuple(column_name(spark, column) for column in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> PathWriter:
        """The clustering columns of a new table."""
        self._cluster_by = (col, *cols)
        return self

    def create(self) -> None:
        """Create the table with these rows.

        Raises
        ------
        TableExistsError
            It is there already.
        """
        with as_existing_name(self._path):
            self._make(CREATE)

    def replace(self) -> None:
        """Put a table with these rows, their schema and the given properties in the place of one that is there.

        With the option `replaceWhere` rows that do not match it stay.

        Raises
        ------
        NotADeltaTableError
            There is none.
        """
        if find_table(self._df.sparkSession, self._complete()) is None:
            raise CANNOT_REPLACE_MISSING_TABLE_AT_PATH(table=self._path)
        self._make(REPLACE)

    def createOrReplace(self) -> None:
        """As `replace`, where there is a table, else as `create`."""
        self._make(CREATE_OR_REPLACE)

    def append(self) -> None:
        """Add these rows to the table, columns by their names, cast to the types of the table's columns.

        Raises
        ------
        NotADeltaTableError
            There is none.
        """
        write(WriteRequest(self._df, WRITE_TO, APPEND, self._complete()))

    def overwrite(self, condition: Column) -> None:
        """Replace the rows that match a condition, which all these rows have to match too.

        Raises
        ------
        NotADeltaTableError
            There is no table.
        InvariantViolationError
            One of these rows does not match; nothing was written.
        """
        spark = self._df.sparkSession
        table = existing_table(spark, self._complete(), "overwrite")
        replaced = sql_of(spark, condition, table.schema)
        write(WriteRequest(self._df, WRITE_TO, OVERWRITE, self._complete(), replaced=replaced))

    def overwritePartitions(self) -> None:
        """Replace the partitions that these rows belong to; the whole table where it has no partitions.

        Raises
        ------
        NotADeltaTableError
            There is no table.
        """
        write(WriteRequest(self._df, WRITE_PARTITIONS, OVERWRITE, self._complete(), by_partition=True))

    def _complete(self) -> dict[str, str]:
        return with_path(self._options, self._path, "writeTo")

    def _make(self, mode: str) -> None:
        table = NewTable(
            mode,
            partitioning=self._partition_by,
            clustering=self._cluster_by,
            properties=self._properties,
        )
        write(as_new_table(self._df, table, self._complete()))
