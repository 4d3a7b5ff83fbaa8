"""A Spark application of the load: commands of `DeltaTable` and writes, and a stream from one table into another.

    python -m spark_tests.faults.chaos.spark_app

The first line of its input is the job, JSON: what `worker` takes, with `streams` (the tables to read from and to write
to, and the folder of the checkpoint; none: no stream) and `folder`. It answers `ready` when the session is up, begins
at the next line, and after `seconds` notes no more steps. At another line, when there is no more trouble, the stream
goes on to the end of its source; then it answers `done`.
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError
from spark_tests.faults.chaos.worker import Notes, told
from spark_tests.faults.concurrency.row_model import APPEND, DELETE, MERGE, OPTIMIZE, UPDATE, Choices, Command
from spark_tests.faults.concurrency.spark_race_worker import SAID, frame, merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

KINDS = (APPEND,) * 4 + (DELETE,) * 2 + (UPDATE,) * 3 + (MERGE,) * 4 + (OPTIMIZE,)
STREAM = "stream"
_AFTER_AN_ERROR = 1.0  # seconds

Options = dict[str, str]


def spark_options(options: dict[str, Any]) -> Options:
    """Options of a store as Spark takes them; timeouts are its client's own."""
    return {f"storage.{name}": str(value) for name, value in options.items() if not isinstance(value, dict)}


def run(spark: SparkSession, url: str, options: Options, command: Command, said: str) -> None:
    """Do a command as one commit."""
    from delta_ds import DeltaTable

    spark.conf.set(SAID, said)
    if command.kind == APPEND:
        writer = frame(spark, command).write.format("pydelta").mode("append").options(**options)
        writer.option("userMetadata", said).save(url)
        return
    table = DeltaTable.forPath(spark, url, options)
    if command.kind == DELETE:
        table.delete(command.condition)
    elif command.kind == UPDATE:
        table.update(command.condition, {"value": "value + 1"})
    elif command.kind == MERGE:
        merge(spark, table, command)
    else:
        optimize = table.optimize()
        (optimize.where(command.condition) if command.parts else optimize).executeCompaction()


class Stream:
    """A query that is started again whenever it has failed."""

    def __init__(self, spark: SparkSession, job: dict[str, Any], options: Options, notes: Notes) -> None:
        self._spark = spark
        self._job = job["streams"]
        self._options = options
        self._notes = notes
        self._query: StreamingQuery | None = None

    def look_after(self, *, to_the_end: bool = False) -> bool:
        """Begin it anew where it has ended; whether it has ended well."""
        query = self._query
        if query is not None and query.isActive:
            return False
        if query is not None and query.exception() is not None:
            self._notes.write(stream=str(query.exception()))
        elif query is not None and to_the_end:
            return True
        try:
            self._query = self._start(to_the_end)
        except DeltaError as error:
            self._query = None
            self._notes.write(stream=error.text)
            time.sleep(_AFTER_AN_ERROR)
        except Exception:
            self._query = None
            self._notes.write(
                said=f"{STREAM}-{time.monotonic_ns()}", kind=STREAM, unnamed=traceback.format_exc()
            )
        return False

    def _start(self, to_the_end: bool) -> StreamingQuery:
        read = self._spark.readStream.format("pydelta").options(**self._options)
        rows = read.option("maxFilesPerTrigger", 3).load(self._job["source"])
        write = rows.writeStream.format("pydelta").options(**self._options).queryName("copy")
        write = write.option("checkpointLocation", self._job["checkpoint"]).outputMode("append")
        trigger = {"availableNow": True} if to_the_end else {"processingTime": "1 second"}
        return write.trigger(**trigger).start(self._job["target"])

    def stop(self) -> None:
        if self._query is not None and self._query.isActive:
            self._query.stop()
        self._query = None

    def finish(self, seconds: float) -> bool:
        """Go on to the end of the source; whether it got there."""
        self.stop()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if self.look_after(to_the_end=True):
                return True
            time.sleep(0.2)
        return False


def load(spark: SparkSession, job: dict[str, Any], notes: Notes, stream: Stream | None) -> None:
    """Commands until the time is over."""
    choices = Choices(job["writer"], job["seed"])
    chance = random.Random(f"spark {job['seed']} {job['writer']}")
    options, ends, number = spark_options(job["options"]), time.monotonic() + job["seconds"], 0
    while time.monotonic() < ends:
        if stream is not None:
            stream.look_after()
        said, number = f"{job['writer']}-{number}", number + 1
        command = choices.command(chance.choice(KINDS))
        notes.write(
            said=said, kind=command.kind, command=asdict(command), began=time.monotonic_ns(), spark=True
        )
        outcome: dict[str, Any] = {}
        try:
            run(spark, job["url"], options, command, said)
        except DeltaError as error:
            outcome = {"error": type(error).__name__, "text": error.text, "told": told(error)}
            time.sleep(chance.uniform(0, _AFTER_AN_ERROR))
        except Exception:
            outcome = {"unnamed": traceback.format_exc()}
        notes.write(said=said, ended=time.monotonic_ns(), **outcome)


def main() -> None:
    import delta_ds
    from spark_tests.faults.concurrency.spark_host import own_session

    job = json.loads(sys.stdin.readline())
    spark = own_session(str(Path(job["folder"], f"warehouse-{job['writer']}")))
    delta_ds.register(spark)
    notes = Notes(Path(job["notes"], f"{job['writer']}.jsonl"))
    stream = Stream(spark, job, spark_options(job["options"]), notes) if job["streams"] else None
    print("ready", flush=True)
    sys.stdin.readline()
    load(spark, job, notes, stream)
    print("over", flush=True)
    asked = bool(sys.stdin.readline())  # else nobody is there any more
    if asked and stream is not None and not stream.finish(job["patience"]):
        notes.write(said=STREAM, kind=STREAM, unnamed="the stream has not come to the end of its source")
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
