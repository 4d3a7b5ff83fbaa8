"""A server that `pydelta serve` has started, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECONDS = 300
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def served(
    folder: Path, kind: str = "--thrift", settings: Mapping[str, str] | None = None, end: int = signal.SIGTERM
) -> Iterator[str]:
    """A server with its metastore and its tables below a folder; what it says of where it listens.

    It is ended by the signal, and has to end well.
    """
    command = [sys.executable, "-m", "delta_ds", "serve", kind, "--port", "0"]
    command += ["--warehouse", str(folder / "warehouse"), "--metastore", str(folder / "metastore")]
    for name, value in {**SETTINGS, **(settings or {})}.items():
        command += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (
        open(folder / "server.log", "w") as log,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("serving "), (folder / "server.log").read_text()[-4000:]
            yield line.split()[1]
            process.send_signal(end)
            assert process.wait(SECONDS) == 0, (folder / "server.log").read_text()[-4000:]
        finally:
            process.kill()
