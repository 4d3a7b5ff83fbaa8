"""The same table followed by two streams, one of delta-spark and one of this package, and what each of them saw."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.spark.errors.translation import as_delta_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

THEIRS, OURS = "delta", "pydelta"
SOURCES = (THEIRS, OURS)
SECONDS = 120

# A statement in which `{t}` stands for the table, or something to do with its folder.
Step: TypeAlias = "str | Callable[[SparkSession, Path], object]"

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)*)\]")
# What Spark puts around the error of a source.
_WRAPPERS = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"}


@dataclass
class Seen:
    """What a stream has seen.

    Attributes
    ----------
    batches
        The rows of each batch that had some, in order of their text; of moments only that they are there.
    error
        The condition of what stopped it; None for nothing.
    text
        The whole message, which takes no part in comparisons, nor in what a failed test shows.
    """

    batches: list[list[tuple[Any, ...]]] = field(default_factory=list)
    error: str | None = None
    text: str = field(default="", compare=False, repr=False)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Those of all batches, in order of their text."""
        return sorted((row for batch in self.batches for row in batch), key=str)


def alike(found: Mapping[str, Seen]) -> bool:
    """Whether both sources saw the same rows batch by batch, and ended the same.

    delta-spark looks a commit ahead, so a commit that it cannot read stops it up to a batch earlier: the rows that come
    before are not asked of it.
    """
    ours, theirs = found[OURS], found[THEIRS]
    read = ours.batches if ours.error is None else ours.batches[: len(theirs.batches)]
    return ours.error == theirs.error and read == theirs.batches


class Stream:
    """A table followed by one of the sources.

    Parameters
    ----------
    checkpoint
        Each source gets its own, with this beginning.
    options
        Of `readStream`.
    """

    def __init__(
        self, session: SparkSession, source: str, path: Path, checkpoint: Path, options: Mapping[str, Any]
    ) -> None:
        self.seen = Seen()
        self._query: StreamingQuery | None = None
        self._writer: Any = None
        with self._noting_errors():
            rows = session.readStream.format(source).options(**options).load(str(path))
            writer = rows.writeStream.foreachBatch(self._keep)
            self._writer = writer.option("checkpointLocation", f"{checkpoint}-{source}")

    def start(self, **trigger: Any) -> None:
        """Begin to read, and go on until stopped, unless the trigger says otherwise."""
        if self._writer is not None:
            with self._noting_errors():
                self._query = (self._writer.trigger(**trigger) if trigger else self._writer).start()

    def catch_up(self) -> None:
        """Read all there is now."""
        if self._query is not None and self.seen.error is None:
            with self._noting_errors():
                self._query.processAllAvailable()

    def end(self) -> None:
        """Wait for a query that ends by itself."""
        if self._query is not None:
            with self._noting_errors():
                if not self._query.awaitTermination(SECONDS):
                    raise TimeoutError(f"no end after {SECONDS} s")

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    def _keep(self, batch: DataFrame, number: int) -> None:
        # Spark would say no more of it than that the function failed.
        with self._noting_errors():
            found = sorted((_plain(row) for row in batch.collect()), key=str)
        if self.seen.error is not None:
            raise RuntimeError(self.seen.text)
        if found:
            self.seen.batches.append(found)

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self.seen.error is None:
                self.seen.error, self.seen.text = condition(error), str(error)


def _plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple("a moment" if isinstance(value, datetime) else value for value in row)


def condition(error: Exception) -> str:
    """The condition of what stopped a stream, whoever raised it; else the class."""
    ours = as_delta_error(error)
    if ours is not None:
        return str(ours.condition)
    named = [found for found in _CONDITION.findall(str(error)) if found not in _WRAPPERS]
    return named[0] if named else type(error).__name__


