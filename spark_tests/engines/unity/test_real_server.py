"""The contract, kept by the open-source server (`make test-unity`)."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from spark_tests.engines.unity import exchanges, server
from spark_tests.engines.unity.contract import Contract, Place
from spark_tests.engines.unity.processes import Writer, check
from spark_tests.engines.unity.server import Process

pytestmark = pytest.mark.unity
ROWS_AFTER = pa.table({"id": [99]})
CONFIRMED = {"begun": [], "done": [99], "lost": [], "failed": []}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with server.running(tmp_path_factory.mktemp("unity")) as found:
        yield found


@pytest.fixture
def place(process: Process) -> Place:
    return Place(process.url)


class TestRealServer(Contract):
    """The contract, kept by the real server."""


def test_writers_that_are_killed_leave_a_table_that_goes_on(place: Place, tmp_path: Path) -> None:
    name = f"main.sales.t_{uuid.uuid4().hex[:12]}"
    place.create(name)
    chance = random.Random(7)
    told = []
    for turn in range(4):
        writers = [
            Writer(place, name, 1000 * (3 * turn + n), 900, tmp_path / f"{turn}-{n}") for n in range(1, 4)
        ]
        for writer in writers:
            writer.reach(3)
        time.sleep(chance.random())
        told += [writer.end(kill=True) for writer in writers]
        check(place, name, told, [1, 2])
    assert sum(len(one["done"]) for one in told) > 30
    log = place.log(name)
    log.write(ROWS_AFTER)
    assert place.entry(name)["latest-table-version"] == log.snapshot().version
    check(place, name, [*told, CONFIRMED], [1, 2])


def test_a_server_that_is_killed_loses_nothing_that_it_confirmed(
    process: Process, place: Place, tmp_path: Path
) -> None:
    name = f"main.sales.t_{uuid.uuid4().hex[:12]}"
    place.create(name)
    writers = [Writer(place, name, 1000 * n, 90, tmp_path / str(n)) for n in range(1, 3)]
    for turn in (5, 15):
        for writer in writers:
            writer.reach(turn)
        process.kill()
        time.sleep(0.5)
        process.start()
    told = [writer.end() for writer in writers]
    log = check(place, name, told, [1, 2])
    assert sum(len(one["done"]) for one in told) > 30
    log.write(ROWS_AFTER)
    check(place, name, [*told, CONFIRMED], [1, 2])


def test_the_recorded_answers_are_this_server_s(tmp_path: Path) -> None:
    with server.running(tmp_path) as found:
        assert exchanges.course(found.url) == json.loads(exchanges.RECORDED.read_text())
