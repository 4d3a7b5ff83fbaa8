"""Listeners hear of commits whichever way rows are written, and of the phases of row commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from delta_ds import CommandReport, CommitReport, DeltaTable, add_listener


def test_commits_are_reported_on_both_paths(session: SparkSession, tmp_path: Path) -> None:
    path, heard = str(tmp_path / "t"), []
    with add_listener(heard.append):
        session.range(3).coalesce(1).write.format("pydelta").save(path)
        DeltaTable.forPath(session, path).delete("id = 1")
    reports: list[Any] = heard
    commits = [report for report in reports if isinstance(report, CommitReport)]
    assert [(each.operation, each.version, each.rows_added) for each in commits] == [
        ("WRITE", 0, 3),
        ("DELETE", 1, 2),
    ]
    assert {each.table for each in commits} == {path}
    assert all(each.publish_seconds > 0 for each in commits)
    (command,) = [each for each in reports if isinstance(each, CommandReport) and each.command == "DELETE"]
    assert list(command.phases) == ["rewriting", "committing"] and command.error is None
