"""Eight processes append to one table: every commit is there once, and what follows commits is right."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from delta_ds.api.delta_log import DeltaLog
from spark_tests.engines.stores.servers import free_port, module, running
from spark_tests.faults.concurrency.append_worker import NO_ROWS, WAYS
from spark_tests.faults.concurrency.plain_log import PlainLog
from spark_tests.faults.concurrency.workers import ROOT, run_together
from spark_tests.full_form import FULL

BUCKET = "concurrency"
S3_MODULES = ["s3fs", "aiobotocore.session"]
WRITERS, COMMITS_EACH = 8, 50


def race(log: DeltaLog, commits: int = COMMITS_EACH, **more: Any) -> dict[int, tuple[int, int]]:
    """Let the writers loose; writer and number of each version that they say they have committed."""
    assert log.write(NO_ROWS) == 0
    jobs = [
        {
            "url": log.storage.url, "writer": writer, "commits": commits, "way": WAYS[writer % len(WAYS)],
            **more,
        }
        for writer in range(WRITERS)
    ]  # fmt: skip
    answers = run_together("append_worker", jobs)
    return {version: (w, n) for w, versions in enumerate(answers) for n, version in enumerate(versions)}


def check(log: DeltaLog, said: dict[int, tuple[int, int]], commits: int = COMMITS_EACH) -> None:
    """Every commit that the writers speak of is there once, holds their row, and nothing else is there."""
    plain = PlainLog(log.storage)
    total = WRITERS * commits
    assert sorted(said) == list(range(1, total + 1))
    assert len(plain.commits) == total + 1
    assert len({commit.info["txnId"] for commit in plain.commits}) == total + 1
    found = log.snapshot().scan(metadata_columns=["file_name"]).to_arrow()
    names, writers, numbers = (
        column.to_pylist()
        for column in (pc.struct_field(found["_metadata"], "file_name"), found["writer"], found["number"])
    )
    assert len(names) == total
    rows = dict(zip(names, zip(writers, numbers, strict=True), strict=True))
    assert {commit.version: rows[path] for commit in plain.commits for path in commit.adds} == said
    check_what_follows(log, plain)


def check_what_follows(log: DeltaLog, plain: PlainLog) -> None:
    """Hold checksums, checkpoints and what is read through them against the commits."""
    checkpoints = plain.check_checkpoints()
    assert checkpoints == list(range(10, len(plain.commits), 10))
    assert plain.check_hint() in checkpoints[-WRITERS:]
    assert set(checkpoints) <= set(plain.check_checksums())
    for version in (0, 1, *checkpoints[::8], len(plain.commits) - 1):
        files = log.open_snapshot(version=version).live_files().table
        assert sorted(files["path"].to_pylist()) == sorted(plain.live[version])


@contextmanager
def s3_table(folder: Path, trouble_every: int = 0) -> Iterator[tuple[DeltaLog, dict[str, Any]]]:
    """A table on a server of its own, and the options for it; see `moto_server`."""
    module("s3fs")
    module("moto.server")
    import s3fs

    port = free_port()
    command = [
        sys.executable,
        "-m",
        "spark_tests.faults.concurrency.moto_server",
        str(port),
        str(trouble_every),
    ]
    with running(command, port, folder / "log", PYTHONPATH=str(ROOT)):
        # One request a read: s3fs asks for the size first where it may read in parallel.
        options = {
            "key": "test-key", "secret": "test-secret", "endpoint_url": f"http://127.0.0.1:{port}",
            "max_concurrency": 1,
        }  # fmt: skip
        s3fs.S3FileSystem(**options).mkdir(BUCKET)
        yield DeltaLog(f"s3a://{BUCKET}/table", options), options


@pytest.mark.stores
@pytest.mark.slow
def test_appends_of_8_processes_to_a_table_on_s3_are_all_there_once(tmp_path: Path) -> None:
    # The emulated server is slow: 15 each, or 50 with DELTA_DS_FULL=1.
    commits = COMMITS_EACH if FULL else 15
    with s3_table(tmp_path) as (log, options):
        check(log, race(log, commits, options=options, modules=S3_MODULES), commits)


@pytest.mark.stores
@pytest.mark.slow
def test_appends_to_a_server_that_loses_answers_are_all_there_once(tmp_path: Path) -> None:
    with s3_table(tmp_path, trouble_every=5) as (log, options):
        check(log, race(log, 6, options=options, modules=S3_MODULES), 6)


@pytest.mark.slow
def test_400_appends_of_8_processes_to_a_local_table_are_all_there_once(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    check(log, race(log))
    assert list(tmp_path.rglob(".*")) == []
