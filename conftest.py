"""What all tests share: one Spark session, settings of hypothesis."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from spark_tests.full_form import FULL, examples, part_of_product

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent
# Races, killed writers and failing storage take their time, however few; of damaged tables a quick run tries some.
_NOT_QUICK = [
    ROOT / "spark_tests" / room for room in ("faults/concurrency", "faults/corrupted", "product/benchmarks")
]

# Python workers do not see the tests' sys.path, only the environment as it was when the JVM started.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

# Queries of tests are small and many: in every JVM the time goes into compiling, of which the first tier is enough.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")

# Tests must not find what earlier runs left, nor leave anything in the user's own cache.
_cache = tempfile.mkdtemp(prefix="delta-ds-cache-")
atexit.register(shutil.rmtree, _cache, ignore_errors=True)
os.environ["DELTA_DS_CACHE"] = _cache

settings.register_profile(
    "default",
    max_examples=examples(100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever asks for the session needs a JVM; what takes long begins first, so that no worker ends alone."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        law = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if (
            law
            or item.get_closest_marker("slow")
            or any(item.path.is_relative_to(room) for room in _NOT_QUICK)
        ):
            item.add_marker(pytest.mark.not_quick)
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
    # A case that is asked for by its name runs.
    if not FULL and not any("[" in argument for argument in config.args):
        left_out = _only_of_the_full_form(items)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def _only_of_the_full_form(items: list[pytest.Item]) -> set[str]:
    """The cases of tests marked `sampled` but for a share of each that has every value of each parameter."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[str] = set()
    for name, several in cases.items():
        marker = several[0].get_closest_marker("sampled")
        assert marker is not None and hasattr(several[0], "callspec"), f"{name} has no cases"
        parameters = [(item.nodeid, _values(item)) for item in several]
        kept = part_of_product(parameters, marker.kwargs.get("share", 1 / 3))
        left_out |= {item.nodeid for place, item in enumerate(several) if place not in kept}
    return left_out


def _values(item: pytest.Item) -> dict[str, Hashable]:
    """The values of a case's parameters; of those that are no plain values, which of them it is."""
    callspec = item.callspec  # type: ignore[attr-defined]
    return {
        name: value if isinstance(value, str | int | None) else callspec.indices[name]
        for name, value in callspec.params.items()
    }


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a fixture logs is captured as text."""
    _capture_logs_as_text(item.config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """What a test logs is captured as text: pytest gives its handlers to loggers before each phase anew."""
    _capture_logs_as_text(item.config)


def _capture_logs_as_text(config: pytest.Config) -> None:
    """Loggers of pyspark write JSON, and make every handler that they are given do so: pytest's among them."""
    logs = config.pluginmanager.get_plugin("logging-plugin")
    if logs is not None:
        for handler in (logs.caplog_handler, logs.report_handler):
            handler.setFormatter(logs.formatter)


_sessions: list[SparkSession] = []


@pytest.fixture(scope="module", autouse=True)
def temporary_views_go_with_their_module() -> Iterator[None]:
    """The session is shared, and `SHOW TABLES` of any schema shows its temporary views."""
    yield
    for session in _sessions:
        for view in session.sql("SHOW VIEWS IN default").collect():
            if view.isTemporary:
                session.catalog.dropTempView(view.viewName)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One classic session for the whole run, with the data source registered."""
    from pyspark.sql import SparkSession

    import delta_ds

    session = (
        SparkSession.builder.master("local[2]")
        .appName("delta_ds tests")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    delta_ds.register(session)
    _sessions.append(session)
    yield session
    _sessions.remove(session)
    session.stop()
