"""One delta-spark for the whole run, and every table of the catalogue written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from spark_tests.interop.catalogue import CASES
from spark_tests.interop.delta_spark import DeltaSpark, start
from spark_tests.interop.written import Written


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")
    session = start()
    yield DeltaSpark(session)
    session.stop()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Written]:
    """A table of the catalogue by name, written when it is first asked for. Tests must not change it."""
    tables: dict[str, Written] = {}

    def table(name: str) -> Written:
        if name not in tables:
            made = Written(tmp_path_factory.mktemp(name) / "table")
            CASES[name].build(made)
            tables[name] = made
        return tables[name]

    return table
