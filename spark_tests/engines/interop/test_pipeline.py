"""The pipeline of `examples/delta_spark`, run by delta-spark itself: it prints what is recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.interop

pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")

PIPELINE = Path(__file__).resolve().parents[3] / "examples" / "delta_spark" / "pipeline.py"


def test_delta_spark_prints_what_is_recorded_of_the_pipeline(tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(PIPELINE), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=tmp_path,
        env={**environment, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == PIPELINE.with_suffix(".txt").read_text()
