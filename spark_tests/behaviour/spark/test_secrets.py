"""No secret is shown by Spark: not in plans, `explain`, the event log, the metastore, files, or errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_tests.behaviour.spark.secret_session import WAYS

pytestmark = [pytest.mark.spark, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[3]
# What Spark's processes for Python read (see session/test_stores.py), or nobody, as the address is refused.
_NOT_OF_THE_DRIVER = {"portable", "streams", "views", "logins"}


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("secrets")
    cache = {"DELTA_DS_CACHE": str(folder / "cache")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "spark_tests.behaviour.spark.secret_session", str(folder)],
        capture_output=True, text=True, timeout=1200, cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, **cache},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    # What the JVM and its processes have logged.
    found["stderr"] = done.stderr
    return found


@pytest.mark.parametrize("way", WAYS)
def test_no_secret_is_seen(answer: Any, way: str) -> None:
    assert way not in answer["failed"], answer["failed"][way]
    assert answer["seen"][way] == []
    assert f"Marked{way}Secret" not in answer["stderr"]


@pytest.mark.parametrize("way", [way for way in WAYS if way not in _NOT_OF_THE_DRIVER])
def test_a_secret_reaches_the_table_that_it_is_for(answer: Any, way: str) -> None:
    assert way in answer["reached"]


def test_tables_of_other_sources_are_read_as_before(answer: Any) -> None:
    assert "others" not in answer["failed"], answer["failed"]["others"]
