"""delta-spark in one session: reads, changes and checks tables that the kernel has written."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from spark_tests.engines.conformance.compare import encode, without_internal_metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.format.schema.types import StructType

COORDINATES = "io.delta:delta-spark_4.2_2.13:4.4.0"
JARS = "DELTA_DS_INTEROP_JARS"  # files or folders, separated as in PATH, in place of the coordinates

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Tables are tiny: what costs is compiling, planning and starting tasks.
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Versions whose files are past the retention of deleted files are read here, too.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def start() -> SparkSession:
    """A session with delta-spark; its jars by Maven coordinates, unless `DELTA_DS_INTEROP_JARS` names them."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("delta_ds interop")
    for name, value in {**SETTINGS, **jars_at(os.environ.get(JARS, ""))}.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="interop-warehouse-"))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def jars_at(places: str) -> dict[str, str]:
    """The setting for the jars of delta-spark: at some places, or by their coordinates where none are named."""
    found: list[str] = []
    for place in filter(None, places.split(os.pathsep)):
        inside = sorted(os.listdir(place)) if os.path.isdir(place) else [""]
        found += [
            os.path.join(place, name) if name else place
            for name in inside
            if not name or name.endswith(".jar")
        ]
    return {"spark.jars": ",".join(found)} if places else {"spark.jars.packages": COORDINATES}


class DeltaSpark:
    """What tests ask of delta-spark about the table at a path."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._by_rows = session.newSession()
        self._by_rows.conf.set("spark.databricks.delta.optimizeMetadataQuery.enabled", "false")

    def load(self, path: object, version: int | None = None, **options: Any) -> DataFrame:
        reader = self.session.read.format("delta").options(**{k: str(v) for k, v in options.items()})
        return (reader if version is None else reader.option("versionAsOf", version)).load(str(path))

    def rows(self, df: DataFrame, schema: StructType) -> pa.Table:
        """The rows of a DataFrame; columns that hold variants as JSON text."""
        from pyspark.sql import functions as F

        encoded = encodings(schema)
        columns = [
            F.to_json(F.col(_quoted(name)), {"ignoreNullFields": "false"}).alias(name)
            if name in encoded
            else F.col(_quoted(name))
            for name in df.columns
        ]
        return df.select(*columns).toArrow()

    def schema(self, df: DataFrame) -> Any:
        """The schema as JSON, without Delta's own metadata."""
        return without_internal_metadata(df.schema.jsonValue())

    def run(self, statement: str, path: object) -> list[Any]:
        """Run a statement in which `{t}` stands for the table; its rows."""
        return self.session.sql(statement.replace("{t}", f"delta.`{path}`")).collect()

    def history(self, path: object) -> list[tuple[int, int, str]]:
        """Version, time in ms and operation of each commit, newest first."""
        shown = self.session.sql(f"DESCRIBE HISTORY delta.`{path}`")
        rows = shown.selectExpr("version", "unix_millis(timestamp)", "operation").collect()
        return [tuple(row) for row in rows]

    def files(self, path: object, predicate: str) -> set[str]:
        """The names of the files that are left to read under a filter."""
        return {unquote(file).rpartition("/")[2] for file in self.load(path).where(predicate).inputFiles()}

    def checkpoint(self, path: object) -> None:
        """Write a checkpoint of the latest version."""
        self._log(path).checkpoint()

    def checkpoint_read(self, path: object) -> int | None:
        """The version of the checkpoint from which the latest version is read; None without one."""
        version = self._latest(path).checkpointProvider().version()
        return None if version < 0 else version

    def last_checkpoint(self, path: object) -> int | None:
        """The version that `_last_checkpoint` names, if its own checksum is right; None without it."""
        found = self._log(path).readLastCheckpointFile()
        return found.get().version() if found.isDefined() else None

    def checksum_difference(self, path: object) -> str | None:
        """What the version checksum of the latest version says otherwise than its state; None: nothing."""
        snapshot = self._latest(path)
        if not snapshot.checksumOpt().isDefined():
            return "there is no version checksum"
        nothing = self.session._jvm.scala.Predef.Map().empty()
        return None if snapshot.validateChecksum(nothing) else "delta-spark finds it wrong"

    def detail(self, path: object) -> dict[str, Any]:
        """What `DESCRIBE DETAIL` says, but for the place and the moments."""
        row = self.session.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0].asDict()
        return {k: v for k, v in row.items() if k not in ("location", "createdAt", "lastModified")}

    def aggregate(self, path: object, columns: str, by_statistics: bool) -> pa.Table:
        """One row of aggregates over the latest version, answered by statistics alone where they allow it."""
        session = self.session if by_statistics else self._by_rows
        return session.sql(f"SELECT {columns} FROM delta.`{path}`").toArrow()

    def stream(self, path: object, **options: str) -> list[Any]:
        """All rows that a stream from version 0 on gives."""
        source = self.session.readStream.format("delta").option("startingVersion", 0).options(**options)
        query = source.load(str(path)).writeStream.format("memory").queryName("streamed")
        query.trigger(availableNow=True).start().awaitTermination()
        return self.session.table("streamed").collect()

    def row_ids(self, path: object) -> pa.Table:
        """All rows with the columns `__row_id` and `__row_commit_version`."""
        df = self.load(path)
        columns = [_quoted(name) for name in df.columns]
        ids = [f"_metadata.{name} AS __{name}" for name in ("row_id", "row_commit_version")]
        return df.selectExpr(*columns, *ids).toArrow()

    def changes(self, path: object, start: int = 0) -> pa.Table:
        """The change feed from a version to the latest."""
        return self.load(path, readChangeFeed="true", startingVersion=start).toArrow()

    def _latest(self, path: object) -> Any:
        """The latest version, by what lies in the log now."""
        return self._delta_log.forTableWithSnapshot(self.session._jsparkSession, str(path))._2()

    def _log(self, path: object) -> Any:
        return self._delta_log.forTable(self.session._jsparkSession, str(path))

    @property
    def _delta_log(self) -> Any:
        jvm: Any = self.session._jvm
        return jvm.org.apache.spark.sql.delta.DeltaLog


def encodings(schema: StructType) -> dict[str, str]:
    """The columns that Spark does not hand over as they are."""
    return {field.name: "to_json" for field in schema if "variant" in str(field.type)}


def comparable(rows: pa.Table, schema: StructType) -> pa.Table:
    """The kernel's rows in the form of `DeltaSpark.rows`."""
    return encode(rows, schema, encodings(schema))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
