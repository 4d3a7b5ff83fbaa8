"""`DeltaTable`: a table in a Spark session, with the methods of `delta.tables.DeltaTable`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.alter import create
from delta_ds.kernel.commands.generate import generate
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.records import replace
from delta_ds.spark import log_calls
from delta_ds.spark.arguments import public_methods
from delta_ds.spark.builder import DeltaTableBuilder
from delta_ds.spark.commands.handle import open_handle, open_name
from delta_ds.spark.connect_bridge import ask, fetch, open_log, run
from delta_ds.spark.description import TableDescription
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.commands.health import Health
    from delta_ds.kernel.commands.maintain import Maintenance
    from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder
    from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder

# Commands are imported by the methods that run them: a program that only reads does not pay for them.


@public_methods
class DeltaTable(TableDescription):
    """A Delta table at a path; made by `forPath`, `forName` or a builder.

    In a classic session the log is read and committed to in this process, in one of Spark Connect by Python of the
    server. Rows are read by the data source.
    """

    # --- which table

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """The table at a path.

        Parameters
        ----------
        sparkSession
            A classic session or one of Spark Connect.
        path
            A local path or URL.
        hadoopConf
            Hadoop's `fs.*` settings, or `storage.*` options, for the filesystem.

        Raises
        ------
        NotADeltaTableError
            There is no table.

        >>> DeltaTable.forPath(spark, "examples/data/sales").toDF().columns
        ['order_id', 'sold_on', 'country', 'product', 'quantity', 'amount']
        """
        return cls(open_handle(sparkSession, path, dict(hadoopConf or {})))

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table of a name that is a path: ``pydelta.`/path` `` or ``delta.`/path` ``.

        Raises
        ------
        UnsupportedOperationError
            The name is one of a catalog, which does not know the tables of this package.
        NotADeltaTableError
            There is no table at the path.
        """
        return cls(open_name(sparkSession, tableOrViewName))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a path is that of a table, or of a folder inside one."""
        return bool(ask(open_log(sparkSession, identifier, {}), log_calls.belongs_to_a_table))

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | SparkStructType | None = None,
        collectStatistics: bool | None = None,
    ) -> DeltaTable:
        """Make a folder of Parquet files a table; the files stay where they are.

        Parameters
        ----------
        identifier
            ``parquet.`/path/of/the/folder` ``.
        partitionSchema
            The columns that its folders are named after, in their order: `year int, month int`, or a schema.
        collectStatistics
            Whether to look into the files for statistics; None: as the session's setting says. `NO STATISTICS` in SQL.

        Returns
        -------
        DeltaTable
            Where there is a table already, that one, as it is.

        Raises
        ------
        DataFileError
            There is no such folder or no file in it; a file is no Parquet file.
        SchemaError
            Files do not go together, or folders are not those of the partition columns.
        UnsupportedOperationError
            It is no folder of Parquet files that is named.
        """
        from delta_ds.spark.commands.convert import run_convert

        return cls(run_convert(sparkSession, identifier, partitionSchema, collectStatistics))

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder of a new table, where there is none yet."""
        return DeltaTableBuilder(_session(sparkSession), create.CREATE, cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder of a new table; an existing one is left as it is."""
        return DeltaTableBuilder(_session(sparkSession), create.IF_NOT_EXISTS, cls)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that replaces an existing table; older versions stay."""
        return DeltaTableBuilder(_session(sparkSession), create.REPLACE, cls)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that creates a table or replaces the existing one; older versions stay."""
        return DeltaTableBuilder(_session(sparkSession), create.CREATE_OR_REPLACE, cls)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name that expressions can use."""
        return DeltaTable(replace(self._handle, alias=aliasName))

    # --- what is in it

    def toDF(self) -> DataFrame:
        """The rows of the latest version."""
        df = read(self._handle.spark, self._handle.options)
        self._handle.given.append(df)
        return df.alias(self._handle.alias) if self._handle.alias else df

    def changes(
        self, start: int | str | datetime | None = None, end: int | str | datetime | None = None
    ) -> DataFrame:
        """The change data feed: the rows that came and went, with `_change_type`, `_commit_version` and
        `_commit_timestamp`. Not in delta-spark, which has read options for it.

        Parameters
        ----------
        start, end
            The first and the last version (int), or timestamps: text in the session time zone, or an aware datetime. By
            default from version 0 to the latest.

        Raises
        ------
        ChangeDataError
            The range is empty or out of reach, or changes were not recorded in all of it. On Spark Connect, and
            on the portable path, this shows when the rows are asked for.
        """
        from delta_ds.spark.commands.changes import run_changes

        return run_changes(self._handle, start, end)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first, in the 15 columns of delta-spark.

        Parameters
        ----------
        limit
            At most so many commits; None for all that the log still holds.
        """
        from delta_ds.spark.commands.describe import run_history

        return run_history(self._handle, limit)

    def detail(self) -> DataFrame:
        """One row about the latest version: location, size, properties, protocol."""
        from delta_ds.spark.commands.describe import run_detail

        return run_detail(self._handle)

    def health(self) -> Health:
        """How the table does, by its log alone, and which commands are due; nothing is changed.

        Returns
        -------
        Health
            What OPTIMIZE would join, deleted rows, files without statistics, commits since the last checkpoint, what
            VACUUM would delete; `due` names the commands, with reasons. `print` shows all of it.

        >>> DeltaTable.forPath(spark, "examples/data/sales").health().num_rows
        241
        """
        from delta_ds.kernel.commands.health import health

        found: Health = fetch(self._handle.log, health)
        return found

    def maintain(self, vacuum: bool = False, dryRun: bool = False) -> Maintenance:
        """Run the commands that `health` finds due; where none is due, nothing is committed.

        OPTIMIZE, purge of deleted rows, statistics, VACUUM and a checkpoint, in this order. Writers may go on
        meanwhile: where a commit of theirs contradicts a step, nothing of that step is committed, the result says
        so, and the next steps run.

        Parameters
        ----------
        vacuum
            Whether VACUUM may run, with the table's own retention.
        dryRun
            Only tell what would be done, and why.

        Returns
        -------
        Maintenance
            `steps`: the command, why, what became of it, the version, seconds and metrics of each; `rows` has them as
            dictionaries, and `print` shows them.

        Raises
        ------
        UnsupportedFeatureError
            The table has a feature that this package cannot write. Nothing was done.

        >>> DeltaTable.forPath(spark, "examples/data/sales").maintain(dryRun=True).steps[0].command
        'OPTIMIZE'
        """
        from delta_ds.spark.commands.maintain import run_maintenance

        return run_maintenance(self._handle, vacuum, dryRun)

    # --- rows

    def delete(self, condition: str | Column | None = None) -> DataFrame:
        """Delete the rows that match a condition, or all; see `commands.delete.run_delete`."""
        from delta_ds.spark.commands.delete import run_delete

        return run_delete(self._handle, condition)

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[Any, str | Column] | None = None,
    ) -> DataFrame:
        """Change the rows that match a condition, or all; see `commands.update.run_update`.

        Parameters
        ----------
        condition
            SQL text or a column; None for all rows.
        set
            Columns, as text or Column, to values: SQL text or Column. It has to be given, as in delta-spark.
        """
        from delta_ds.spark.commands.update import run_update

        return run_update(self._handle, condition, set)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Start a MERGE; see `commands.merge.DeltaMergeBuilder`."""
        from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder

        return DeltaMergeBuilder(self._handle, source, condition)

    # --- files

    def optimize(self) -> DeltaOptimizeBuilder:
        """Start an OPTIMIZE; see `commands.optimize.DeltaOptimizeBuilder`."""
        from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder

        return DeltaOptimizeBuilder(self._handle)

    def vacuum(
        self,
        retentionHours: float | None = None,
        dryRun: bool = False,
        mode: str = "FULL",
        inventory: DataFrame | None = None,
    ) -> DataFrame:
        """Delete the files below the table's folder that no version within the retention needs.

        Parameters
        ----------
        retentionHours
            How long what was removed is kept; None: as `delta.deletedFileRetentionDuration` says, a week by default.
        dryRun
            Only say what would be deleted.
        mode
            `FULL` lists the table's folder. `LITE` reads from the log what was removed, which is quicker, and leaves
            files that were never committed.
        inventory
            The files there are, in place of a listing: columns `path` string (full address), `length` long, `isDir`
            boolean, `modificationTime` long (ms since 1970). All but retentionHours is SQL in delta-spark.

        Returns
        -------
        DataFrame
            Without rows and columns; of a dry run one column `path`.

        Raises
        ------
        InvalidOptionError
            The retention is negative, or shorter than the table's, which is refused unless
            `spark.databricks.delta.retentionDurationCheck.enabled` is false; or the inventory has other columns.
        UnsupportedFeatureError
            The table has a feature that this package cannot write.
        """
        from delta_ds.spark.commands.vacuum import run_vacuum

        return run_vacuum(self._handle, retentionHours, dryRun, mode, inventory)

    def generate(self, mode: str) -> None:
        """Write manifests for engines without Delta: mode `symlink_format_manifest`; see `kernel.commands.generate`."""
        run(self._handle.log, generate, mode)

    def checkpoint(self) -> None:
        """Write a checkpoint of the latest version now. Not in delta-spark."""
        run(self._handle.log, DeltaLog.checkpoint)

    # --- versions

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the table to a version, as a new version.

        Returns
        -------
        DataFrame
            Sizes in bytes and numbers of files, in six columns as delta-spark has them; without rows and columns
            where the table is at that version.

        Raises
        ------
        VersionNotFoundError
            It cannot be gone back to.
        DataFileError
            Files that are needed again are gone, and `spark.sql.files.ignoreMissingFiles` is false.
        ConcurrentWriteException
            Another commit came first.
        """
        from delta_ds.spark.commands.restore import run_restore

        return run_restore(self._handle, version=version)

    def restoreToTimestamp(self, timestamp: str | datetime) -> DataFrame:
        """Restore the table to a timestamp, as a new version; see `restoreToVersion`.

        Parameters
        ----------
        timestamp
            As `2024-01-31` or `2024-01-31 13:05:00`, in the session time zone; or an aware datetime.

        Raises
        ------
        TimestampOutOfRangeError
            Before the first or after the last commit that can be reached.
        """
        from delta_ds.spark.commands.restore import run_restore

        return run_restore(self._handle, timestamp=timestamp)

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Clone the table as it is now to another path.

        Parameters
        ----------
        target
            A path or URL on the same filesystem.
        isShallow
            Over the files of this table, which are not copied. They must outlive the clone: a VACUUM of this table
            does not know of it.
        replace
            Whether it may take the place of a table without rows.
        properties
            Table properties to set over those of this table.

        Returns
        -------
        DeltaTable
            The new table.

        Raises
        ------
        TableExistsError
            There is a table, or there are files, at the target.
        UnsupportedOperationError
            A deep clone; or the table in whose place it shall come has rows.
        """
        from delta_ds.spark.commands.clone import run_clone

        return DeltaTable(run_clone(self._handle, target, isShallow, replace, properties))

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Clone a version of the table to another path; see `clone`."""
        from delta_ds.spark.commands.clone import run_clone

        return DeltaTable(run_clone(self._handle, target, isShallow, replace, properties, version=version))

    def cloneAtTimestamp(
        self,
        timestamp: str | datetime,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Clone the table as of a timestamp to another path; see `clone` and `restoreToTimestamp`."""
        from delta_ds.spark.commands.clone import run_clone

        return DeltaTable(
            run_clone(self._handle, target, isShallow, replace, properties, timestamp=timestamp)
        )

    def __repr__(self) -> str:
        return f"DeltaTable({self._handle.where!r})"


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        raise InvalidOptionError("there is no active Spark session: give one, as in DeltaTable.create(spark)")
    return found
