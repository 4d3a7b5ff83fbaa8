"""What importing the package and planning a read may load: Spark pays for it in every process it starts."""

from __future__ import annotations

import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pyarrow as pa
import pytest

from delta_ds.testing import TableBuilder

HEAVY = {"pyspark", "pandas", "sqlglot", "pyarrow", "numpy", "fsspec", "pyarrow.dataset"}
_REPORT = "import sys, json; print(json.dumps(sorted(sys.modules)))"


def loaded(code: str, *arguments: str) -> set[str]:
    """The modules that a fresh interpreter has after some code."""
    program = f"import sys\n{code}\n{_REPORT}"
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy():
    assert loaded("import delta_ds; delta_ds.DeltaError") & HEAVY == set()


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    plain = TableBuilder(tmp_path / "plain table")
    plain.create(pa.schema([("id", pa.int64()), ("day", pa.string())]), partition_columns=["day"])
    for i in range(3):
        plain.append(pa.table({"id": [i]}), partition_values={"day": f"d {i}"})
    stored = TableBuilder(tmp_path / "stored")
    stored.create(
        pa.schema([("id", pa.int64()), ("day", pa.string())]),
        partition_columns=["day"],
        reader_features=["deletionVectors", "v2Checkpoint"],
    )
    add = stored.write_file(pa.table({"id": [1, 2, 3]}), partition_values={"day": None})
    stored.commit(add)
    stored.checkpoint("v2-parquet")
    stored.delete_rows(add, [1], "i")
    return [str(plain.path), str(stored.path)]


@pytest.mark.parametrize("cache", ["off", "on"])
def test_planning_a_read_loads_neither_pandas_nor_sqlglot_nor_the_dataset_module(
    tables: list[str], cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DELTA_DS_CACHE", "off" if cache == "off" else str(tmp_path / "cache"))
    code = """
from delta_ds import DeltaLog
from delta_ds.kernel.expressions.tree import Call, Column, Literal
from delta_ds.kernel.schema.types import LONG, STRING
predicate = Call("and", (Call(">=", (Column(("id",)), Literal(1, LONG))),
                         Call("<>", (Column(("day",)), Literal("x", STRING)))))
for path in sys.argv[1:]:
    snapshot = DeltaLog(path).snapshot()
    assert snapshot.scan().tasks()
    snapshot.scan(predicate).tasks()
"""
    assert loaded(code, *tables) & {"pandas", "sqlglot", "pyarrow.dataset", "pyspark", "fsspec"} == set()


def test_no_chain_of_imports_leads_back_to_where_it_began():
    graph = grimp.build_graph("delta_ds", cache_dir=None)
    modules = graph.modules
    imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
    # Lazy imports and those for type checking count, too. A `CycleError` names the modules of the circle.
    TopologicalSorter(imports).prepare()
