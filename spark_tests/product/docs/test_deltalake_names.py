"""The table of deltalake's names: each has a counterpart or a word on what to do, and what it names is there."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

from delta_ds import DeltaLog
from spark_tests.product.docs.blocks import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
names = importlib.import_module("deltalake_names")


def test_every_name_of_deltalake_is_told_of() -> None:
    recorded = {name for name in names.recorded()["names"] if not name.startswith("DeltaTable.merge().")}
    assert recorded == set(names.OURS)


@pytest.mark.parametrize("name", sorted(names.OURS))
def test_what_a_name_is_called_here_is_there(name: str) -> None:
    *candidates, last = names.OURS[name]
    assert last.startswith("(") or names.resolve(last) is not None
    assert all(not each.startswith("(") for each in candidates)


def test_parameters_are_those_of_the_signatures() -> None:
    table = dict(names.rows())
    assert table["`DeltaTable.history(limit)`"] == "`DeltaLog.history(limit)`"
    assert table["`DeltaTable.version()`"] == "`Snapshot.version`"
    assert names.resolve("DeltaLog.no_such_method") is None


def test_the_names_are_of_the_deltalake_that_is_installed() -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    if deltalake.__version__ != names.recorded()["version"]:
        pytest.skip(f"deltalake {deltalake.__version__} is another one than was recorded")
    assert all(
        hasattr(deltalake.DeltaTable, name.removeprefix("DeltaTable."))
        for name in names.recorded()["names"]
        if name.count(".") == 1 and name.startswith("DeltaTable.")
    )


# What users of deltalake reach for first.
REACHED_FOR = (
    "write", "delete", "update", "merge", "optimize", "zorder", "vacuum", "restore", "convert", "clone", "add_columns",
    "set_properties", "add_constraint", "history", "to_pandas", "to_polars", "to_duckdb", "to_pyarrow_dataset",
)  # fmt: skip


@pytest.mark.parametrize("name", REACHED_FOR)
def test_a_log_has_what_users_reach_for_and_the_guide_tells_of_it(name: str) -> None:
    answers = inspect.signature(getattr(DeltaLog, name)).return_annotation
    assert answers is not inspect.Signature.empty and "Any" not in str(answers)
    page = (ROOT / "docs" / "guide" / "migrate-from-deltalake.md").read_text("utf-8")
    assert f"log.{name}(" in page or f"DeltaLog.{name}(" in page or f"`{name}`" in page
