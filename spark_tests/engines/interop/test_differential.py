"""The programs of the differential kit: delta-spark reads every version that this package wrote, with the same rows.

Two processes, one after the other: this package runs all programs and notes what it sees, then delta-spark reads the
tables. See `conformance/corpora` for the kit.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_tests.engines.differential.test_programs import KIT

pytestmark = pytest.mark.interop


def test_delta_spark_reads_every_version_of_every_program(tmp_path: Path) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")
    tables = tmp_path / "tables"
    programs = ["--programs", str(KIT / "programs"), "--keep", str(tables)]

    written = _run(tmp_path, str(KIT / "run.py"), *programs)
    read = _run(tmp_path, str(KIT / "crosscheck.py"), "--reader", "oracle", "--tables", str(tables))

    assert re.search(r"^\d+ passed, 0 failed$", written, re.MULTILINE), written[-5000:]
    assert re.search(r"^\d+ passed, 0 failed$", read, re.MULTILINE), read[-5000:]


def _run(folder: Path, *arguments: str) -> str:
    import delta_ds

    home = str(Path(delta_ds.__file__).resolve().parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr
