"""Every test here gets a fresh table, no snapshot cache, and an end to hanging."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_ds.testing import TableBuilder
from spark_tests.faults.corrupted.tables import build

SECONDS = 300


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Four versions with the ids 1 to 6."""
    return build(tmp_path / "table")


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reader that hangs fails its test."""
    monkeypatch.setenv("DELTA_DS_CACHE", "off")

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
