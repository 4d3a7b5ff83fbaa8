"""What applications do to tables while tasks fail and executors are killed; each answers with its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_ds import DeltaTable
from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.clusters.faults import Killer, fails_once, new_file, new_marker, waits_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[Any, ...]]

FILES = 8
COUNT = 4000


class Course:
    """One scenario in one application.

    Attributes
    ----------
    table
        Its path; other tables lie beside it.
    kills, fails
        Whether executors are killed, and tasks fail once.
    rows
        How many rows were compared.
    killed
        How many executors were killed.
    """

    def __init__(self, spark: SparkSession, folder: Path, *, kills: bool, fails: bool, slow: bool) -> None:
        self.spark, self.folder = spark, folder
        self.kills, self.fails, self.slow = kills, fails, slow
        self.table = str(folder / "table")
        self.tables = [self.table]
        self.rows = self.killed = 0
        self._markers = 0

    def source(self, start: int = 0, *, changed: int = 0, files: int = FILES) -> DataFrame:
        """Rows (id, part, value) whose computation fails once."""
        from pyspark.sql import functions as F

        given = self.spark.range(start, start + COUNT, 1, files)
        number = fails_once(given["id"]) if self.fails else given["id"]
        if self.slow:
            number = waits_until(self.marker(), number, first_attempt=True)
        return given.select(
            number.alias("id"),
            (given["id"] % 3).cast("string").alias("part"),
            F.concat(F.lit(f"{changed}-"), given["id"]).alias("value"),
        )

    def expected(self, start: int = 0, *, changed: int = 0) -> dict[int, tuple[Any, ...]]:
        """The rows of `source` by their id."""
        return {n: (n, str(n % 3), f"{changed}-{n}") for n in range(start, start + COUNT)}

    def marker(self) -> Path:
        self._markers += 1
        return self.folder / f"marker-{self._markers}"

    def make(self, *, partitioned: bool = False, **properties: str) -> None:
        """The table with `expected()`, by a write in which nothing goes wrong."""
        from pyspark.sql import functions as F

        given = self.spark.range(0, COUNT, 1, FILES)
        rows = given.select(
            "id",
            (F.col("id") % 3).cast("string").alias("part"),
            F.concat(F.lit("0-"), "id").alias("value"),
        )
        writer = rows.write.format("pydelta").options(**properties)
        (writer.partitionBy("part") if partitioned else writer).save(self.table)

    def killing(self, when: Callable[[], bool], marker: Path | None = None) -> AbstractContextManager[Any]:
        """The block during which an executor is killed, where executors are killed."""
        if not self.kills:
            if marker is not None:
                marker.touch()
            return nullcontext()
        self.killed += 1
        return Killer(self.spark, when, marker)

    def check(self, expected: dict[int, tuple[Any, ...]], table: str | None = None) -> None:
        """Compare all rows of a table, as the kernel and as Spark read it, with what is expected."""
        path = table or self.table
        of_kernel = DeltaLog(path).snapshot().scan().to_arrow().to_pylist()
        self.compare([tuple(row.values()) for row in of_kernel], expected)
        self.compare(self.spark.read.format("pydelta").load(path).collect(), expected)

    def compare(self, found: Sequence[Any], expected: dict[int, tuple[Any, ...]]) -> None:
        rows = sorted(tuple(row) for row in found)
        assert rows == sorted(expected.values()), f"{len(rows)} rows, expected {len(expected)}"
        self.rows += len(rows)


def scan(course: Course) -> None:
    """An executor dies while it scans."""
    course.make()
    read = course.spark.read.format("pydelta").load(course.table)
    marker = course.marker()
    slow = read.select(
        waits_until(marker, fails_once(read["id"]) if course.fails else read["id"]), "part", "value"
    )
    with course.killing(new_marker(marker), marker):
        found = slow.collect()
    course.compare(found, course.expected())


def write(course: Course) -> None:
    """An executor dies while Spark's own writer writes, and again while more is appended."""
    table = Path(course.table)
    with course.killing(new_file(table)):
        course.source().write.format("pydelta").partitionBy("part").save(course.table)
    with course.killing(new_file(table)):
        course.source(COUNT).write.format("pydelta").mode("append").save(course.table)
    course.check({**course.expected(), **course.expected(COUNT)})