def read(session: SparkSession, path: Path, checkpoint: Path, **options: Any) -> dict[str, Seen]:
    """What both sources make of a table as it is.

    One after the other: Spark gives the Python process of a stream ten seconds to begin, so that several which are
    begun at the same time may fail on a busy machine.
    """
    found = {}
    for name in SOURCES:
        stream = Stream(session, name, path, checkpoint, options)
        stream.start(availableNow=True)
        stream.end()
        found[name] = stream.seen
    return found


@dataclass(frozen=True)
class Following:
    """What is done to a table that both sources follow.

    Attributes
    ----------
    steps
        What happens while the streams run.
    stopped
        What happens then, while they are stopped; None: they are not begun again.
    options
        Of `readStream`, before and after the stop.
    """

    steps: Sequence[Step] = ()
    stopped: Sequence[Step] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def follow(session: SparkSession, path: Path, checkpoint: Path, what: Following) -> list[dict[str, Seen]]:
    """What both sources saw while they ran, and then after a start from their checkpoints with a new `load`."""
    streams = {name: Stream(session, name, path, checkpoint, what.options) for name in SOURCES}
    try:
        for stream in streams.values():
            stream.start()
            stream.catch_up()
        for step in what.steps:
            perform(session, path, [step])
            for stream in streams.values():
                stream.catch_up()
    finally:
        for stream in streams.values():
            stream.stop()
    found = [{name: stream.seen for name, stream in streams.items()}]
    if what.stopped is not None:
        perform(session, path, what.stopped)
        found.append(read(session, path, checkpoint, **what.options))
    return found


def perform(session: SparkSession, path: Path, steps: Sequence[Step]) -> None:
    """Do something to a table: statements run in delta-spark."""
    for step in steps:
        if isinstance(step, str):
            session.sql(step.replace("{t}", f"delta.`{path}`")).collect()
        else:
            step(session, path)


def write(session: SparkSession, source: Path, sink: str, target: Path, **how: Any) -> StreamingQuery:
    """Run a query from a table to another one until it has nothing more to read.

    Parameters
    ----------
    sink
        Of `SOURCES`; the source is always that of this package, so that a checkpoint suits both.
    how
        `mode`, `partitionBy`, `select` (of the rows), `counts` (by a column, in place of rows); options of the sink.
    """
    # A commit a batch, in their order.
    reader = session.readStream.format(OURS).options(startingVersion=0, maxFilesPerTrigger=1)
    rows = reader.load(str(source)).selectExpr(*how.pop("select", ["*"]))
    if "counts" in how:
        rows = rows.groupBy(how.pop("counts")).count()
    writer = rows.writeStream.format(sink).outputMode(how.pop("mode", "append"))
    if "partitionBy" in how:
        writer = writer.partitionBy(how.pop("partitionBy"))
    options = {"checkpointLocation": f"{target}-checkpoint", **how}
    query: StreamingQuery = writer.options(**options).trigger(availableNow=True).start(str(target))
    if not query.awaitTermination(SECONDS):
        raise TimeoutError(f"no end after {SECONDS} s")
    return query


def forget_last_commit(target: Path) -> None:
    """As if the driver had died after the commit to the table and before Spark's own: the last batch comes again."""
    commits = Path(f"{target}-checkpoint") / "commits"
    last = max(int(name) for name in os.listdir(commits) if name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)


def transactions(session: SparkSession, path: Path) -> dict[str, int]:
    """The applications that delta-spark finds in a table, with their last versions."""
    jvm: Any = session._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog
    found = log.forTableWithSnapshot(session._jsparkSession, str(path))._2().setTransactions()
    return {found.apply(i).appId(): found.apply(i).version() for i in range(found.length())}


def streaming_updates(session: SparkSession, path: Path) -> list[dict[str, str]]:
    """The parameters of the batches in the history that delta-spark shows, oldest first."""
    shown = session.sql(f"DESCRIBE HISTORY delta.`{path}`").where("operation = 'STREAMING UPDATE'")
    return [dict(row[0]) for row in shown.orderBy("version").select("operationParameters").collect()]
