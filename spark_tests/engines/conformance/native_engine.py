"""Spark's own Parquet reader over the files of a table, as an engine of the yardsticks.

Reads as a user does, by `spark.read.format("pydelta")` in a registered session, and sees to it that the native
scan serves: a read that the portable path serves is noted with the reason, and one without a reason is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spark_tests.engines.conformance.compare import KINDS
from spark_tests.engines.conformance.engines import Failure, Filtered, OpenTable
from spark_tests.engines.conformance.spark_engine import (
    FORMAT,
    TIME_ZONE,
    SparkEngine,
    SparkTable,
    plan,
    spelled,
    without_variants,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.engines.classic.file_index import DeltaFileIndex

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


class NativeEngine(SparkEngine):
    """`spark.read.format("pydelta")` in one classic session whose native scan is on.

    Raises
    ------
    NotNative
        The running Spark has no native scan.
    """

    name = "native"
    native = True

    def __init__(self, session: SparkSession | None = None) -> None:
        from delta_ds.spark.engines.classic.jvm import Jvm, NotNative

        super().__init__(session)
        try:
            Jvm.of(self.spark)
        except NotNative:
            self.close()
            raise

    def table(self, path: str, zone: str) -> OpenTable:
        self.spark.conf.set(TIME_ZONE, zone)
        return NativeTable(self.spark, path)

    def failure(self, error: Exception) -> Failure:
        found = super().failure(error)
        if found.kind is not None:
            return found
        # Spark's own reader names a cause as under delta-spark; what listing files raises comes as text.
        named = [condition for condition in _CONDITION.findall(str(error)) if condition in KINDS]
        return Failure(KINDS[named[0]][0], named[0], found.text) if named else found


class NativeTable(SparkTable):
    def _load(self, format_: str = FORMAT, **options: Any) -> DataFrame:
        frame = super()._load(format_, **options)
        if format_ == FORMAT and not list(file_indexes(frame)):
            self.notes[self._why_portable(options)] += 1
        return frame

    def _why_portable(self, options: dict[str, Any]) -> str:
        from delta_ds.spark.engines.classic.jvm import NotNative
        from delta_ds.spark.engines.classic.load import load
        from delta_ds.spark.session.writes.write import insert_rows

        given = {key: str(value) for key, value in options.items() if value is not None}
        try:
            load(self._spark, {**given, "path": self._path}, insert=insert_rows)
        except NotNative as refusal:
            return refusal.reason
        raise AssertionError(f"spark.read took the portable path, native.load.load does not: {given}")

    def version_at(self, timestamp_ms: int) -> int:
        frame = self._load(timestampAsOf=spelled(timestamp_ms))
        found = [index.snapshot.version for index in file_indexes(frame)]
        return int(found[0]) if found else super().version_at(timestamp_ms)

    def filtered(self, predicate: str, scan: bool) -> Filtered:
        # An index of its own for each filter: it tells of the last execution only.
        loaded = self._load()
        if not list(file_indexes(loaded)):
            return super().filtered(predicate, scan)
        frame = loaded.where(predicate)
        if not scan:
            plan(frame)
            return Filtered(_listed(file_indexes(frame)), None)
        frame = without_variants(frame)
        rows = frame.toArrow()
        return Filtered(_listed(file_indexes(frame)), rows)


def _listed(indexes: Iterable[DeltaFileIndex]) -> int:
    """Files of the last execution; an index that was not asked stands for a scan that Spark left out."""
    return sum(index.last_listed or 0 for index in indexes)


def file_indexes(frame: DataFrame) -> Iterator[DeltaFileIndex]:
    """The indexes over which a DataFrame reads natively; none: it does not."""
    from delta_ds.spark.engines.classic.file_index import DeltaFileIndex

    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    for i in range(leaves.size()):
        if leaves.apply(i).getClass().getSimpleName() == "LogicalRelation":
            found = DeltaFileIndex.of_identity(leaves.apply(i).relation().location().toString())
            if found is not None:
                yield found
