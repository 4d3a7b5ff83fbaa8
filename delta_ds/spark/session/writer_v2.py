"""`DataFrameWriterV2` for a table by path: ``df.writeTo("pydelta.`/path`")``.

Source: Spark, `DataFrameWriterV2`; conditions and outcomes as delta-spark's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.conditions.tables import CANNOT_REPLACE_MISSING_TABLE_AT_PATH
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.options.write import ERROR
from delta_ds.kernel.properties import PREFIX
from delta_ds.spark.arguments import public_methods
from delta_ds.spark.session import tables
from delta_ds.spark.session.conditions import column_name, sql_of
from delta_ds.spark.session.positions import with_types
from delta_ds.spark.session.writing import (
    APPEND,
    OF_EVERY_WRITE,
    OVERWRITE,
    as_existing_name,
    save,
    with_settings,
)
from delta_ds.spark.table_names import FORMAT, is_ours

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EVERYTHING = "true"


@public_methods
class PathWriter:
    """Says what to write, then writes: like `pyspark.sql.DataFrameWriterV2`, for a table by its path."""

    def __init__(self, df: DataFrame, path: str) -> None:
        self._df = df
        self._path = path
        self._options: dict[str, str] = {}
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
        """A property `delta.*` of a new table."""
        if not property.lower().startswith(PREFIX):
            raise InvalidOptionError(
                f"a write sets properties {PREFIX}* only, not {property!r}; set it with "
                "DeltaTable.forPath(...).setProperties(...) when the table is there",
                parameters={"property": property},
            )
        return self.option(property, value)

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
            self._save(ERROR)

    def replace(self) -> None:
        """Put a table with these rows, their schema and the given properties in the place of one that is there.

        Raises
        ------
        NotADeltaTableError
            There is none.
        """
        if tables.find_table(self._df.sparkSession, self._table_options()) is None:
            raise CANNOT_REPLACE_MISSING_TABLE_AT_PATH(table=self._path)
        self._save(OVERWRITE, replaceTable="true")

    def createOrReplace(self) -> None:
        """As `replace`, where there is a table, else as `create`."""
        self._save(OVERWRITE, replaceTable="true")

    def append(self) -> None:
        """Add these rows to the table, columns by their names, cast to the types of the table's columns.

        Raises
        ------
        NotADeltaTableError
            There is none.
        """
        self._save_into("append", APPEND)

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
        table = tables.existing_table(spark, self._table_options(), "overwrite")
        predicate = sql_of(spark, condition, table.schema)
        if predicate == _EVERYTHING:
            self._save_into(table, OVERWRITE, partitionOverwriteMode="static")
        else:
            self._save_into(table, OVERWRITE, replaceWhere=predicate)

    def overwritePartitions(self) -> None:
        """Replace the partitions that these rows belong to; the whole table where it has no partitions.

        Raises
        ------
        NotADeltaTableError
            There is no table.
        """
        self._save_into("overwritePartitions", OVERWRITE, partitionOverwriteMode="dynamic")

    def _table_options(self) -> dict[str, str]:
        return {**self._options, "path": self._path}

    def _save_into(self, table: tables.Table | str, mode: str, **extra: str) -> None:
        """Write to a table that is there, or that the call of that name needs."""
        spark = self._df.sparkSession
        if isinstance(table, str):
            table = tables.existing_table(spark, self._table_options(), table)
        options = with_settings(spark, self._table_options(), OF_EVERY_WRITE)
        self._save(mode, with_types(self._df, table, options), **extra)

    def _save(self, mode: str, rows: DataFrame | None = None, **extra: str) -> None:
        given = {name.lower() for name in self._options}
        for name, text in extra.items():
            if name.lower() in given:
                raise InvalidOptionError(
                    f"the option {name!r} contradicts the call, which says {text!r} itself",
                    parameters={"option": name},
                )
        options = {**self._options, **extra}
        save(
            self._df if rows is None else rows,
            self._path,
            mode,
            options,
            self._partition_by,
            self._cluster_by,
        )
