"""`install_as_delta`: imports of `delta` in fresh interpreters, with and without another package of that name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
INSTALL = "import sys, delta_ds\nwhy = delta_ds.install_as_delta()\n"


def run(code: str, folder: Path) -> str:
    """What a program prints that runs in a folder, which is the first on its path."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_the_call_there_is_no_delta(tmp_path: Path):
    code = "import delta_ds, importlib.util\nprint(importlib.util.find_spec('delta'))"
    assert run(code, tmp_path) == "None"


def test_the_classes_are_ours(tmp_path: Path):
    code = """
from delta import DeltaTable, configure_spark_with_delta_pip
from delta.tables import DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTable as again
from delta.connect.tables import DeltaTable as connect
assert why is None
assert DeltaTable is again is connect is delta_ds.DeltaTable
print(DeltaMergeBuilder.__module__)
"""
    assert run(INSTALL + code, tmp_path) == "delta_ds.spark.commands.merge.builder"


@pytest.mark.parametrize(
    "module", ["exceptions", "exceptions.base", "exceptions.captured", "connect.exceptions"]
)
def test_the_exceptions_catch_what_commands_raise(tmp_path: Path, module: str):
    code = f"""
from delta.{module} import ConcurrentAppendException, DeltaConcurrentModificationException
from delta_ds.spark.errors.translation import as_spark_error
for kind in ConcurrentAppendException, DeltaConcurrentModificationException:
    try:
        raise as_spark_error(delta_ds.ConcurrentAppendException("files were added"))
    except kind as error:
        print(error)
"""
    assert run(INSTALL + code, tmp_path).splitlines() == ["[DELTA_CONCURRENT_APPEND] files were added"] * 2


def test_the_call_itself_loads_neither_pyspark_nor_pyarrow(tmp_path: Path):
    code = "print({'pyspark', 'pyarrow', 'numpy', 'delta'} & set(sys.modules))"
    assert run(INSTALL + code, tmp_path) == "set()"


@pytest.mark.parametrize("name", ["delta-spark", "delta_spark", "Delta.Spark"])
def test_who_asks_for_the_version_of_the_distribution_is_told(tmp_path: Path, name: str):
    code = f"""
from importlib.metadata import distributions, version
from delta.version import __version__
listed = [one.metadata["Name"] for one in distributions()]
print(version({name!r}) == __version__, "delta-spark" in listed)
"""
    assert run(INSTALL + code, tmp_path) == "True False"


def test_the_version_of_another_package_is_its_own(tmp_path: Path):
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").touch()
    (tmp_path / "delta_spark-3.2.0.dist-info").mkdir()
    metadata = tmp_path / "delta_spark-3.2.0.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: delta-spark\nVersion: 3.2.0\n")
    code = "from importlib.metadata import version\nprint(version('delta-spark'))"
    assert run(INSTALL + code, tmp_path) == "3.2.0"


def test_other_distributions_that_are_not_there_stay_missing(tmp_path: Path):
    code = """
from importlib.metadata import PackageNotFoundError, version
try:
    version("delta-sharing-x")
except PackageNotFoundError as error:
    print(error.name)
"""
    assert run(INSTALL + code, tmp_path) == "delta-sharing-x"


def test_another_package_stays(tmp_path: Path):
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("DeltaTable = 'theirs'")
    code = "from delta import DeltaTable\nprint(DeltaTable, why)"
    theirs, _, reason = run(INSTALL + code, tmp_path).partition(" ")
    assert theirs == "theirs"
    assert str(tmp_path / "delta" / "__init__.py") in reason


def test_another_package_that_is_imported_already_stays(tmp_path: Path):
    (tmp_path / "delta.py").write_text("DeltaTable = 'theirs'")
    code = "from delta import DeltaTable\nprint(DeltaTable, 'stays' in why)"
    assert run("import delta\n" + INSTALL + code, tmp_path) == "theirs True"


def test_a_folder_of_data_that_is_called_delta_is_no_package(tmp_path: Path):
    (tmp_path / "delta" / "sales" / "_delta_log").mkdir(parents=True)
    code = "from delta.tables import DeltaTable\nprint(why, DeltaTable is delta_ds.DeltaTable)"
    assert run(INSTALL + code, tmp_path) == "None True"


def test_what_is_not_there_in_delta_spark_is_not_there(tmp_path: Path):
    code = "try:\n    import delta.nothing\nexcept ModuleNotFoundError as error:\n    print(error.name)"
    assert run(INSTALL + code, tmp_path) == "delta.nothing"


def test_the_distribution_with_the_name_needs_no_call(tmp_path: Path):
    # What the wheel of distributions/delta-names holds.
    shutil.copytree(ROOT / "delta_ds" / "spark" / "as_delta" / "delta", tmp_path / "delta")
    code = """
import sys
from delta.tables import DeltaTable
import delta, delta_ds
print(DeltaTable is delta_ds.DeltaTable, delta.__file__, delta_ds.install_as_delta())
from pyspark.sql import SparkSession
print(SparkSession.__init__.__code__.co_filename)
"""
    first, hooked = run(code, tmp_path).splitlines()
    assert first == f"True {tmp_path / 'delta' / '__init__.py'} None"
    assert Path(hooked).name == "auto_register.py"
