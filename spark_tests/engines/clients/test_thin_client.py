"""`pyspark-client`, which has no JVM and no py4j, as client of `pydelta serve --connect`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_tests.behaviour.spark.connect_server import ROOT
from spark_tests.behaviour.spark.serving import served
from spark_tests.engines.clients import thin_client

pytestmark = pytest.mark.clients

# A Python that has `pyspark-client` and what this package needs but pyspark.
PYTHON = os.environ.get("DELTA_DS_THIN_CLIENT", "")
_SECONDS = 600

if not PYTHON:
    pytest.skip(
        "DELTA_DS_THIN_CLIENT names no Python with pyspark-client: make test-clients", allow_module_level=True
    )


def _run(program: str, folder: Path, *arguments: str) -> str:
    """What a program of the thin client prints, where no Java can be found.

    A file: of `python -c` Spark's client thinks that it is a doctest, which wants the whole of pyspark.
    """
    (folder / "program.py").write_text(program)
    environment = {"PATH": str(Path(PYTHON).parent), "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    done = subprocess.run(
        [PYTHON, "program.py", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("thin")
    (folder / "tables").mkdir()
    with served(folder, "--connect") as url:
        _run(Path(thin_client.__file__).read_text(), folder, url, str(folder / "tables"))
        yield json.loads((folder / "tables" / "answers.json").read_text())


def test_every_module_of_the_package_is_imported_without_a_jvm(tmp_path: Path) -> None:
    """All but those whose extras are not installed."""
    program = """
import importlib, pkgutil, sys
import delta_ds
failed = set()
for module in pkgutil.walk_packages(delta_ds.__path__, "delta_ds."):
    if ".startup" in module.name or module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        failed.add(error.name)
print(*sorted(failed), "py4j" in sys.modules)
"""
    *failed, py4j = _run(program, tmp_path).split()
    assert {name.partition(".")[0] for name in failed} <= {
        "typer",
        "rich",
        "matplotlib",
        "hdfs_native",
        "pyiceberg",
    }
    assert py4j == "False"


def test_a_table_is_written_without_spark_in_a_client_that_has_registered(tmp_path: Path) -> None:
    """A commit looks for the application that makes it, of which a thin client has none."""
    program = """
import pyarrow as pa
import pyspark, delta_ds
from delta_ds import DeltaLog, DeltaTable, register
print(DeltaLog("t").write(pa.table({"a": [1]})), DeltaLog("t").snapshot().version)
"""
    assert _run(program, tmp_path).split() == ["0", "0"]


def test_code_for_delta_spark_runs_in_it(tmp_path: Path) -> None:
    program = """
import delta_ds
delta_ds.install_as_delta()
from pyspark.sql import SparkSession
from delta.tables import DeltaTable
try:
    SparkSession.builder.appName("no server").getOrCreate()
except Exception as error:
    print(error.getCondition())
"""
    assert _run(program, tmp_path).split() == ["CONNECT_URL_NOT_SET"]


def test_it_registers(answers: dict[str, Any]) -> None:
    assert answers["registered"].startswith("pydelta on Spark ")
    assert answers["registered"].endswith(" (connect)")
    assert answers["unregistered"] == 5


def test_tables_by_path(answers: dict[str, Any]) -> None:
    assert answers["by_path"] == [[0, 1, 2, 3, 9], 4, 3, True, ["WRITE", "WRITE", "WRITE"]]


def test_tables_by_name(answers: dict[str, Any]) -> None:
    rows = [[1, "b"], [2, "a"], [3, "a"], [4, "a"], [5, "m"], [6, "m"], [7, "m"]]
    changes = [["delete", 1], ["insert", 2], ["update_postimage", 2], ["update_preimage", 2]]
    assert answers["by_name"] == [rows, changes, ["id"]]


def test_statements(answers: dict[str, Any]) -> None:
    assert answers["statements"] == [[[1, "A"], [2, "b"], [4, "d"]], 3, ["OPTIMIZE", "ADD CONSTRAINT"]]


def test_streams(answers: dict[str, Any]) -> None:
    assert answers["streams"] == [5, 5]


def test_functions_of_the_client(answers: dict[str, Any]) -> None:
    assert answers["functions"] == [0, 4]


def test_errors_have_their_classes(answers: dict[str, Any]) -> None:
    assert answers["errors"] == [
        ["NotADeltaTableError", "DELTA_MISSING_DELTA_TABLE"],
        ["VersionNotFoundError", "DELTA_CANNOT_RESTORE_TABLE_VERSION"],
        ["SchemaError", "DELTA_METADATA_MISMATCH"],
    ]


def test_every_method_of_a_table_answers(answers: dict[str, Any]) -> None:
    definition, copies, upkeep, never_called = answers["methods"]
    assert never_called == []
    columns, rows, operations, clustering = definition
    assert columns == [["v", None], ["id", None], ["o", "told"]]
    assert rows == [[3, "m", None], [7, "a", 1], [8, "b", None]]
    assert operations[:3] + operations[-4:] == [
        "MERGE", "UPDATE", "CLUSTER BY", "CHANGE COLUMN", "WRITE", "REPLACE TABLE", "CREATE TABLE",
    ]  # fmt: skip
    assert clustering == ["id"]
    assert copies == [5, 3, 3, 3, 3, 4, True]
    assert upkeep == [[["delete", 1], ["insert", 2]], [["b", 1]], 0, "Health", "Maintenance"]
