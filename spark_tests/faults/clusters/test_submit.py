"""Programs given to a cluster by `spark-submit` and the `pyspark` shell; no machine has the package installed."""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_tests.faults.clusters.application import SETTINGS
from spark_tests.faults.clusters.processes import (
    ROOT,
    SPARK_HOME,
    Finished,
    bare_python,
    environment,
    on_path,
    run,
    standalone_cluster,
)

PROGRAM = """
import json
from pyspark.sql import SparkSession
import delta_ds

spark = SparkSession.builder.getOrCreate()
active = delta_ds.register(spark)
path = {path!r}
writer = spark.range(0, 100, 1, 4).write.format("pydelta").option("delta.enableChangeDataFeed", "true")
writer.save(path)
delta_ds.DeltaTable.forPath(spark, path).delete("id < 10")
changes = spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
rows = spark.read.format("pydelta").load(path).count()
found = dict(active=bool(active.native_scan), rows=rows, changes=changes.count(), at=delta_ds.__file__)
print(json.dumps(found))
"""


class Machines:
    """A cluster whose machines have a Python without the package.

    Attributes
    ----------
    python
        That Python.
    """

    def __init__(self, url: str, python: Path, folder: Path) -> None:
        self.url, self.python, self.folder = url, python, folder
        # As a wheel is, under a name that Python imports from on executors.
        self.archive = folder / "package.zip"
        with zipfile.ZipFile(self.archive, "w") as archive:
            for file in sorted((ROOT / "delta_ds").rglob("*")):
                if file.suffix in (".py", ".java", ".typed"):
                    archive.write(file, file.relative_to(ROOT))

    def submit(
        self, *words: str, program: str = "spark-submit", text: str | None = None, **more: str
    ) -> Finished:
        settings = [word for name in SETTINGS for word in ("--conf", f"{name}={SETTINGS[name]}")]
        settings += ["--conf", "spark.eventLog.enabled=false"]
        given = {"PYSPARK_PYTHON": "python3", "PATH": on_path(self.python), **more}
        env = environment(package=False, **given)
        command = [str(SPARK_HOME / "bin" / program), "--master", self.url, *settings, *words]
        return run(command, env, folder=self.folder, text=text)

    def program(self, name: str) -> tuple[str, Path]:
        """A program that makes a table, and where it is."""
        text = PROGRAM.format(path=str(self.folder / name))
        file = self.folder / f"{name}.py"
        file.write_text(text)
        return text, file


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("submit")
    python = bare_python(folder / "python")
    there = environment(package=False, PYSPARK_PYTHON="python3", PATH=on_path(python))
    with standalone_cluster(folder, there) as cluster:
        yield Machines(cluster.url, python, folder)


def answer(done: Finished) -> dict[str, Any]:
    assert done.code == 0 and len(done.answers) == 1, done.err[-4000:]
    found = dict(done.answers[0])
    assert (found["active"], found["rows"], found["changes"]) == (True, 90, 110)
    return found


@pytest.mark.cluster
def test_py_files_bring_the_package(machines: Machines) -> None:
    _, program = machines.program("files")
    found = answer(machines.submit("--py-files", str(machines.archive), str(program)))
    assert "package.zip" in found["at"]


@pytest.mark.cluster
def test_without_them_there_is_no_package(machines: Machines) -> None:
    _, program = machines.program("nothing")
    done = machines.submit(str(program))
    assert done.code != 0
    assert "No module named 'delta_ds'" in done.out + done.err


@pytest.mark.cluster
def test_archives_bring_an_environment(machines: Machines) -> None:
    """The driver has the same at the same relative path, since it starts Python for the data source as well."""
    env = machines.folder / "environment"
    bare_python(env)
    shutil.copytree(ROOT / "delta_ds", next(env.glob("lib/python*/site-packages")) / "delta_ds")
    packed = machines.folder / "environment.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        for entry in env.iterdir():
            archive.add(entry, entry.name)
    _, program = machines.program("archives")
    found = answer(
        machines.submit(
            "--archives", f"{packed}#environment", str(program),
            PYSPARK_PYTHON="./environment/bin/python3", PYSPARK_DRIVER_PYTHON="./environment/bin/python3",
        )
    )  # fmt: skip
    assert "environment/lib" in found["at"]


@pytest.mark.cluster
def test_the_shell_runs_the_same(machines: Machines) -> None:
    text, _ = machines.program("shell")
    answer(
        machines.submit(
            "--py-files", str(machines.archive), program="pyspark", text=text, PYSPARK_DRIVER_PYTHON_OPTS="-i"
        )
    )


@pytest.mark.cluster
def test_spark_itself_refuses_cluster_mode_for_python_on_standalone_clusters(machines: Machines) -> None:
    _, program = machines.program("cluster")
    done = machines.submit("--deploy-mode", "cluster", "--py-files", str(machines.archive), str(program))
    assert done.code != 0
    assert "Cluster deploy mode is currently not supported for python applications" in done.err + done.out
    assert not (machines.folder / "cluster").exists()


@pytest.mark.cluster
def test_a_driver_in_a_process_of_its_own_gives_the_package_to_executors(machines: Machines) -> None:
    """Client mode from a machine that has the package, which is what a notebook is."""
    text, _ = machines.program("notebook")
    program = machines.folder / "ship.py"
    program.write_text(text.replace("path = ", "print(delta_ds.ship(spark))\npath = "))
    found = machines.submit(
        str(program),
        PYSPARK_DRIVER_PYTHON=sys.executable,
        PYTHONPATH=str(ROOT),
        PATH=on_path(Path(sys.executable)),
    )
    assert answer(found)["at"] == str(ROOT / "delta_ds" / "__init__.py")
    assert "on: executors have delta-ds" in found.out
