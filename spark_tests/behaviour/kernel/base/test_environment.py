"""Relative paths are of the folder that a call is about, and become absolute in one place."""

from __future__ import annotations

import ast
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delta_ds
from delta_ds import DeltaLog
from delta_ds.kernel.base.environment import absolute, relative_to
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
