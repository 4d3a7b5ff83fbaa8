"""`DeltaTable`: a table in a Spark session, with the methods of `delta.tables.DeltaTable`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.card import Card, Shown
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.transaction.alter import create
from delta_ds.records import replace
from delta_ds.spark.api.builder import DeltaTableBuilder
from delta_ds.spark.api.description import TableDescription
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.commands.handle import open_handle, open_name
from delta_ds.spark.engines.arguments import NotExecuted, missing_attribute, public_methods
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ServerLog, ask, open_log, run
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.commands.health import Health
    from delta_ds.kernel.commands.maintain import Maintenance
    from delta_ds.kernel.commands.plot.plots import Plots
    from delta_ds.spark.commands.apply_changes.builder import DeltaApplyChangesBuilder
    from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder
    from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder

# Commands are imported by the methods that run them: a program that only reads does not pay for them.


@public_methods
class DeltaTable(TableDescription, Shown):
    """A Delta table at a path; made by `forPath`, `forName` or a builder.

    In a classic session this process reads the log and commits; on Spark Connect the server's Python does. The data
    source reads the rows. In the examples `/data/orders` has four orders, partitioned by country.

    Examples
    --------
    >>> from delta_ds import DeltaTable
    >>> table = DeltaTable.forPath(spark, "/data/orders")
    >>> table.toDF().orderBy("id").show()
    +---+-------+------+
    | id|country|amount|
    +---+-------+------+
    |  1|     DE|  10.0|
    |  2|     FR|  20.0|
    |  3|     DE|  30.0|
    |  4|     PL|  40.0|
    +---+-------+------+
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

        Examples
        --------
        >>> DeltaTable.forPath(spark, "examples/data/sales").toDF().columns
        ['order_id', 'sold_on', 'country', 'product', 'quantity', 'amount']
        """
        return cls(open_handle(sparkSession, path, dict(hadoopConf or {})))

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Open a table by its name in the session catalog, or by its path as ``delta.`/path` ``.

        Parameters
        ----------
        sparkSession
            A classic session or one of Spark Connect.
        tableOrViewName
            `table`, `schema.table`, ``delta.`/path` `` or ``pydelta.`/path` ``.

        Raises
        ------
        UnsupportedOperationError
            The catalog does not know the tables of this package: the session is not registered.
        NotADeltaTableError
            There is no table of that name or at the path, or it is of another format.

        Examples
        --------
        >>> DeltaTable.forName(spark, "delta.`/data/orders`").toDF().count()
        4
        """
        return cls(open_name(sparkSession, tableOrViewName))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Return whether a path is that of a table, or of a folder inside one.

        Parameters
        ----------
        sparkSession
            A classic session or one of Spark Connect.
        identifier
            A local path or URL.

        Examples
        --------
        >>> DeltaTable.isDeltaTable(spark, "/data/orders"), DeltaTable.isDeltaTable(spark, "/data")
        (True, False)
        """
        return bool(ask(open_log(sparkSession, identifier, {}), log_calls.belongs_to_a_table))

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | SparkStructType | None = None,
        collectStatistics: bool | None = None,
    ) -> DeltaTable:
        """Convert a folder of Parquet files to a table; the files stay where they are.

        Parameters
        ----------
        sparkSession
            A classic session or one of Spark Connect.
        identifier
            ``parquet.`/path/of/the/folder` ``.
        partitionSchema
            The partition columns, in the order of the folders: `year int, month int`, or a schema.
        collectStatistics
            Whether to read statistics from the files; None: as the session's setting says. `NO STATISTICS` in SQL.

        Returns
        -------
        DeltaTable
            The table; an existing one is returned unchanged.

        Raises
        ------
        DataFileError
            The folder does not exist or holds no file, or a file is not a Parquet file.
        SchemaError
            The schemas of the files cannot be merged, or the folders do not fit the partition columns.
        UnsupportedOperationError
            The identifier does not name a folder of Parquet files.

        Examples
        --------
        >>> spark.range(3).selectExpr("id", "id % 2 AS half").write.partitionBy("half").parquet("/data/files")
        >>> table = DeltaTable.convertToDelta(spark, "parquet.`/data/files`", "half int")
        >>> table.toDF().count()
        3
        """
        from delta_ds.spark.commands.convert import run_convert

        return cls(run_convert(sparkSession, identifier, partitionSchema, collectStatistics))

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Build a new table; an existing one is an error.

        Parameters
        ----------
        sparkSession
            None: the active session.

        Returns
        -------
        DeltaTableBuilder
            Its `execute()` creates the table.

        Examples
        --------
        >>> builder = DeltaTable.create(spark).location("/data/visits").addColumn("page", "string")
        >>> builder.execute().toDF().dtypes
        [('page', 'string')]
        """
        return DeltaTableBuilder(_session(sparkSession), create.CREATE, cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Build a new table; an existing one stays unchanged.

        Parameters
        ----------
        sparkSession
            None: the active session.

        Returns
        -------
        DeltaTableBuilder
            Its `execute()` creates the table.

        Examples
        --------
        >>> builder = DeltaTable.createIfNotExists(spark).location("/data/orders")
        >>> builder.execute().toDF().count()
        4
        """
        return DeltaTableBuilder(_session(sparkSession), create.IF_NOT_EXISTS, cls)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Build a table that replaces an existing one; older versions stay.

        Parameters
        ----------
        sparkSession
            None: the active session.

        Returns
        -------
        DeltaTableBuilder
            Its `execute()` creates the table.

        Examples
        --------
        >>> builder = DeltaTable.replace(spark).location("/data/orders").addColumn("page", "string")
        >>> table = builder.execute()
        >>> table.toDF().count(), spark.read.format("pydelta").load("/data/orders@v1").count()
        (0, 4)
        """
        return DeltaTableBuilder(_session(sparkSession), create.REPLACE, cls)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Build a new table, or replace the existing one; older versions stay.

        Parameters
        ----------
        sparkSession
            None: the active session.

        Returns
        -------
        DeltaTableBuilder
            Its `execute()` creates the table.

        Examples
        --------
        >>> builder = DeltaTable.createOrReplace(spark).location("/data/visits").addColumn("page", "string")
        >>> builder.execute().history().count()
        1
        """
        return DeltaTableBuilder(_session(sparkSession), create.CREATE_OR_REPLACE, cls)

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table under a name that expressions can use.

        Parameters
        ----------
        aliasName
            For columns of the table in conditions and values: `t.id`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> table.update("t.id = 1", {"amount": "t.amount + 1"}).first().num_affected_rows
        1
        """
        return DeltaTable(replace(self._handle, alias=aliasName))

    # --- what is in it

    def toDF(self) -> DataFrame:
        """The rows of the latest version.

        Returns
        -------
        DataFrame
            Each action reads the latest version at that time, also if the DataFrame was created before a commit.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.toDF().where("country = 'DE'").count()
        2
        """
        df = read(self._handle.spark, self._handle.options)
        df = df.alias(self._handle.alias) if self._handle.alias else df
        engine_of(self._handle.spark).frames.follow()
        self._handle.given.append(df)
        return df

    def changes(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        net: str | None = None,
        keys: Sequence[str] | None = None,
    ) -> DataFrame:
        """Return the change data feed: inserted, updated and deleted rows, with `_change_type`, `_commit_version` and
        `_commit_timestamp`. Not in delta-spark, which has read options for it.

        Parameters
        ----------
        start, end
            The first and the last version (int), or timestamps: text in the session time zone, or an aware
            datetime. By default from version 0 to the latest.
        net
            How the changes of one key are reduced. `net`: their effect over the whole range, an insert, a delete,
            or both sides of an update; nothing if a row was inserted and deleted, or did not change. `latest`: the
            last change. Rows carry the version and time of the last change. None: all changes.
        keys
            With `net`: the columns that identify rows, of any type but nested ones. Null is a value like any other.

        Raises
        ------
        ChangeDataError
            The range is empty or out of reach, or changes were not recorded in all of it. On Spark Connect, and on
            the portable path, this is raised when the rows are read.
        InvariantViolationError
            Two rows have the same key; raised when the rows are read.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> deleted = table.delete("id = 4")
        >>> table.changes(1).select("id", "_change_type", "_commit_version").orderBy("id", "_commit_version").show()
        +---+------------+---------------+
        | id|_change_type|_commit_version|
        +---+------------+---------------+
        |  3|      insert|              1|
        |  4|      insert|              1|
        |  4|      delete|              2|
        +---+------------+---------------+
        >>> net = table.changes(1, net="net", keys=["id"])
        >>> net.select("id", "_change_type", "_commit_version").show()
        +---+------------+---------------+
        | id|_change_type|_commit_version|
        +---+------------+---------------+
        |  3|      insert|              1|
        +---+------------+---------------+
        """
        from delta_ds.spark.commands.describe import run_changes

        return run_changes(self._handle, start, end, net, keys)

    def blame(
        self,
        condition: str | Column | None = None,
        columns: Sequence[str] | None = None,
        version: int | None = None,
        timestamp: str | datetime | None = None,
    ) -> DataFrame:
        """The rows of the table, each with the commit that last wrote it. Not in delta-spark.

        The table needs row tracking (`delta.enableRowTracking`). Copying a row does not count as writing it: rows
        that OPTIMIZE moves, or that an UPDATE does not change in a file that it rewrites, keep their commit.

        Parameters
        ----------
        condition
            Of the rows; None: all.
        columns
            Top-level columns of the table to return, in order; None: all.
        version, timestamp
            The version or time to read: a version, or text in the session time zone or an aware datetime. Neither:
            the latest version at the time of the call.

        Returns
        -------
        DataFrame
            The columns of the table, `_row_id` and `_commit_version` (bigint), `_commit_timestamp` (timestamp),
            `_commit_operation`, `_commit_user_id`, `_commit_user_name`, `_commit_user_metadata`,
            `_commit_engine_info`, `_commit_txn_id` (string), `_commit_application`, `_commit_job` and
            `_commit_notebook` (structs). All but the first two are null if the log no longer has the commit, or the
            commit does not record them.

        Raises
        ------
        UnsupportedOperationError
            The table does not track rows.
        SchemaError
            A column does not exist, or has the name of a column of the result.
        VersionNotFoundError, TimestampOutOfRangeError
            The version no longer exists.

        Examples
        --------
        >>> rows = spark.range(2).write.format("pydelta").option("delta.enableRowTracking", "true")
        >>> rows.save("/data/tracked")
        >>> table = DeltaTable.forPath(spark, "/data/tracked")
        >>> updated = table.update("id = 1", {"id": "10"})
        >>> table.blame("id > 0").select("id", "_commit_version", "_commit_operation").show()
        +---+---------------+-----------------+
        | id|_commit_version|_commit_operation|
        +---+---------------+-----------------+
        | 10|              1|           UPDATE|
        +---+---------------+-----------------+
        """
        from delta_ds.spark.commands.blame import run_blame

        return run_blame(self._handle, condition, columns, version, timestamp)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits, newest first, in the 15 columns of delta-spark.

        Parameters
        ----------
        limit
            Maximum number of commits; None for all that the log still holds.

        Returns
        -------
        DataFrame
            `version`, `timestamp`, `operation`, `operationParameters`, `operationMetrics`, `userMetadata`, ...

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.history(1).select("version", "operation").show()
        +-------+---------+
        |version|operation|
        +-------+---------+
        |      1|    WRITE|
        +-------+---------+
        """
        from delta_ds.spark.commands.describe import run_history

        return run_history(self._handle, limit)

    def detail(self) -> DataFrame:
        """Describe the latest version in one row: location, size, properties, protocol.

        Returns
        -------
        DataFrame
            The columns of `DESCRIBE DETAIL`: `location`, `numFiles`, `sizeInBytes`, `partitionColumns`, ...

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.detail().select("format", "numFiles", "partitionColumns").show()
        +------+--------+----------------+
        |format|numFiles|partitionColumns|
        +------+--------+----------------+
        | delta|       4|       [country]|
        +------+--------+----------------+
        """
        from delta_ds.spark.commands.describe import run_detail

        return run_detail(self._handle)

    def health(self) -> Health:
        """Report small files, deleted rows and other figures, and the commands that are due; reads the log only.

        Returns
        -------
        Health
            What OPTIMIZE would join, deleted rows, files without statistics, commits since the last checkpoint,
            what VACUUM would delete; `due` names the commands, with reasons. `print` shows all of it.

        Examples
        --------
        >>> DeltaTable.forPath(spark, "examples/data/sales").health().num_rows
        241
        """
        from delta_ds.kernel.commands.health import health

        result: Health = ask(self._handle.log, health)
        return result

    def maintain(self, vacuum: bool = False, dryRun: bool = False) -> Maintenance:
        """Run the commands that `health` reports as due; if none is due, commit nothing.

        OPTIMIZE, purge of deleted rows, statistics, VACUUM and a checkpoint, in this order. Others may write at the
        same time: if one of their commits contradicts a step, nothing of that step is committed, the result says
        so, and the next steps run.

        Parameters
        ----------
        vacuum
            Whether VACUUM may run, with the table's own retention.
        dryRun
            Only report what would be done, and why.

        Returns
        -------
        Maintenance
            `steps`: the command, reason, outcome, version, seconds and metrics of each; `rows` has them as
            dictionaries, and `print` shows them.

        Raises
        ------
        UnsupportedFeatureError
            The table has a feature that this package cannot write. Nothing was done.

        Examples
        --------
        >>> DeltaTable.forPath(spark, "examples/data/sales").maintain(dryRun=True).steps[0].command
        'REORG'
        """
        from delta_ds.spark.commands.vacuum import run_maintenance

        return run_maintenance(self._handle, vacuum, dryRun)

    @property
    def plot(self) -> Plots:
        """Pictures of the table: `Plots.history`, `Plots.layout` and `Plots.skipping`.

        They need matplotlib: `pip install "delta-ds[plot]"`; on Spark Connect only on the client. Not in
        delta-spark.
        """
        from delta_ds.kernel.commands.plot.plots import Plots

        handle = self._handle

        def asked(function: Callable[..., Any], *arguments: Any) -> Any:
            with delta_errors():
                return ask(handle.log, log_calls.at_version, None, function, arguments)

        return Plots(asked, lambda: time_zone(handle.spark))

    # --- rows

    def delete(self, condition: str | Column | None = None) -> DataFrame:
        """Delete the rows that match a condition, or all.

        Files without a matching row are not touched. Others are rewritten, or get deletion vectors if
        `delta.enableDeletionVectors` is true. Files of older versions stay until VACUUM.

        Parameters
        ----------
        condition
            SQL text or a Column; None for all rows.

        Returns
        -------
        DataFrame
            One row: `num_affected_rows` bigint.

        Raises
        ------
        PredicateError
            The condition is not boolean, or cannot be evaluated.
        AppendOnlyError
            The table is append-only.
        DeltaConcurrentModificationException
            Another commit came first and conflicts with this one. Nothing was deleted.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.delete("country = 'DE' AND amount < 20").first().num_affected_rows
        1
        """
        from delta_ds.spark.commands.delete import run_delete

        return run_delete(self._handle, condition)

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[Any, str | Column] | None = None,
    ) -> DataFrame:
        """Change the rows that match a condition, or all.

        Parameters
        ----------
        condition
            SQL text or a column; None for all rows.
        set
            Columns, as text or Column, to values: SQL text or Column. Required, as in delta-spark. A text is SQL:
            the string x is `"'x'"`.

        Returns
        -------
        DataFrame
            One row: `num_affected_rows` bigint.

        Raises
        ------
        SchemaError
            There is no such column, or the value does not fit its type.
        InvariantViolationError
            A changed row breaks a constraint. Nothing was changed.
        DeltaConcurrentModificationException
            Another commit came first and conflicts with this one. Nothing was changed.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.update("country = 'DE'", {"amount": "amount * 2"}).first().num_affected_rows
        2
        """
        from delta_ds.spark.commands.update import run_update

        return run_update(self._handle, condition, set)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Start a MERGE: update, delete and insert by the rows of a source, in one commit.

        Parameters
        ----------
        source
            Each row of the table may match at most one row of the source.
        condition
            SQL text or a Column over both sides, which matches their rows. Use aliases to distinguish the sides.

        Returns
        -------
        DeltaMergeBuilder
            Add clauses to it, `whenMatchedUpdate`, `whenNotMatchedInsertAll`, ...; nothing happens before its
            `execute()`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> done = (
        ...     table.alias("t")
        ...     .merge(new.alias("s"), "t.id = s.id")
        ...     .whenMatchedUpdate(set={"amount": "s.amount"})
        ...     .whenNotMatchedInsertAll()
        ...     .execute()
        ... )
        >>> done.first()
        Row(num_affected_rows=2, num_updated_rows=1, num_deleted_rows=0, num_inserted_rows=1)
        """
        from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder

        unfinished = NotExecuted(f"the MERGE into {self._handle.where}")
        return DeltaMergeBuilder(self._handle, source, condition, _unfinished=unfinished)

    def applyChanges(self, source: DataFrame) -> DeltaApplyChangesBuilder:
        """Start to apply events to a slowly changing dimension of type 1 or 2, with one commit per batch.

        Parameters
        ----------
        source
            The events, a batch or a stream: rows of any source, or a change feed, which contains the order and the
            deletes.

        Returns
        -------
        DeltaApplyChangesBuilder
            Call `keys`, `sequenceBy`, `applyAsDeletes`, ... and `scd1()` or `scd2(...)` on it; nothing happens
            before its `execute()` or `writeStream()`.

        Examples
        --------
        >>> city = DeltaTable.create(spark).location("/data/city").addColumn("id", "bigint").addColumn("city", "string")
        >>> city = city.addColumn("_sequence", "bigint").execute()
        >>> events = spark.createDataFrame([(1, "Aachen", 1), (1, "Berlin", 5)], "id bigint, city string, ts bigint")
        >>> done = city.applyChanges(events).keys("id").sequenceBy("ts").scd1().execute()
        >>> city.toDF().collect()
        [Row(id=1, city='Berlin', _sequence=5)]
        """
        from delta_ds.spark.commands.apply_changes.builder import DeltaApplyChangesBuilder

        unfinished = NotExecuted(f"applyChanges to {self._handle.where}")
        return DeltaApplyChangesBuilder(self._handle, source, _unfinished=unfinished)

    # --- files

    def optimize(self) -> DeltaOptimizeBuilder:
        """Start an OPTIMIZE: arrange rows in fewer, larger files; no row changes.

        Returns
        -------
        DeltaOptimizeBuilder
            Call `where` on it to choose partitions; nothing happens before its `executeCompaction()`,
            `executeZOrderBy(...)`, ...

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.optimize().executeCompaction().first().metrics.numFilesRemoved
        2
        """
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
            How long removed files are kept; None: `delta.deletedFileRetentionDuration`, by default one week.
        dryRun
            Only report what would be deleted.
        mode
            `FULL` lists the table's folder. `LITE` reads from the log which files were removed, which is quicker,
            but leaves files that were never committed.
        inventory
            The existing files, instead of a listing: columns `path` string (full address), `length` long, `isDir`
            boolean, `modificationTime` long (ms since 1970). All but retentionHours is SQL in delta-spark.

        Returns
        -------
        DataFrame
            Empty; for a dry run one column `path`.

        Raises
        ------
        InvalidOptionError
            The retention is negative, or shorter than the table's, which is refused unless
            `spark.databricks.delta.retentionDurationCheck.enabled` is false; or the inventory has other columns.
        UnsupportedFeatureError
            The table has a feature that this package cannot write.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.vacuum(dryRun=True).count()
        0
        """
        from delta_ds.spark.commands.vacuum import run_vacuum

        return run_vacuum(self._handle, retentionHours, dryRun, mode, inventory)

    def generate(self, mode: str) -> None:
        """Write files for engines without Delta: manifests (lists of files), or Iceberg metadata.

        Parameters
        ----------
        mode
            `symlink_format_manifest`: into the folder `_symlink_format_manifest`. `iceberg`: into `metadata`, for
            the newest version, if a commit could not; not in delta-spark.

        Raises
        ------
        InvalidOptionError
            There is no such mode.
        UnsupportedOperationError
            The table has deletion vectors, which such engines would not see; or
            `delta.universalFormat.enabledFormats` does not name Iceberg.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.generate("symlink_format_manifest")
        """
        run(self._handle.log, generate, mode)

    def checkpoint(self) -> None:
        """Write a checkpoint of the latest version now, from which readers begin. Not in delta-spark.

        Commits write checkpoints automatically, every `delta.checkpointInterval` versions.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.checkpoint()
        >>> table.health().commits_since_checkpoint
        0
        """
        run(self._handle.log, DeltaLog.checkpoint)

    # --- versions

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the table to a version, as a new version.

        Parameters
        ----------
        version
            One that the history still has.

        Returns
        -------
        DataFrame
            Sizes in bytes and numbers of files, in the six columns of delta-spark; empty if the table already is at
            that version.

        Raises
        ------
        VersionNotFoundError
            The version cannot be restored.
        DataFileError
            Files that are needed are missing, and `spark.sql.files.ignoreMissingFiles` is false.
        ConcurrentWriteException
            Another commit came first.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.restoreToVersion(0).first().num_removed_files
        2
        >>> table.toDF().count()
        2
        """
        from delta_ds.spark.commands.clone import run_restore

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
            The timestamp is before the first or after the last available commit.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> then = table.history().where("version = 1").first().timestamp
        >>> deleted = table.delete()
        >>> restored = table.restoreToTimestamp(str(then))
        >>> table.toDF().count()
        4
        """
        from delta_ds.spark.commands.clone import run_restore

        return run_restore(self._handle, timestamp=timestamp)

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        filesFrom: Sequence[str] = (),
    ) -> DeltaTable:
        """Clone the table as it is now to another path.

        Parameters
        ----------
        target
            A path or URL; of a shallow clone on the same filesystem.
        isShallow
            True: the clone uses the files of this table, which must stay as long as the clone; a VACUUM of this
            table does not know about the clone. False: all files are copied, and the clone is independent.
        replace
            Whether the clone may replace a table: a shallow clone may replace one without rows. A deep clone of the
            same table is brought up to date: only files that it does not have are copied.
        properties
            Table properties to set over those of this table.
        filesFrom
            For a deep clone: other folders whose Parquet files may be copied too. Without it, files in the table's
            folder are copied, and in the folders of the tables that its log names as sources of a clone.

        Returns
        -------
        DeltaTable
            The new table.

        Raises
        ------
        TableExistsError
            The target already holds a table or files.
        UnsupportedOperationError
            The table that a shallow clone would replace has rows, or a file for a deep clone is elsewhere.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> trial = table.clone("/data/trial", isShallow=True)
        >>> deleted = trial.delete("country = 'DE'")
        >>> trial.toDF().count(), table.toDF().count()
        (2, 4)
        """
        from delta_ds.spark.commands.clone import run_clone

        return DeltaTable(run_clone(self._handle, target, isShallow, replace, properties, filesFrom))

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        filesFrom: Sequence[str] = (),
    ) -> DeltaTable:
        """Clone a version of the table to another path.

        Parameters
        ----------
        version
            One that the history still has.
        target, isShallow, replace, properties, filesFrom
            As in `clone`.

        Raises
        ------
        VersionNotFoundError
            The version does not exist or cannot be read. Otherwise as `clone`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.cloneAtVersion(0, "/data/first", isShallow=True).toDF().count()
        2
        """
        from delta_ds.spark.commands.clone import run_clone

        return DeltaTable(
            run_clone(self._handle, target, isShallow, replace, properties, filesFrom, version=version)
        )

    def cloneAtTimestamp(
        self,
        timestamp: str | datetime,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        filesFrom: Sequence[str] = (),
    ) -> DeltaTable:
        """Clone the table as of a timestamp to another path.

        Parameters
        ----------
        timestamp
            As in `restoreToTimestamp`.
        target, isShallow, replace, properties, filesFrom
            As in `clone`.

        Raises
        ------
        TimestampOutOfRangeError
            The timestamp is before the first or after the last available commit. Otherwise as `clone`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> then = table.history().where("version = 1").first().timestamp
        >>> table.cloneAtTimestamp(str(then), "/data/then", isShallow=True).toDF().count()
        4
        """
        from delta_ds.spark.commands.clone import run_clone

        return DeltaTable(
            run_clone(self._handle, target, isShallow, replace, properties, filesFrom, timestamp=timestamp)
        )

    def __repr__(self) -> str:
        return f"DeltaTable({self._handle.where!r})"

    def _card(self) -> Card:
        """As the table was when this object was made: to be shown must not ask its store, or start a job."""
        handle = self._handle
        card = handle.opened or Card(f"Delta table {handle.where}")
        facts = [
            ("catalog", handle.name),
            ("session", "Spark Connect" if isinstance(handle.log, ServerLog) else None),
        ]
        note = "As it was when this DeltaTable was created; detail() and history() show the newest version."
        return replace(card, facts=[*facts, *card.facts], note=note)

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name):
            raise missing_attribute(self, name, "its rows are the DataFrame toDF()")


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        raise InvalidOptionError("there is no active Spark session: give one, as in DeltaTable.create(spark)")
    return active
