"""One delta-spark and one workshop for the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from spark_tests.engines.interop.delta_spark import DeltaSpark, start
from spark_tests.engines.interop.table_factory import Work, Workers, Workshop


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")
    session = start()
    yield DeltaSpark(session)
    session.stop()


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("interop"))


@pytest.fixture(scope="session")
def workers(request: pytest.FixtureRequest, workshop: Workshop, delta_spark: DeltaSpark) -> Iterator[Workers]:
    names: dict[str, list[str]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            names.setdefault(item.originalname, []).append(item.callspec.params.get("name", ""))
    made = Workers(workshop, delta_spark, names)
    yield made
    made.close()


@pytest.fixture
def outcome(request: pytest.FixtureRequest, workers: Workers) -> Callable[[Work, str], None]:
    """Do a work for a name; that of the test's other names is begun at the same time."""
    return lambda work, name: workers.outcome(request.node.originalname, work, name)
