"""Relative paths are of the folder that a call is about; temporary files lie in the folder that Spark has for them."""

from __future__ import annotations

import ast
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delta_ds
from delta_ds import DeltaLog
from delta_ds.kernel.base import environment
from delta_ds.kernel.base.environment import absolute, relative_to, scratch_folder
from delta_ds.kernel.commands.changes.net_memory import net_batches
from delta_ds.kernel.commands.optimize import clustering_sort
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import ZORDER, OptimizeRequest
from delta_ds.kernel.files.write.writer import PartitionBuffer
from delta_ds.kernel.storage.open import open_storage
from spark_tests.full_form import examples

PARTS = st.lists(st.sampled_from(["a", "b c", ".", "..", "~", "x:y"]), min_size=1, max_size=5).map("/".join)


@settings(max_examples=examples(100), deadline=None)
@given(path=PARTS, folder=PARTS, root=st.booleans())
def test_a_path_is_absolute_by_the_folder_of_the_call_and_stays_what_it_is(
    path: str, folder: str, root: bool
) -> None:
    given_path = f"/{path}" if root else path
    with relative_to(lambda: f"/{folder}"):
        found = absolute(given_path)
        assert found == os.path.normpath(f"/{path}" if root else f"/{folder}/{path}")
        assert absolute(found) == found
        assert open_storage(given_path).url == found
    assert absolute(given_path) == os.path.abspath(given_path)


def test_the_folder_of_a_call_is_asked_for_relative_paths_only() -> None:
    def never() -> str:
        raise AssertionError("asked")

    with relative_to(never):
        assert absolute("/data/a") == "/data/a"
        with relative_to(lambda: "/inner"):
            assert absolute("a") == "/inner/a"


def test_the_folder_of_a_call_counts_for_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: list[str] = []
    with relative_to(lambda: "/elsewhere"):
        other = threading.Thread(target=lambda: found.append(absolute("a")))
        other.start()
        other.join()
    assert found == [f"{tmp_path}/a"]


def test_a_table_stays_where_it_was_when_the_process_moves_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = DeltaLog("orders")
    log.write(pa.table({"id": [1]}))
    os.chdir("/")
    assert log.write(pa.table({"id": [2]})) == 1
    assert log.snapshot().scan().count() == 2
    assert DeltaLog(tmp_path / "orders").snapshot().version == 1


def test_paths_become_absolute_in_one_place() -> None:
    package = Path(delta_ds.__file__).parent
    found = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("abspath", "getcwd", "getcwdb", "cwd")
    }
    assert found == {"kernel/base/environment.py"}


# --- temporary files


def _zorder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering_sort, "IN_MEMORY_BYTES", 0)
    log = DeltaLog(folder)
    for _ in range(2):
        log.write(pa.table({"a": list(range(100))}), mode="append")
    done = optimize(log, OptimizeRequest(ZORDER, columns=("a",)))
    assert done.metrics["numFilesRemoved"] == 2


def _partitions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("x", pa.int64())])
    buffer = PartitionBuffer(schema, 1, 1, 1)
    buffer.add(pa.RecordBatch.from_pydict({"x": [1, 2, 3]}, schema=schema), np.array([0, 1, 2], np.int32))
    list(buffer.release(()))
    assert buffer._file is not None
    buffer.close()


def _store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(f"memory://{folder.name}")
    with storage.replace_file("a") as stream:
        stream.write(b"x")
    assert storage.read("a") == b"x"


def _net_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeltaLog(folder)
    for version in range(2):
        rows = pa.table({"id": [1, 2 + version]})
        log.write(rows, mode="overwrite", options={"delta.enableChangeDataFeed": "true"})
    feed = log.changes(0, 1, net="net", keys=["id"])
    batches = [batch.slice(n, 1) for batch in log.changes(0, 1).to_batches() for n in range(batch.num_rows)]
    found = net_batches(batches, batches[0].schema, feed.keys, "net", "/data/orders", 0)
    assert sorted(row for batch in found for row in batch["id"].to_pylist()) == [1, 3]


USES: dict[str, Callable[[Path, pytest.MonkeyPatch], None]] = {
    "pieces of ZORDER": _zorder,
    "rows of partitions": _partitions,
    "files for a store": _store,
    "net changes": _net_changes,
}


@pytest.mark.parametrize("use", USES)
def test_temporary_files_lie_in_the_folder_that_spark_gives_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    local = tmp_path / "local"
    local.mkdir()
    monkeypatch.setattr(environment, "_of_driver", [])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'gone'},{local}")
    USES[use](tmp_path / "table", monkeypatch)
    assert list(local.iterdir()) == []


def test_the_folder_of_the_session_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/")
    monkeypatch.setattr(environment, "_of_driver", [lambda: str(tmp_path)])
    assert scratch_folder() == str(tmp_path)
    monkeypatch.setattr(environment, "_of_driver", [lambda: None])
    assert scratch_folder() == "/"
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert scratch_folder() is None
