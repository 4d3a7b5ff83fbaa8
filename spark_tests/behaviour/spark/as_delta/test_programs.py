"""Programs that know nothing of this package, run with Delta by delta-spark's names."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from delta_ds.spark.as_delta.programs import prepared_environment

pytestmark = pytest.mark.long

RUN = [sys.executable, "-m", "delta_ds", "run"]
# As pip installs it for `[project.scripts]`.
PYTHON_COMMAND = """#!{python}
from delta_ds.spark.as_delta.programs import run_python
run_python()
"""


def output(command: list[str], folder: Path, **keywords: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, **keywords}, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


SHOW = "import sys; from delta.tables import DeltaTable; print(DeltaTable.__module__, sys.argv[1:])"
SHOWN = "delta_ds.spark.api.table ['a', '-b', '--', 'c d']"


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_what_python_takes_is_run_by_this_python(tmp_path: Path, dashes: list[str]):
    assert output([*RUN, *dashes, "-c", SHOW, "a", "-b", "--", "c d"], tmp_path) == SHOWN


def test_a_python_file_is_run(tmp_path: Path):
    (tmp_path / "job.py").write_text(SHOW)
    assert output([*RUN, "--", "job.py", "a", "-b", "--", "c d"], tmp_path) == SHOWN


def test_a_command_is_found_on_the_path_and_python_below_it_has_delta(tmp_path: Path):
    executable(tmp_path / "tool", f"#!/bin/sh\nexec python3 -c '{SHOW}' \"$@\"\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    assert output([*RUN, "tool", "a", "-b", "--", "c d"], tmp_path, PATH=path) == SHOWN


def test_an_unknown_command_is_said(tmp_path: Path):
    done = subprocess.run([*RUN, "no-such-tool"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, "no program 'no-such-tool'" in done.stderr) == (127, True)


def test_the_exit_status_is_that_of_the_program(tmp_path: Path):
    assert subprocess.run([*RUN, "-c", "raise SystemExit(7)"], cwd=tmp_path).returncode == 7


def test_without_a_command_the_ways_to_use_it_are_said(tmp_path: Path):
    assert "-m pytest" in " ".join(output([*RUN, "--help"], tmp_path).split())
    done = subprocess.run([*RUN[:-1]], capture_output=True, text=True, cwd=tmp_path)
    said = (done.stdout + done.stderr).lower()
    # Of the command line, where its extra is installed; else of these ways alone.
    assert (done.returncode, "usage: " in said, " run " in said) == (2, True, True)


def test_a_customization_of_the_site_still_runs(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.customized = __name__")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    code = "import sitecustomize; print(customized, sitecustomize.__file__)"
    shown = output([*RUN, "-c", code], tmp_path, PYTHONPATH=path)
    assert shown == f"sitecustomize {tmp_path / 'sitecustomize.py'}"


def test_the_environment_is_prepared_once():
    once = prepared_environment({"PATH": "/usr/bin", "PYTHONPATH": "/mine"})
    assert once["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    assert once["PYTHONPATH"].split(os.pathsep)[1:] == ["/mine"]
    assert prepared_environment(once) == once


# --- with Spark

SETTINGS = """
    .config("spark.ui.enabled", "false")
    .config("spark.jars.packages", "io.delta:delta-spark_2.13:99.0.0")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
"""
CHECK = """
def check(spark, path):
    spark.range(3).write.format("pydelta").save(path)
    DeltaTable.forPath(spark, path).delete("id = 1")
    print("rows", [row.id for row in spark.read.format("pydelta").load(path).orderBy("id").collect()])
"""
JOB = f"""
import sys
from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
{CHECK}
builder = (SparkSession.builder.master("local[1]"){SETTINGS})
spark = configure_spark_with_delta_pip(builder).getOrCreate()
check(spark, sys.argv[1])
again = builder.getOrCreate()
print("same", again is spark, "delta.catalog.DeltaCatalog" in spark.conf.get("spark.sql.catalog.spark_catalog"))
check(spark.newSession(), sys.argv[1] + "_new")
spark.stop()
from pyspark import SparkConf, SparkContext
conf = SparkConf().setMaster("local[1]").set("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
spark = SparkSession(SparkContext(conf=conf))
print("extensions", spark.conf.get("spark.sql.extensions", None))
check(spark, sys.argv[1] + "_later")
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_written_for_delta_spark_runs_without_a_line_more(tmp_path: Path):
    (tmp_path / "job.py").write_text(JOB)
    rows = "rows [0, 2]"
    expected = [rows, "same True False", rows, "extensions None", rows]
    assert output([*RUN, "job.py", str(tmp_path / "t")], tmp_path).splitlines() == expected


@pytest.fixture
def python_command(tmp_path: Path) -> str:
    return str(executable(tmp_path / "pydelta-python", PYTHON_COMMAND.format(python=sys.executable)))


@pytest.mark.spark
@pytest.mark.slow
def test_spark_submit_starts_the_python_that_a_setting_names(tmp_path: Path, python_command: str):
    job = "import sys\nfrom delta.tables import DeltaTable\nfrom pyspark.sql import SparkSession\n"
    job += f"{CHECK}\ncheck(SparkSession.builder.getOrCreate(), sys.argv[1])\n"
    (tmp_path / "job.py").write_text(job)
    submit = [
        "spark-submit",
        "--master",
        "local[1]",
        "--conf",
        f"spark.pyspark.driver.python={python_command}",
    ]
    conf = ["--conf", "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"]
    command = [
        str(Path(sys.executable).with_name(submit[0])),
        *submit[1:],
        *conf,
        "job.py",
        str(tmp_path / "t"),
    ]
    assert output(command, tmp_path).splitlines()[-1:] == ["rows [0, 2]"]


@pytest.mark.spark
@pytest.mark.slow
def test_the_shell_of_pyspark_has_a_registered_session(tmp_path: Path, python_command: str):
    lines = f"from delta.tables import DeltaTable\n{CHECK}\ncheck(spark, {str(tmp_path / 't')!r})\n"
    command = [str(Path(sys.executable).with_name("pyspark")), "--master", "local[1]"]
    done = subprocess.run(
        command,
        input=lines,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        # Its input is no terminal here.
        env={**os.environ, "PYSPARK_DRIVER_PYTHON": python_command, "PYSPARK_DRIVER_PYTHON_OPTS": "-i"},
        timeout=300,
    )
    assert "rows [0, 2]" in done.stdout, done.stdout + done.stderr
