"""Executors without this package: Spark's reader and writer go on, row commands send it, the rest names what lacks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_tests.faults.clusters.executors import COUNT, NATIVE, OURS, ROWS
from spark_tests.faults.clusters.processes import (
    ROOT,
    bare_python,
    environment,
    on_path,
    run,
    standalone_cluster,
)
from spark_tests.product.docs.blocks import DOCS, blocks
from spark_tests.product.docs.runner import same

pytestmark = pytest.mark.long

ANSWERS = {
    "delete": [],
    "update": [[-18, 0]],
    # One row is deleted before, five are deleted by the merge, and the rest of its source is inserted.
    "merge": [[2 * COUNT - 1 - 10]],
    "optimize": [[COUNT]],
    "write_parquet_as_it_is": [[COUNT]],
    "change_feed": [[COUNT]],
    "merge_with_change_feed": [[2 * COUNT - 10]],
    "portable_read": [[COUNT]],
    "portable_write": [[COUNT]],
    "stream": [[COUNT]],
}
SHIPPING = (
    "call delta_ds.ship(spark), give it to spark-submit by --py-files, or install delta-ds on every machine"
)

# The example of the page of clusters.
(SHIP,) = (block for block in blocks(DOCS / "clusters.md") if block.language == "python")

Program = Callable[..., dict[str, dict[str, Any]]]


def try_steps(folder: Path, python: Path, **job: Any) -> dict[str, dict[str, Any]]:
    """What comes of the steps on a cluster whose machines have a Python, from a driver that has the package.

    Each machine looks for `python3`, as Spark does by itself; the driver's is that of the tests.
    """
    there = environment(package=False, PYSPARK_PYTHON="python3", PATH=on_path(python))
    driver = environment(PYSPARK_PYTHON="python3", PATH=on_path(Path(sys.executable)))
    with standalone_cluster(folder, there) as cluster:
        # Workers that are used again know what earlier tasks brought along.
        job["conf"] = {"spark.python.worker.reuse": "false"}
        whole = {**job, "master": cluster.url, "folder": str(folder / "application")}
        done = run(
            [sys.executable, "-m", "spark_tests.faults.clusters.executors", json.dumps(whole)],
            driver,
            folder=ROOT,
        )
    found = {answer["step"]: answer for answer in done.answers}
    assert found, done.err[-4000:]
    return found


def check_answers(found: dict[str, dict[str, Any]], steps: tuple[str, ...]) -> None:
    for step in steps:
        assert found[step]["error"] is None, found[step]
        if step in ANSWERS:
            assert found[step]["answer"] == ANSWERS[step], step
        else:
            assert found[step]["answer"] == [[number, number % 3] for number in range(COUNT)]


def check_refusals(found: dict[str, dict[str, Any]], steps: tuple[str, ...], *told: str) -> None:
    for step in steps:
        error = found[step]["error"]
        assert error is not None, step
        assert "[DELTA_PYTHON_WORKERS_WITHOUT_PACKAGE]" in error["text"], error
        assert len(error["text"].strip().splitlines()) == 1, error
        assert all(words in error["text"] for words in told), error


@pytest.mark.cluster
def test_without_the_package_native_paths_work_and_the_rest_says_how_to_ship(tmp_path: Path) -> None:
    found = try_steps(tmp_path, bare_python(tmp_path / "python"))
    check_answers(found, (*NATIVE, *ROWS))
    check_refusals(found, OURS, "'delta_ds'", SHIPPING)
    assert any(f"executors lack delta_ds: {SHIPPING}" in line for line in found["optimize"]["log"])
    assert any(line.startswith("package_shipped ") for line in found["delete"]["log"])
    assert any(line.startswith("optimize_by_driver ") for line in found["optimize"]["log"])


@pytest.mark.cluster
def test_without_what_the_package_needs_the_missing_modules_are_named(tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python", "pyarrow", "pyroaring")
    found = try_steps(tmp_path, python, ship=SHIP.text)
    assert found["ship"]["answer"] is False
    assert "executors lack pyarrow, pyroaring: install delta-ds on every machine" in found["ship"]["log"][0]
    check_answers(found, NATIVE)
    check_refusals(found, (*OURS, *ROWS), "pyarrow", "send an environment with it by --archives")


@pytest.mark.spark
@pytest.mark.slow
def test_a_row_command_sends_the_package_to_executors(tmp_path: Path) -> None:
    steps = ("write", "delete", "change_feed")
    found = try_steps(tmp_path, bare_python(tmp_path / "python"), steps=steps)
    check_answers(found, steps)
    assert any(line.startswith("package_shipped ") for line in found["delete"]["log"])


@pytest.mark.spark
@pytest.mark.slow
def test_ship_gives_the_package_to_running_executors(tmp_path: Path) -> None:
    found = try_steps(
        tmp_path, bare_python(tmp_path / "python"), ship=SHIP.text, steps=["write", "stream", "delete"]
    )
    assert found["ship"]["answer"] is True
    assert same(SHIP.prints or "", found["ship"]["log"][0])
    check_answers(found, ("write", "stream", "delete"))
    assert found["delete"]["log"] == []


@pytest.mark.cluster
def test_everything_works_once_the_package_is_shipped(tmp_path: Path) -> None:
    found = try_steps(tmp_path, bare_python(tmp_path / "python"), ship=SHIP.text)
    check_answers(found, (*NATIVE, *OURS, *ROWS))


@pytest.mark.cluster
def test_another_version_on_executors_is_noticed_and_ship_replaces_it(tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python")
    into = next((tmp_path / "python").glob("lib/python*/site-packages")) / "delta_ds"
    into.mkdir()
    for entry in (ROOT / "delta_ds").iterdir():
        if entry.name not in ("_version.py", "__pycache__"):
            (into / entry.name).symlink_to(entry)
    (into / "_version.py").write_text('__version__ = "0.0.1"\n')
    steps = ["write", "change_feed", "portable_write", "delete"]
    (tmp_path / "before").mkdir()
    found = try_steps(tmp_path / "before", python, steps=steps)
    check_answers(found, ("write", "delete"))
    assert any("executors have delta-ds 0.0.1, and this is " in line for line in found["delete"]["log"])
    check_refusals(
        found, ("change_feed", "portable_write"), "a Python worker of Spark 0.0.1", "delta_ds.ship(spark)"
    )
    (tmp_path / "after").mkdir()
    found = try_steps(tmp_path / "after", python, steps=steps, ship=SHIP.text)
    assert found["ship"]["answer"] is True
    check_answers(found, tuple(steps))
