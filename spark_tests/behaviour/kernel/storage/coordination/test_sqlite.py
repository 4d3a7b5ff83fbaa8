"""The embedded coordinator when its users are interrupted, and its database is not what it was."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.coordination.sqlite import SQLiteCoordinator
from spark_tests.behaviour.kernel.storage.coordination.helpers import Managed

_HOLDS = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(1)
database.execute("COMMIT")
"""


@pytest.fixture
def alarm() -> Iterator[None]:
    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_a_writer_interrupted_while_it_waits_keeps_nobody_from_writing(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(0)
    database = managed.options["coordinatorUrl"]
    with subprocess.Popen([sys.executable, "-c", _HOLDS, database], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            managed.append(1)
    other = sqlite3.connect(database, isolation_level=None, timeout=1)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    assert managed.append(2) == 1
    assert managed.ids() == [0, 2]


def test_a_database_that_is_gone_is_not_made_anew_by_readers_and_writers(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(0)
    log = managed.open()
    place = Path(managed.options["coordinatorUrl"])
    content = place.read_bytes()
    for file in tmp_path.glob("coordinator.db*"):
        file.unlink()
    for opened in (log, managed.open()):
        with pytest.raises(StorageError) as caught:
            opened.snapshot()
        assert caught.value.condition == "DELTA_COORDINATOR_UNAVAILABLE"
    assert not os.path.exists(place)
    place.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(StorageError) as caught:
        managed.append(1)
    assert caught.value.condition == "DELTA_COORDINATOR_UNAVAILABLE"
    assert managed.published() == [0]


def test_namespaces_are_kept_beside_the_tables_and_missed_by_no_older_database(tmp_path: Path) -> None:
    database = tmp_path / "catalog.db"
    coordinator = SQLiteCoordinator({"coordinatorUrl": str(database)})
    coordinator.create("old.t", str(tmp_path / "t"))
    assert coordinator.namespaces() == []
    for name in ("b", "A.x", "a.X"):
        coordinator.create_namespace(name)
    assert coordinator.namespaces() == ["A.x", "b"]
    coordinator.drop_namespace("a.x")
    coordinator.drop_namespace("none")
    assert coordinator.namespaces() == ["b"]
    assert [table.name for table in coordinator.all_tables()] == ["old.t"]
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_namespace_makes_a_database_that_is_not_there(tmp_path: Path) -> None:
    coordinator = SQLiteCoordinator({"coordinatorUrl": str(tmp_path / "new.db")})
    coordinator.create_namespace("a.b")
    assert coordinator.namespaces() == ["a.b"]
