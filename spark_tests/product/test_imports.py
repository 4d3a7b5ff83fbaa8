"""What importing the package and planning a read may load: Spark pays for it in every process it starts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pyarrow as pa
import pytest

import delta_ds
from delta_ds.testing import TableBuilder

HEAVY = {"pyspark", "pandas", "sqlglot", "pyarrow", "numpy", "fsspec", "pyarrow.dataset"}
_NOT_FOR_PLANNING = {
    "pandas", "sqlglot", "pyarrow.dataset", "pyspark", "fsspec", "dataclasses", "difflib",
    *(f"delta_ds.kernel.{room}" for room in ("commands", "format.options", "files.read.reader",
                                             "format.expressions.functions")),
}  # fmt: skip
# What `DeltaLog` stands on; transactions are loaded by the first of them.
_OF_TRANSACTIONS = {"delta_ds.kernel.transaction", "delta_ds.kernel.transaction.table_log"}
_MOST_MODULES = 97
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


_PLAN = """
from delta_ds import DeltaLog
for path in sys.argv[1:]:
    snapshot = DeltaLog(path).snapshot()
    assert snapshot.scan().tasks()
    assert snapshot.scan("id >= 1").slices()
    snapshot.scan("id >= 1 and day in ('d 1', 'd 2')").tasks()
    assert snapshot.scan().num_files
    snapshot.scan("day = 'd 1'").tasks()
"""


@pytest.mark.parametrize("cache", ["off", "on"])
def test_opening_and_planning_load_only_what_they_use(
    tables: list[str], cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DELTA_DS_CACHE", "off" if cache == "off" else str(tmp_path / "cache"))
    if cache == "on":
        loaded(_PLAN, *tables)  # what the cache holds from now on is read
    found = loaded(_PLAN, *tables)
    assert found & _NOT_FOR_PLANNING == set()
    assert {name for name in found if name.startswith("delta_ds.kernel.transaction")} == _OF_TRANSACTIONS
    ours = sorted(name for name in found if name.startswith("delta_ds."))
    # A module costs a third of a millisecond at least: one more is for a reason.
    assert len(ours) <= _MOST_MODULES, ours


def test_the_data_source_loads_no_reader_of_files_to_answer_its_schema():
    found = loaded("import delta_ds.spark.engines.portable.source, delta_ds.spark.engines.portable.batch")
    needless = {
        "pyarrow",
        "sqlglot",
        "fsspec",
        "delta_ds.kernel.files.read.reader",
        "delta_ds.kernel.files.scan",
    }
    assert found & needless == set()


def test_classes_of_values_are_those_of_records():
    home = Path(delta_ds.__file__).parent
    with_others = [
        str(file.relative_to(home))
        for file in home.rglob("*.py")
        if file.name != "records.py"
        and re.search(r"from dataclasses import .*\b(dataclass|field|replace)\b", file.read_text("utf-8"))
    ]
    assert with_others == [], "see delta_ds/records.py"


def test_no_chain_of_imports_leads_back_to_where_it_began():
    graph = grimp.build_graph("delta_ds", cache_dir=None)
    modules = graph.modules
    imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
    # Lazy imports and those for type checking count, too. A `CycleError` names the modules of the circle.
    TopologicalSorter(imports).prepare()
