"""Progress of commands in a session: tasks that have ended, of how many, where the session shows its own progress."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.kernel.base import work as work_module
from delta_ds.spark.base.kinds import frames
from delta_ds.spark.base.session_conf import LOCAL_OPTIMIZE_CONF

FILES = 70  # so many that CONVERT runs a job


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return self.getvalue().split("\r\x1b[K")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal on which also short work is shown."""
    screen = Screen()
    monkeypatch.setattr(work_module, "sys", SimpleNamespace(stderr=screen))
    monkeypatch.setattr(work_module, "_FROM_S", 0.0)
    monkeypatch.setattr(frames, "_EVERY_S", 0.01)
    monkeypatch.delenv("DELTA_DS_PROGRESS", raising=False)
    return screen


@pytest.fixture
def shown_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A session that shows the progress of its jobs: Spark's own setting cannot be changed once it runs."""
    monkeypatch.setattr(frames, "_SETTING", "test.shows.progress")
    spark.conf.set("test.shows.progress", "true")
    yield
    spark.conf.unset("test.shows.progress")


def _merge(spark: SparkSession, path: Path) -> None:
    DeltaLog(path).write(pa.table({"id": range(1000)}))
    # Rows that take their time, so that there is something to see.
    slow = spark.range(0, 2000, 1, 8).selectExpr(
        "id + length(reflect('java.lang.Thread', 'sleep', 1L)) * 0 AS id"
    )
    table = DeltaTable.forPath(spark, str(path))
    merge = table.alias("t").merge(slow.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _folder(path: Path) -> Path:
    path.mkdir()
    for number in range(FILES):
        pq.write_table(pa.table({"id": [number]}), path / f"{number}.parquet")
    return path


@pytest.mark.parametrize(("most", "things"), [("256m", "files"), ("0", "tasks")])
def test_a_merge_tells_its_files_or_tasks(
    spark: SparkSession, tmp_path: Path, screen: Screen, shown_session: None, most: str, things: str
) -> None:
    spark.conf.set(LOCAL_OPTIMIZE_CONF, most)
    try:
        _merge(spark, tmp_path / "t")
    finally:
        spark.conf.unset(LOCAL_OPTIMIZE_CONF)
    found = [re.match(rf"MERGE .*: rewriting (\d+) of (\d+) {things}", line) for line in screen.lines]
    counts = [(int(match[1]), int(match[2])) for match in found if match]
    assert counts and all(0 <= done <= total for done, total in counts)
    assert screen.lines[-1] == ""


def test_a_conversion_by_a_job_counts_files(
    spark: SparkSession, tmp_path: Path, screen: Screen, shown_session: None
) -> None:
    DeltaTable.convertToDelta(spark, f"parquet.`{_folder(tmp_path / 'p')}`")
    assert any(
        re.match(rf"CONVERT .*: collecting statistics \d+ of {FILES} files", line) for line in screen.lines
    )
    assert screen.lines[-1] == ""


def test_a_session_that_shows_no_progress_shows_none(
    spark: SparkSession, tmp_path: Path, screen: Screen
) -> None:
    _merge(spark, tmp_path / "t")
    assert not any("MERGE" in line for line in screen.lines)
