"""SQL scripts by clients of Spark Connect end as on delta-spark: statements, paths, names, streams, `DeltaTable`.

The kit lies beside the repository (`../shared/sql`): 52 scripts with what a classic session of delta-spark made of each
step. A part of them runs here; with DELTA_DS_FULL=1 all do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_tests.engines.differential import scripts_over_connect
from spark_tests.engines.differential.scripts_over_connect import CLIENT, KIT
from spark_tests.full_form import FULL

pytestmark = [
    pytest.mark.connect,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(not KIT.is_dir(), reason="the kit of SQL scripts is not here: ../shared/sql"),
]

# Each does something that Spark Connect has ways of its own for.
SAMPLE = {
    "server": ("delete_forms", "merge_sources", "streaming_by_name"),
    "local": ("dataframe_by_name", "paths_everywhere"),
}
_SECONDS = 3000


@pytest.mark.parametrize("client", SAMPLE)
def test_scripts_end_as_on_delta_spark(tmp_path: Path, client: str) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    report = tmp_path / "report.json"
    command = [sys.executable, scripts_over_connect.__file__, "--scripts", str(KIT / "scripts")]
    command += ["--report", str(report), "--keep", str(tmp_path / "run")]
    if not FULL:
        command += ["--only", *SAMPLE[client]]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, CLIENT: client}, capture_output=True, text=True, timeout=_SECONDS
    )  # fmt: skip
    assert report.exists(), done.stdout[-2000:] + done.stderr[-4000:]
    found: list[Any] = json.loads(report.read_text())
    assert len(found) == (len(list(KIT.glob("scripts/*.sql"))) if FULL else len(SAMPLE[client]))
    differences = [(script["script"], one) for script in found for one in script["mismatches"]]
    assert differences == []
