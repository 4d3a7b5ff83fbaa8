"""`spark.pydelta.conflictDetection` reaches writes with `replaceWhere`, by each of their ways to the commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import ConcurrentAppendException, InvalidOptionError

pytestmark = [pytest.mark.spark, pytest.mark.long]

SETTING = "spark.pydelta.conflictDetection"


@pytest.mark.parametrize("by", ["statistics", None])
def test_replace_where_follows_a_commit_whose_statistics_rule_its_rows_out(
    session: SparkSession, tmp_path: Path, by: str | None
) -> None:
    path = str(tmp_path)
    session.range(10).write.format("pydelta").save(path)

    def between(number: int) -> int:
        # Evaluated with the rows: the write is planned by then, and not yet committed.
        log = DeltaLog(path)
        if log.snapshot().version == 0:
            log.write(pa.table({"id": [100]}))
        return number

    from pyspark.sql import functions as F

    slow = F.udf(between, "bigint")
    if by is not None:
        session.conf.set(SETTING, by)
    try:
        rows = session.range(1, 2, 1, 1).select(slow("id").alias("id"))
        write = rows.write.format("pydelta").mode("overwrite").option("replaceWhere", "id < 3")
        if by is None:
            with pytest.raises(ConcurrentAppendException):
                write.save(path)
        else:
            write.save(path)
    finally:
        session.conf.unset(SETTING)
    found = sorted(DeltaLog(path).snapshot().scan().to_arrow()["id"].to_pylist())
    assert found == ([1, *range(3, 10), 100] if by else [*range(10), 100])


@pytest.mark.sampled
@pytest.mark.parametrize("by", ["statistics", "files"])
@pytest.mark.parametrize("command", ["DELETE", "UPDATE"])
def test_commands_that_replace_files_follow_such_a_commit(
    session: SparkSession, tmp_path: Path, command: str, by: str
) -> None:
    path = str(tmp_path)
    session.range(0, 10, 1, 1).write.format("pydelta").save(path)

    def between(number: int) -> int:
        log = DeltaLog(path)
        if log.snapshot().version == 0:
            log.write(pa.table({"id": [100]}))
        return number

    from pyspark.sql import functions as F

    condition = (F.col("id") < 3) & (F.udf(between, "bigint")("id") >= 0)
    table = DeltaTable.forPath(session, path)
    session.conf.set(SETTING, by)
    try:
        act = (
            (lambda: table.delete(condition))
            if command == "DELETE"
            else (lambda: table.update(condition, {"id": "7"}))
        )
        if by == "files":
            with pytest.raises(ConcurrentAppendException):
                act()
        else:
            act()
    finally:
        session.conf.unset(SETTING)
    found = sorted(DeltaLog(path).snapshot().scan().to_arrow()["id"].to_pylist())
    kept = [7, 7, 7] if command == "UPDATE" else []
    assert found == ([*range(10), 100] if by == "files" else sorted([*kept, *range(3, 10), 100]))


def test_an_unknown_word_is_refused(session: SparkSession, tmp_path: Path) -> None:
    session.range(10).write.format("pydelta").save(str(tmp_path))
    session.conf.set(SETTING, "sometimes")
    try:
        write = session.range(1).write.format("pydelta").mode("overwrite").option("replaceWhere", "id < 3")
        with pytest.raises(InvalidOptionError, match="conflictDetection"):
            write.save(str(tmp_path))
    finally:
        session.conf.unset(SETTING)
    assert DeltaLog(tmp_path).snapshot().version == 0
