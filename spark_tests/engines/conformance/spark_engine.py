"""The data source in a Spark session, as an engine of the yardsticks.

What Spark shows (schema, rows, history, detail, errors) is taken from Spark; what it has no place for (paths
of files, features, transactions) comes from the kernel in this process, which is the same code.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds import exceptions as errors
from spark_tests.engines.conformance.engines import (
    Failure,
    Filtered,
    KernelEngine,
    OpenTable,
    lift_metadata,
    milliseconds,
    snapshot_state,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

ROOT = Path(__file__).resolve().parents[3]
FORMAT = "pydelta"
NATIVE_SCAN = "spark.pydelta.nativeScan"
TIME_ZONE = "spark.sql.session.timeZone"
NOT_PUSHED = "Spark does not push all of the filter to a Python source; their rows were compared"

# Our errors as Python's traceback spells them inside of Spark's own; the last is the outermost.
_OUR_ERROR = re.compile(r"delta_ds\.exceptions\.(\w+): \[([\w.]+)\]")


class SparkEngine:
    """`spark.read.format("pydelta")` by the public data source API, in one classic session.

    Parameters
    ----------
    session
        The session to use; one is started, and stopped by `close`, if left out.
    """

    name = "spark"
    native = False

    def __init__(self, session: SparkSession | None = None) -> None:
        import delta_ds
        from spark_tests.engines.conformance.recording_source import RecordingSource

        self._own = session is None
        self.spark = _start() if session is None else session
        self._before = {key: self.spark.conf.get(key, None) for key in (TIME_ZONE, NATIVE_SCAN)}
        delta_ds.register(self.spark)
        self.spark.conf.set(NATIVE_SCAN, str(self.native).lower())
        self.spark.dataSource.register(RecordingSource)

    def table(self, path: str, zone: str) -> OpenTable:
        self.spark.conf.set(TIME_ZONE, zone)
        return SparkTable(self.spark, path)

    def failure(self, error: Exception) -> Failure:
        if isinstance(error, errors.DeltaError):
            return KernelEngine().failure(error)
        found = _OUR_ERROR.findall(str(error))
        if not found:
            lines = [line for line in str(error).splitlines() if line.strip()]
            return Failure(None, None, f"{type(error).__name__}: {' | '.join([*lines[:2], *lines[-2:]])}")
        kind, condition = found[-1]
        return Failure(getattr(errors, kind), condition, f"{type(error).__name__} of {kind} [{condition}]")

    def close(self) -> None:
        for key, value in self._before.items():
            if value is None:
                self.spark.conf.unset(key)
            else:
                self.spark.conf.set(key, value)
        if self._own:
            self.spark.stop()


def _start() -> SparkSession:
    from pyspark.sql import SparkSession

    # Python workers see only the environment as it is when the JVM starts.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ["TZ"] = "UTC"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("yardsticks")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(TIME_ZONE, "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="yardstick-warehouse-"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


class SparkTable:
    def __init__(self, spark: SparkSession, path: str) -> None:
        from delta_ds import DeltaLog

        self._spark = spark
        self._path = path
        self._log: Callable[[], Any] = lambda: DeltaLog(path)
        self._versions: dict[int | None, DataFrame] = {}
        self.notes: Counter[str] = Counter()

    def _version(self, version: int | None) -> DataFrame:
        """A version, loaded once: each load costs a Python process."""
        if version not in self._versions:
            self._versions[version] = self._load(versionAsOf=version)
        return self._versions[version]

    def _load(self, format_: str = FORMAT, **options: Any) -> DataFrame:
        return self._reader(format_, options).load(self._path)

    def _reader(self, format_: str, options: Mapping[str, Any]) -> DataFrameReader:
        given = {key: str(value) for key, value in options.items() if value is not None}
        return self._spark.read.format(format_).options(**given)

    def open(self) -> None:
        plan(self._load())

    def state(self, version: int | None) -> dict[str, Any]:
        snapshot = self._log().snapshot(version=version)
        state = snapshot_state(snapshot)
        if snapshot.schema.fields:  # else Spark refuses the table
            state["schema"] = json.loads(self._version(version).schema.json())
        if version is None or version == self._log().snapshot().version:
            state.update(self._detail())
        return state

    def _detail(self) -> dict[str, Any]:
        from delta_ds import DeltaTable

        row = DeltaTable.forPath(self._spark, self._path).detail().collect()[0]
        return {
            "metadata_id": row["id"], "table_name": row["name"], "table_description": row["description"],
            "partition_columns": row["partitionColumns"], "files": row["numFiles"],
            "properties": row["properties"], "min_reader": row["minReaderVersion"],
            "min_writer": row["minWriterVersion"],
        }  # fmt: skip

    def history(self) -> dict[int, tuple[int, str | None]]:
        from delta_ds import DeltaTable

        shown = DeltaTable.forPath(self._spark, self._path).history()
        rows = shown.selectExpr("version", "unix_millis(timestamp)", "operation").collect()
        return {version: (time_ms, operation) for version, time_ms, operation in rows}

    def rows(self, version: int | None, encodings: Mapping[str, str]) -> pa.Table:
        return _encoded(self._version(version), encodings).toArrow()

    def row_ids(self, version: int, encodings: Mapping[str, str]) -> pa.Table:
        df = self._load(versionAsOf=version, metadataColumns="row_id,row_commit_version")
        return lift_metadata(_encoded(df, encodings).toArrow())

    def changes(self, starting: int, ending: int, encodings: Mapping[str, str]) -> pa.Table:
        df = self._load(readChangeFeed=True, startingVersion=starting, endingVersion=ending)
        return _encoded(df, encodings).toArrow()

    def version_at(self, timestamp_ms: int) -> int:
        with _recording(self._spark) as record:
            plan(self._load("pydelta_yardstick", recordTo=str(record), timestampAsOf=spelled(timestamp_ms)))
            return int(json.loads(record.read_text())["version"])

    def filtered(self, predicate: str, scan: bool) -> Filtered:
        # A DataFrame of its own for each filter: Spark shares the read plan between uses of one.
        with _recording(self._spark) as record:
            # While planning, a source does not see the session's zone, on which old partition timestamps depend.
            zone = self._spark.conf.get(TIME_ZONE)
            reader = self._reader("pydelta_yardstick", {"recordTo": record, "timeZone": zone})
            # A schema that is given costs no Python process to find it.
            df = reader.schema(self._version(None).schema).load(self._path).where(predicate)
            plan(df)
            # Without a record nothing was planned: Spark found by itself that no row can match.
            planned = json.loads(record.read_text()) if record.exists() else {"files": 0, "filters": 0}
            in_full = planned["filters"] >= _conjuncts(df._jdf.queryExecution().optimizedPlan())
            rows = without_variants(df).toArrow() if scan else None
        return Filtered(planned["files"], rows) if in_full else Filtered(None, rows, NOT_PUSHED)


def spelled(timestamp_ms: int) -> str:
    """Milliseconds since 1970 as an option spells them."""
    moment = datetime.fromtimestamp(timestamp_ms // 1000, timezone.utc)
    text = f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"
    assert milliseconds(datetime.fromisoformat(text.replace("Z", "+00:00"))) == timestamp_ms
    return text


@contextmanager
def _recording(spark: SparkSession) -> Iterator[Path]:
    """A file for a `RecordingSource` to write to, in a session that pushes filters."""
    from delta_ds.spark.base.query_needs import PUSHDOWN_CONF

    before = spark.conf.getAll.get(PUSHDOWN_CONF)
    spark.conf.set(PUSHDOWN_CONF, "true")
    try:
        with tempfile.TemporaryDirectory(prefix="yardstick-plan-") as folder:
            yield Path(folder) / "plan.json"
    finally:
        if before is None:
            spark.conf.unset(PUSHDOWN_CONF)
        else:
            spark.conf.set(PUSHDOWN_CONF, before)


def plan(df: DataFrame) -> None:
    """Let Spark plan a query down to its tasks without running them."""
    df._jdf.queryExecution().toRdd().getNumPartitions()


def _conjuncts(plan: Any) -> int:
    """How many conditions the filters of an optimized plan hold, those that Spark inferred included."""
    own = _terms(plan.condition()) if plan.nodeName() == "Filter" else 0
    children = plan.children()
    return own + sum(_conjuncts(children.apply(i)) for i in range(children.size()))


def _terms(condition: Any) -> int:
    if condition.getClass().getSimpleName() == "And":
        return _terms(condition.left()) + _terms(condition.right())
    return 1


def without_variants(df: DataFrame) -> DataFrame:
    """The columns that pyspark's Arrow conversion can carry: it fails on nulls among nested variants."""
    plain = [f.name for f in df.schema if "variant" not in f.dataType.simpleString()]
    return df.select(*("`" + name.replace("`", "``") + "`" for name in plain))


def _encoded(df: DataFrame, encodings: Mapping[str, str]) -> DataFrame:
    """The columns that plain Parquet cannot carry as text, made by Spark as for the record."""
    from pyspark.sql import functions as F

    if not encodings:
        return df
    columns: list[Column] = []
    for name in df.columns:
        column = F.col("`" + name.replace("`", "``") + "`")
        how = encodings.get(name)
        if how == "void_as_null_string":
            column = column.cast("string").alias(name)
        elif how == "to_json":
            columns.append(F.to_json(column, {"ignoreNullFields": "false"}).alias(name))
            if f"{name}__schema_of_variant" in encodings:
                columns.append(F.schema_of_variant(column).alias(f"{name}__schema_of_variant"))
            continue
        columns.append(column)
    return df.select(*columns)
