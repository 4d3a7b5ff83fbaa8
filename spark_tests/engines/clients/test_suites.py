"""Test suites of other projects, run as they are; this package serves what they import of delta-spark.

`make test-clients` puts the projects, and the source distributions that their tests are part of, into an environment
of their own. Tests that no distribution has are run from checkouts in the folder that DELTA_DS_CHECKOUTS names. What
fails is listed here with the reason, and in docs/guide/what-was-tried.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spark_tests.full_form import FULL

pytestmark = pytest.mark.clients

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = Path(os.environ.get("DELTA_DS_SUITES", ROOT / ".venv-suites"))
CHECKOUTS = os.environ.get("DELTA_DS_CHECKOUTS")
_SECONDS = 3000

if not ENVIRONMENT.is_dir():
    pytest.skip("the projects are not installed here: run make test-clients", allow_module_level=True)


@dataclass(frozen=True)
class Suite:
    """Tests of a project, those that fail and why, and how many pass at least.

    Attributes
    ----------
    name
        Of the suite.
    project
        As its distribution or its checkout is called.
    tests
        Files and folders of it.
    passed
        How many tests pass at least: a suite of which most is left out shows nothing.
    differs
        What fails, with the reason.
    options
        More arguments of pytest.
    arrange
        Lays the tests out in a new folder; the second folder is the distribution or checkout.
    checkout
        The tests are in no distribution.
    minutes
        About how long it takes; the long ones run with DELTA_DS_FULL=1 only.
    """

    name: str
    project: str
    tests: tuple[str, ...]
    passed: int
    differs: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    arrange: Callable[[Path, Path], Path] = lambda folder, source: source
    checkout: bool = False
    minutes: int = 1


def _copy(folder: Path, source: Path) -> Path:
    return Path(shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns(".git")))


def _of_delta(folder: Path, source: Path) -> Path:
    """Delta's tests beside the package `delta` of here, with its own `testing` for both kinds of sessions."""
    python = source / "python" / "delta"
    work = folder / "python" / "delta"
    shutil.copytree(python / "tests", work / "tests")
    shutil.copytree(python / "connect" / "tests", work / "connect_tests")
    shutil.copytree(python / "testing", work / "classic" / "testing")
    shutil.copytree(python / "connect" / "testing", work / "client" / "testing")
    (folder / "version.sbt").write_text('ThisBuild / version := "4.4.0-SNAPSHOT"\n')
    (work / "conftest.py").write_text(
        "import os\n"
        "import delta, delta.connect\n"
        "here = os.path.dirname(__file__)\n"
        "delta.__path__.append(os.path.join(here, 'classic'))\n"
        "delta.connect.__path__.append(os.path.join(here, 'client'))\n"
    )
    return work


JVM = "an object or a class of delta-spark's jar"
GEO = "geometry and geography are refused by name"
TEST_JAR = "a feature that only the jars of delta-spark's tests have"

SUITES = (
    Suite(
        "koheesio",
        "koheesio",
        (
            "tests/spark/test_delta.py",
            "tests/spark/readers/test_delta_reader.py",
            "tests/spark/readers/test_metastore_reader.py",
            "tests/spark/writers/delta",
            "tests/spark/tasks/test_etl_task.py",
        ),
        passed=80,
        options=("-p", "no:randomly"),
    ),
    Suite(
        "mack",
        "mack",
        ("tests",),
        passed=28,
        differs=dict.fromkeys(
            ("test_delta_file_sizes", "test_show_delta_file_sizes"), "the bytes of files that Spark 3.5 wrote"
        ),
        arrange=_copy,
        checkout=True,
        minutes=2,
    ),
    Suite(
        "delta",
        "delta",
        ("tests",),
        passed=66,
        differs={
            "test_verify_paritionedBy_compatibility": JVM,
            "test_capture_delta_analysis_exception": JVM,
            "test_capture_delta_illegal_argument_exception": JVM,
            "test_create_table_geo_types": GEO,
            "test_dropFeatureSupport": TEST_JAR,
            "PipUtilsCustomJarsTests::test_maven_jar_loaded": "a jar of Scala 2.12, which Spark 4 cannot load",
        },
        arrange=_of_delta,
        checkout=True,
        minutes=4,
    ),
    Suite(
        "delta-connect",
        "delta",
        ("connect_tests",),
        passed=47,
        differs={
            "test_create_table_geo_types": GEO,
            "test_dropFeatureSupport": TEST_JAR,
            "test_delta_exception_from_error_info": "a conflict is a DeltaConcurrentModificationException here",
        },
        arrange=_of_delta,
        checkout=True,
        minutes=15,
    ),
)


def _source(suite: Suite, folder: Path) -> Path:
    """What is in the distribution, unpacked into a folder; or the checkout, to which nothing may be written."""
    if suite.checkout:
        if CHECKOUTS is None:
            pytest.skip("DELTA_DS_CHECKOUTS names no folder with a checkout")
        return Path(CHECKOUTS) / suite.project
    (archive,) = (ENVIRONMENT / "sources").glob(f"{suite.project}-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return next(folder.iterdir())


def _settings(folder: Path) -> str:
    """Where Spark finds the settings that each of the projects expects of a session."""
    conf = folder / "conf"
    conf.mkdir()
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
        ),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder / 'derby'}",
    }
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (conf / "spark-defaults.conf").write_text(lines)
    return str(conf)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_suite_fails_where_it_is_known_to_and_nowhere_else(suite: Suite, tmp_path: Path) -> None:
    if suite.minutes > 3 and not FULL:
        pytest.skip(f"about {suite.minutes} minutes: DELTA_DS_FULL=1")
    for name in ("source", "work", "spark"):
        (tmp_path / name).mkdir()
    work = suite.arrange(tmp_path / "work", _source(suite, tmp_path / "source"))
    report = tmp_path / "report.xml"
    # Neither its options nor those of tools that measure it.
    arguments = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--junitxml={report}", *suite.options]
    environment = {
        **os.environ,
        "PYTHONPATH": str(work / "src"),
        "SPARK_CONF_DIR": _settings(tmp_path / "spark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    program = [str(ENVIRONMENT / "bin" / "python"), "-m", "delta_ds", "run", "--", "-m", "pytest"]
    done = subprocess.run(
        [*program, *arguments, *suite.tests],
        capture_output=True,
        text=True,
        cwd=work,
        env=environment,
        timeout=_SECONDS,
    )
    assert report.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    cases = list(ElementTree.parse(report).iter("testcase"))
    outcomes = {_name(case): {child.tag for child in case} for case in cases}
    failed = {name for name, found in outcomes.items() if found & {"failure", "error"}}
    surprises = {name for name in failed if not any(_is(name, part) for part in suite.differs)}
    mended = {part for part in suite.differs if not any(_is(name, part) for name in failed)}
    assert (surprises, mended) == (set(), set()), done.stdout[-4000:]
    assert sum(not found & {"failure", "error", "skipped"} for found in outcomes.values()) >= suite.passed


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def _is(name: str, part: str) -> bool:
    """Whether a test is meant, which is named alone or with its class."""
    return name.endswith((f".{part}", f"::{part}"))
