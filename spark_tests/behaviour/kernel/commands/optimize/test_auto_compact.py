"""Compaction that follows a write by itself."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.optimize.auto_compact import (
    AutoCompaction,
    auto_compact,
    auto_compaction_of,
    is_enabled,
)
from spark_tests.behaviour.kernel.commands.whole_tables import bodies, ids, rows

ON = {"delta.autoOptimize.autoCompact": "true"}
EARLY = AutoCompaction(min_files=3)


def _appended(path: Path, count: int, **options: str) -> DeltaLog:
    log = DeltaLog(path)
    for number in range(count):
        log.write(ids(number), options={**ON, **options} if number == 0 else options)
    return log


def test_enough_small_files_are_compacted(tmp_path: Path) -> None:
    log = _appended(tmp_path, 3)
    assert auto_compact(log, [{}], EARLY) == 3
    assert rows(log) == [0, 1, 2]
    (info,) = bodies(log, 3, "commitInfo")
    assert (info["operation"], info["operationParameters"]["auto"]) == ("OPTIMIZE", True)


@pytest.mark.parametrize(
    "settings", [AutoCompaction(min_files=4), AutoCompaction(enabled=False, min_files=3)]
)
def test_too_few_files_or_a_session_that_does_not_want_it_leave_them(
    tmp_path: Path, settings: AutoCompaction
) -> None:
    assert auto_compact(_appended(tmp_path, 3), [{}], settings) is None


def test_only_the_partitions_written_to_and_crowded_are_compacted(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for number, lands in enumerate(
        (["de", "fr", None], ["de", "fr", None], ["de", "fr", None], ["it", None])
    ):
        part = pa.table({"id": [number] * len(lands), "land": lands})
        log.write(part, options={"partitionBy": "land", **(ON if number == 0 else {})})
    version = auto_compact(log, [{"land": "it"}, {"land": None}, {"land": None}], EARLY)
    assert version == 4
    assert {add["partitionValues"]["land"] for add in bodies(log, 4, "add")} == {None}
    assert len(bodies(log, 4, "remove")) == 4


def test_a_failure_is_logged_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = _appended(tmp_path, 3)
    next(tmp_path.glob("*.parquet")).unlink()
    with caplog.at_level(logging.WARNING, "delta_ds"):
        assert auto_compact(log, [{}], EARLY) is None
    assert "auto_compaction_failed" in caplog.text


def test_the_session_goes_before_the_table_and_the_older_property_counts() -> None:
    assert is_enabled({}, auto_compaction_of({"spark.databricks.delta.autoCompact.enabled": "true"}))
    assert is_enabled({"delta.autoOptimize": "true"}, AutoCompaction())
    assert not is_enabled(ON, AutoCompaction(enabled=False))
    assert not is_enabled({}, AutoCompaction())
    with pytest.raises(ValueError, match="DELTA_INVALID_AUTO_COMPACT_TYPE"):
        auto_compaction_of({"spark.databricks.delta.autoCompact.enabled": "auto"})
