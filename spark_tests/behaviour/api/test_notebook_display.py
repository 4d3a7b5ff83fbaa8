"""What IPython itself, as every notebook has it, shows of the objects that users hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog

formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path / "orders")
    log.write(pa.table({"id": [1, 2], "country": ["DE", "FR"]}), options={"partitionBy": "country"})
    return log


# What is shown -> a text in it.
SHOWN: dict[str, tuple[Callable[[DeltaLog], Any], str]] = {
    "log": (lambda log: log, "Delta log of"),
    "snapshot": (lambda log: log.snapshot(), "version 0"),
    "scan": (lambda log: log.snapshot().scan("country = 'DE'"), "rows that match"),
    "schema": (lambda log: log.snapshot().schema, "country"),
    "history": (lambda log: log.history(), "WRITE"),
    "explanation": (lambda log: log.snapshot().scan("country = 'DE'").explain(), "1 of 2 to read"),
    "timeline": (lambda log: log.timeline(), "WRITE"),
    "layout": (lambda log: log.snapshot().column_layout("id"), "id"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_ipython_shows_a_table_and_has_a_text_without_markup(log: DeltaLog, name: str) -> None:
    thing, said = SHOWN[name][0](log), SHOWN[name][1]
    data, _ = formatters.DisplayFormatter().format(thing)
    assert said in data["text/html"] and data["text/html"].startswith("<div")
    assert said in data["text/plain"] and "<div" not in data["text/plain"]


def test_ipython_takes_the_text_of_a_picture_along(log: DeltaLog) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    data, metadata = formatters.DisplayFormatter().format(log.plot.history())
    assert data["image/png"].startswith(b"\x89PNG")
    assert "version 0" in metadata["image/png"]["alt"]
