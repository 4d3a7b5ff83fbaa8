"""Write down what delta-spark says of tables whose columns change.

`python -m spark_tests.engines.interop.record_schema_changes`, where it is installed. What is recorded already is not
asked again, unless a case is named.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from delta_ds import DeltaLog
from spark_tests.engines.conformance.corpora import SHIPPED
from spark_tests.engines.conformance.schema_change_questions import (
    Answer,
    described,
    questions,
    restored,
    told,
)
from spark_tests.engines.conformance.schema_changes import Case, cases, make
from spark_tests.engines.interop.delta_spark import start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDED = SHIPPED / "schema_changes" / "schema_changes.json"
_STREAM = "recorded"


class DeltaSpark:
    """Answers questions as `schema_change_questions.Package` does."""

    def __init__(self, spark: SparkSession, case: Case, path: Path) -> None:
        self._spark, self._case, self._path = spark, case, path

    def answer(self, question: str) -> Answer:
        what, *versions = question.split()
        asked: Callable[..., Answer] = getattr(self, f"_{what}")
        return _tried(lambda: asked(*map(int, versions)))

    def _rows(self, version: int) -> Answer:
        return self._state(self._path, version)

    def _changes(self, first: int, last: int) -> Answer:
        return self._feed(self._path, first, last)

    def _feed(self, path: Path, first: int, last: int) -> Answer:
        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        return _told(reader.option("startingVersion", first).option("endingVersion", last).load(str(path)))

    def _restore(self, version: int) -> Answer:
        copy = self._copy()
        self._spark.sql(f"RESTORE TABLE delta.`{copy}` TO VERSION AS OF {version}")
        last = DeltaLog(copy).snapshot().version
        return restored(
            self._case,
            self._state(copy),
            last,
            lambda first, end: _tried(lambda: self._feed(copy, first, end)),
        )

    def _clone(self, version: int) -> Answer:
        target = self._copy().parent / "clone"
        source = f"delta.`{self._path}` VERSION AS OF {version}"
        self._spark.sql(f"CREATE TABLE delta.`{target}` SHALLOW CLONE {source}")
        return self._state(target)

    def _stream(self, version: int, **options: str) -> Answer:
        reader = self._spark.readStream.format("delta").option("startingVersion", version)
        writer = reader.options(**options).load(str(self._path)).writeStream.format("memory")
        query = writer.queryName(_STREAM).trigger(availableNow=True).start()
        query.awaitTermination()
        return _told(self._spark.table(_STREAM))

    def _change_stream(self, version: int) -> Answer:
        return self._stream(version, readChangeFeed="true")

    def _copy(self) -> Path:
        copy = Path(tempfile.mkdtemp(dir=self._path.parent)) / "copy"
        shutil.copytree(self._path, copy)
        return copy

    def _state(self, path: Path, version: int | None = None) -> dict[str, Any]:
        reader = self._spark.read.format("delta")
        found = (reader if version is None else reader.option("versionAsOf", version)).load(str(path))
        return {**_told(found), **described(DeltaLog(path).snapshot(version).metadata)}


def _told(found: DataFrame) -> dict[str, Any]:
    return told(found.schema.jsonValue(), found.toArrow().to_pylist())


def _tried(action: Callable[[], Answer]) -> Answer:
    try:
        return action()
    except PySparkException as error:
        # A stream's own condition is that it failed: the cause stands in the text.
        causes = re.findall(r"\[(DELTA_[A-Z_.]+)\]", str(error))
        return str(causes[-1] if causes else error.getCondition() or error)
    except Exception as error:  # Java's own
        return f"{type(error).__name__}: " + " ".join(str(error).split())[:300]


def record(wanted: list[str]) -> None:
    spark = start()
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for case in cases():
        if case.name in wanted:
            known.pop(case.name, None)
        with tempfile.TemporaryDirectory() as root:
            path = Path(root) / "table"
            asked = questions(case, make(case, path).snapshot().version)
            found = known.setdefault(case.name, {})
            engine = DeltaSpark(spark, case, path)
            missing = [question for question in asked if question not in found]
            found |= {question: engine.answer(question) for question in missing}
            known[case.name] = {question: found[question] for question in asked}
        if missing:
            print(case.name, flush=True)
            RECORDED.write_text(as_text(known))
    spark.stop()


def as_text(known: dict[str, dict[str, Answer]]) -> str:
    """JSON with a line for each question."""

    def case(asked: dict[str, Answer]) -> str:
        lines = [f"  {json.dumps(question)}: {json.dumps(told)}" for question, told in asked.items()]
        return "{\n" + ",\n".join(lines) + "\n }"

    return (
        "{\n" + ",\n".join(f" {json.dumps(name)}: {case(asked)}" for name, asked in known.items()) + "\n}\n"
    )


if __name__ == "__main__":
    record(sys.argv[1:])
