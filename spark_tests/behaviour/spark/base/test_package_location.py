"""What Spark sends to a process on the driver's machine finds this package there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import delta_ds
from delta_ds.spark.engines.portable.source import DeltaSource, PushdownSource
from delta_ds.spark.engines.seam.shipping import package_archive

_PICKLE = (
    "import pickle, sys; from delta_ds.spark.engines.portable.source import *; "
    "s = PushdownSource({'path': '/p'}); s._pin = 5; "
)
_SEND = _PICKLE + "sys.stdout.buffer.write(pickle.dumps(s))"
_TAKE = (
    "import pickle, sys; s = pickle.loads(sys.stdin.buffer.read()); import delta_ds; "
    "print(type(s).__name__, s.options, s._pin, delta_ds.__file__)"
)


def run(code: str, data: bytes, path: str | None, folder: Path) -> bytes:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {} if path is None else {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], input=data, env=env, cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.slow
def test_a_source_is_unpickled_with_the_package_that_pickled_it(tmp_path: Path) -> None:
    archive = package_archive(str(tmp_path))
    sent = run(_SEND, b"", archive, tmp_path)
    told = run(_TAKE, sent, None, tmp_path).decode().split()
    assert told == ["PushdownSource", "{'path':", "'/p'}", "5", f"{archive}/delta_ds/__init__.pyc"]


@pytest.mark.parametrize("kind", [DeltaSource, PushdownSource])
def test_where_it_is_on_the_path_nothing_changes(kind: type[DeltaSource]) -> None:
    before = list(sys.path)
    found = pickle.loads(pickle.dumps(kind({"path": "/p"})))
    assert (type(found), found.options, sys.path) == (kind, {"path": "/p"}, before)
    assert sys.modules["delta_ds"] is delta_ds
