"""A pipeline written for delta-spark, unchanged: it prints what delta-spark prints.

`spark_tests/engines/interop/test_pipeline.py` holds delta-spark against the same record.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[4]
PIPELINE = ROOT / "examples" / "delta_spark" / "pipeline.py"


@pytest.mark.spark
@pytest.mark.slow
def test_a_pipeline_written_for_delta_spark_gives_the_rows_that_delta_spark_gives(tmp_path: Path) -> None:
    assert "delta_ds" not in PIPELINE.read_text().partition('"""\n\n')[2]
    done = subprocess.run(
        [sys.executable, "-m", "delta_ds", "run", "--", str(PIPELINE), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == PIPELINE.with_suffix(".txt").read_text()
