"""The contract, kept by the open-source server (`make test-unity`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_tests.unity import server
from spark_tests.unity.contract import Contract, Place
from spark_tests.unity.server import Process

pytestmark = pytest.mark.unity


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with server.running(tmp_path_factory.mktemp("unity")) as found:
        yield found


@pytest.fixture
def place(process: Process) -> Place:
    return Place(process.url)


class TestRealServer(Contract):
    """The contract, kept by the real server."""
