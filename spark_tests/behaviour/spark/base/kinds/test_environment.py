"""What a session lacks is told in one line that says what to do."""

from __future__ import annotations

import logging
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.spark.base.kinds.environment import explain_failure, foreign_workers
from delta_ds.spark.errors.translation import as_delta_error


def session(python: object) -> SparkSession:
    return SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=str(python)))  # type: ignore[return-value]


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


class TestWorkers:
    def test_of_the_same_python_are_not_even_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a process was started"))
        assert foreign_workers(session(sys.executable)) is None
        monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
        assert foreign_workers(session(os.path.basename(sys.executable))) is None

    def test_of_another_python_with_the_package_are_well(self, tmp_path: Path) -> None:
        assert foreign_workers(session(script(tmp_path / "p", f'exec {sys.executable} "$@"'))) is None

    def test_without_packages_are_told_with_the_setting(self, tmp_path: Path) -> None:
        python = script(tmp_path / "p", f'exec {sys.executable} -I -S "$@"')
        problem = foreign_workers(session(python))
        assert problem is not None
        assert "lacks delta_ds, pyarrow, numpy" in problem
        assert f"set PYSPARK_PYTHON={sys.executable} " in problem
        assert len(problem.splitlines()) == 1

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("echo '[[3, 1], []]'", "is Python 3.1"),
            ("exit 3", "cannot be asked"),
            ("echo no", "cannot be asked"),
            (None, "is not there"),
        ],
    )
    def test_that_cannot_work_are_told(self, tmp_path: Path, text: str | None, told: str) -> None:
        python = tmp_path / "p" if text is None else script(tmp_path / "p", text)
        problem = foreign_workers(session(python))
        assert problem is not None
        assert told in problem
        assert "PYSPARK_PYTHON" in problem

    @pytest.mark.spark
    def test_are_in_what_register_says_and_in_the_log(
        self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert delta_ds.register(spark).workers
        monkeypatch.setattr(
            "delta_ds.spark.engines.seam.classic.foreign_workers", lambda _: "set PYSPARK_PYTHON=x"
        )
        with caplog.at_level(logging.WARNING, "delta_ds"):
            found = delta_ds.register(spark)
        assert not found.workers
        assert "PYSPARK_PYTHON=" in str(found)
        assert "foreign_workers" in caplog.text


class TestFailures:
    @pytest.mark.parametrize("module", ["delta_ds", "numpy"])
    def test_of_imports_in_workers_name_the_setting(self, module: str) -> None:
        said = (
            'Traceback (most recent call last):\n  File "/x/delta_ds/kernel/y.py", line 1, in <module>\n'
            f"ModuleNotFoundError: No module named '{module}'\n\tat org.apache.spark.X"
        )
        error = as_delta_error(RuntimeError(said))
        assert isinstance(error, UnsupportedOperationError)
        assert f"PYSPARK_PYTHON={sys.executable}" in str(error)
        assert len(str(error).splitlines()) == 1

    def test_of_format_delta_is_recognised_in_what_spark_says(self) -> None:
        said = (
            "org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: "
            "{}. Make sure the provider name is correct and the package is properly registered. SQLSTATE: 42K02"
        )
        error = as_delta_error(RuntimeError(said.format("delta")))
        assert isinstance(error, UnsupportedOperationError)
        assert "format('pydelta')" in str(error)
        assert as_delta_error(RuntimeError(said.format("deltas"))) is None

    def test_of_imports_in_functions_of_others_are_left_alone(self) -> None:
        assert explain_failure(RuntimeError("ModuleNotFoundError: No module named 'numpy'")) is None
        assert (
            explain_failure(RuntimeError("in delta_ds: ModuleNotFoundError: No module named 'mine'")) is None
        )
