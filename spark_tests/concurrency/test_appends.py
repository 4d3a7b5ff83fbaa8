"""Eight processes append to one table: every commit is there once, and what follows commits is right."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.storage.filesystem import Storage
from spark_tests.concurrency.append_worker import NO_ROWS, WAYS
from spark_tests.concurrency.plain_log import PlainLog
from spark_tests.concurrency.workers import ROOT, run_together
from spark_tests.stores.servers import free_port, module, running

BUCKET = "concurrency"
WRITERS, COMMITS_EACH = 8, 50


def race(storage: Storage, options: dict[str, Any] | None = None) -> dict[int, tuple[int, int]]:
    """Let the writers loose; writer and number of each version that they say they have committed."""
    jobs = [
        {
            "url": storage.url, "options": options, "writer": writer, "commits": COMMITS_EACH,
            "way": WAYS[writer % len(WAYS)],
        }
        for writer in range(WRITERS)
    ]  # fmt: skip
    answers = run_together("append_worker", jobs)
    return {version: (w, n) for w, versions in enumerate(answers) for n, version in enumerate(versions)}


def check(storage: Storage, said: dict[int, tuple[int, int]]) -> PlainLog:
    """Hold the log against what the writers said."""
    log = PlainLog(storage)
    total = WRITERS * COMMITS_EACH
    assert sorted(said) == list(range(1, total + 1))
    assert len(log.commits) == total + 1
    for commit in log.commits[1:]:
        (path,) = commit.adds
        assert [(row["writer"], row["number"]) for row in log.read(path)] == [said[commit.version]]
    assert len({commit.info["txnId"] for commit in log.commits}) == total + 1
    return log


def check_what_follows(storage: Storage, log: PlainLog) -> None:
    """Hold checksums, checkpoints and the kernel's own reading against the commits."""
    checkpoints = log.check_checkpoints()
    assert checkpoints == list(range(10, len(log.commits), 10))
    assert log.check_hint() in checkpoints[-WRITERS:]
    assert set(checkpoints) <= set(log.check_checksums())
    handle = DeltaLog(storage.url, dict(storage.options))
    for version in (0, 1, *checkpoints[::4], len(log.commits) - 1):
        files = handle.snapshot(version=version).live_files().table
        assert sorted(files["path"].to_pylist()) == sorted(log.live[version])
    found = handle.snapshot().scan().to_arrow()
    wanted = {(writer, number) for writer in range(WRITERS) for number in range(COMMITS_EACH)}
    assert found.num_rows == len(wanted)
    assert set(zip(*(found[name].to_pylist() for name in ("writer", "number")), strict=True)) == wanted


@pytest.fixture
def s3_options(tmp_path: Path) -> Iterator[dict[str, Any]]:
    module("s3fs")
    module("moto.server")
    import s3fs

    port = free_port()
    command = [sys.executable, "-m", "spark_tests.concurrency.moto_server", str(port)]
    with running(command, port, tmp_path / "log", PYTHONPATH=str(ROOT)):
        # One request a read: s3fs asks for the size first where it may read in parallel.
        options = {
            "key": "test-key", "secret": "test-secret", "endpoint_url": f"http://127.0.0.1:{port}",
            "max_concurrency": 1,
        }  # fmt: skip
        s3fs.S3FileSystem(**options).mkdir(BUCKET)
        yield options


@pytest.mark.stores
@pytest.mark.slow
def test_400_appends_of_8_processes_to_a_table_on_s3_are_all_there_once(s3_options: dict[str, Any]) -> None:
    log = DeltaLog(f"s3a://{BUCKET}/{uuid.uuid4()}", s3_options)
    assert log.write(NO_ROWS) == 0
    check_what_follows(log.storage, check(log.storage, race(log.storage, s3_options)))


@pytest.mark.slow
def test_400_appends_of_8_processes_to_a_local_table_are_all_there_once(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    assert log.write(NO_ROWS) == 0
    check_what_follows(log.storage, check(log.storage, race(log.storage)))
    assert [p for p in tmp_path.rglob(".*")] == []
