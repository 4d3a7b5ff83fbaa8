"""The session's time zone, guessed where Spark does not tell it."""

from __future__ import annotations

import pytest

from delta_ds.spark.base import processes
from delta_ds.spark.base.processes import machine_time_zone, task_time_zone


@pytest.mark.parametrize(
    ("variable", "name"), [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo")]
)
def test_environment_names_the_zone(monkeypatch: pytest.MonkeyPatch, variable: str, name: str) -> None:
    monkeypatch.setenv("TZ", variable)
    assert machine_time_zone() == name
    assert task_time_zone() == name  # outside of a task


def test_link_to_the_zone_database_names_the_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(processes.os.path, "realpath", lambda path: "/usr/share/zoneinfo/America/Lima")
    assert machine_time_zone() == "America/Lima"


@pytest.mark.parametrize(("seconds", "offset"), [(0, "+00:00"), (-3600, "+01:00"), (12600, "-03:30")])
def test_machine_without_a_named_zone_gives_its_offset(
    monkeypatch: pytest.MonkeyPatch, seconds: int, offset: str
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(processes.os.path, "realpath", lambda path: path)
    monkeypatch.setattr(processes.os.path, "exists", lambda path: False)
    monkeypatch.setattr(processes.time, "timezone", seconds)
    assert machine_time_zone() == offset