def portable_write(course: Course) -> None:
    """The same by the data source: its tasks write."""
    course.spark.conf.set("spark.pydelta.nativeWrite", "false")
    try:
        write(course)
    finally:
        course.spark.conf.unset("spark.pydelta.nativeWrite")


def overwrite(course: Course) -> None:
    """An executor dies while the table is replaced."""
    course.make(partitioned=True)
    with course.killing(new_file(Path(course.table))):
        course.source(100, changed=1).write.format("pydelta").mode("overwrite").save(course.table)
    course.check(course.expected(100, changed=1))


def merge(course: Course) -> None:
    """An executor dies while files are rewritten; the source is computed, and fails once."""
    course.make()
    _merge(course)


def merge_with_vectors(course: Course) -> None:
    """The same where old rows are marked by deletion vectors."""
    course.make(**{"delta.enableDeletionVectors": "true"})
    _merge(course)


def merge_with_changes(course: Course) -> None:
    """The same where change files are written; the change feed has each change once."""
    course.make(**{"delta.enableChangeDataFeed": "true"})
    _merge(course)
    feed = course.spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 1)
    kinds = feed.load(course.table).groupBy("_change_type").count().collect()
    half = COUNT // 2
    assert {row[0]: row[1] for row in kinds} == {
        "update_preimage": half, "update_postimage": half, "insert": half,
    }, kinds  # fmt: skip


def _merge(course: Course) -> None:
    start = COUNT // 2
    into = DeltaTable.forPath(course.spark, course.table).alias("t")
    with course.killing(new_file(Path(course.table))):
        (
            into.merge(course.source(start, changed=1).alias("s"), "t.id = s.id")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        )
    course.check({**course.expected(), **course.expected(start, changed=1)})


def update_and_delete(course: Course) -> None:
    """An executor dies during an UPDATE, and another during a DELETE."""
    course.make()
    table = DeltaTable.forPath(course.spark, course.table)
    with course.killing(new_file(Path(course.table))):
        table.update("id % 5 = 1", {"value": "concat('1-', id)"})
    with course.killing(new_file(Path(course.table))):
        table.delete("id % 5 = 2")
    rows = course.expected()
    changed = course.expected(changed=1)
    course.check({n: changed[n] if n % 5 == 1 else rows[n] for n in rows if n % 5 != 2})


def optimize(course: Course) -> None:
    """An executor dies while tasks compact, and another while they order rows along a curve."""
    course.make(partitioned=True)
    conf = course.spark.conf
    conf.set("spark.pydelta.localOptimizeSize", "0")
    try:
        table = DeltaTable.forPath(course.spark, course.table)
        with course.killing(new_file(Path(course.table))):
            assert table.optimize().executeCompaction().first().metrics.numFilesRemoved >= FILES
        with course.killing(new_file(Path(course.table))):
            table.optimize().executeZOrderBy("id")
    finally:
        conf.unset("spark.pydelta.localOptimizeSize")
    course.check(course.expected())


def stream(course: Course) -> None:
    """Executors die while a stream goes from a table to a table; each batch is there once."""
    course.make()
    course.source(COUNT).write.format("pydelta").mode("append").save(course.table)
    into = str(course.folder / "sink")
    course.tables.append(into)
    read = course.spark.readStream.format("pydelta").option("maxFilesPerTrigger", 5).load(course.table)
    started = read.writeStream.format("pydelta").option(
        "checkpointLocation", str(course.folder / "checkpoint")
    )
    with course.killing(new_file(Path(into))):
        query = started.trigger(availableNow=True).start(into)
        query.awaitTermination()
    course.check({**course.expected(), **course.expected(COUNT)}, into)


def abandoned(course: Course) -> None:
    """A write that never ends: the whole application is killed in its middle."""
    course.make()
    rows = course.source(COUNT)
    slow = waits_until(course.marker(), rows["id"], seconds=600)
    rows.withColumn("id", slow).write.format("pydelta").mode("append").save(course.table)


SCENARIOS: dict[str, Callable[[Course], None]] = {
    one.__name__: one
    for one in (
        scan, write, portable_write, overwrite, merge, merge_with_vectors, merge_with_changes, update_and_delete,
        optimize, stream,
    )
}  # fmt: skip
