"""Races for what only one may have: the first version, an application's transaction, row ids, identity values."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.create import create_table
from spark_tests.faults.concurrency.append_worker import NO_ROWS, append, row
from spark_tests.faults.concurrency.plain_log import PlainLog
from spark_tests.faults.concurrency.race_worker import Outcome
from spark_tests.faults.concurrency.workers import run_together

WRITERS = 8
FIELDS = (StructField("writer", LONG), StructField("number", LONG))
IDENTITY = {
    "delta.identity.start": 100, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": False,
}  # fmt: skip


def race(log: DeltaLog, commits: int, checkpointers: int = 0, **job: Any) -> list[list[Outcome]]:
    jobs = [
        {
            "url": log.storage.url,
            "writer": w,
            "commits": commits,
            "checkpoints": w >= WRITERS - checkpointers,
            **job,
        }
        for w in range(WRITERS)
    ]
    return run_together("race_worker", jobs)


def rows(log: DeltaLog) -> list[tuple[int, int]]:
    found = log.snapshot().scan(columns=["writer", "number"]).to_arrow()
    return sorted(zip(found["writer"].to_pylist(), found["number"].to_pylist(), strict=True))


def refused(answers: list[list[Outcome]]) -> set[str]:
    return {name for out in answers for outcome in out for name in outcome["refused"]}


def committed(answers: list[list[Outcome]]) -> dict[int, tuple[int, int]]:
    """Writer and number by version."""
    return {
        o["version"]: (w, o["number"])
        for w, out in enumerate(answers)
        for o in out
        if o["version"] is not None
    }


def test_of_8_processes_that_create_a_table_one_does_and_the_others_are_told(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    answers = race(log, 1)
    done = committed(answers)
    assert sorted(done) == list(range(len(done))) and 0 in done
    assert rows(log) == sorted(done.values())
    assert refused(answers) <= {"ProtocolChangedException"}
    plain = PlainLog(log.storage)
    assert [len(commit.bodies("metaData")) for commit in plain.commits] == [1] + [0] * (len(done) - 1)
    assert len(list(tmp_path.rglob("*.parquet"))) == len(done)


def test_of_8_processes_that_write_an_applications_transactions_each_is_there_once(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    log.write(NO_ROWS)
    answers = race(log, 10, options={"txnAppId": "job", "txnVersion": "{number}"}, again=True)
    done = committed(answers)
    assert rows(log) == sorted(done.values())
    numbers = [number for _, number in done.values()]
    assert sorted(numbers) == list(range(10))
    assert [number for _, (_, number) in sorted(done.items())] == list(range(10))
    assert refused(answers) <= {"ConcurrentTransactionException"}


def test_row_ids_and_in_commit_times_of_concurrent_appends_never_overlap(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    properties = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}
    create_table(log, StructType(FIELDS), properties=properties)
    answers = race(log, 8)
    done = committed(answers)
    assert rows(log) == sorted(done.values())
    assert len(done) == WRITERS * 8
    plain = PlainLog(log.storage)
    times = [commit.info["inCommitTimestamp"] for commit in plain.commits]
    assert times == sorted(set(times))
    for number, commit in enumerate(plain.commits[1:]):
        (add,) = commit.adds.values()
        assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (number, commit.version)
        (domain,) = commit.bodies("domainMetadata")
        assert json.loads(domain["configuration"])["rowIdHighWaterMark"] == number
    plain.check_checksums()
    plain.check_checkpoints()
    ids = log.snapshot().scan(metadata_columns=["row_id"]).to_arrow()["_metadata"]
    assert sorted(pc.struct_field(ids, "row_id").to_pylist()) == list(range(len(done)))


def test_identity_values_of_concurrent_appends_are_all_different(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    create_table(log, StructType((*FIELDS, StructField("id", LONG, metadata=IDENTITY))))
    answers = race(log, 3, again=True)
    assert refused(answers) <= {"MetadataChangedException"}
    assert rows(log) == sorted(committed(answers).values())
    ids = log.snapshot().scan().to_arrow()["id"].to_pylist()
    assert len(set(ids)) == len(ids) == WRITERS * 3
    assert {(value - 100) % 5 for value in ids} == {0}
    assert PlainLog(log.storage).check_checksums()


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoints_that_several_processes_write_at_once_are_all_right(policy: str, tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    log.write(NO_ROWS, options={"delta.checkpointPolicy": policy})
    done = committed(race(log, 10, checkpointers=4)[:-4])
    assert rows(log) == sorted(done.values())
    plain = PlainLog(log.storage)
    assert plain.check_hint() <= max(plain.check_checkpoints())
    plain.check_checksums()
    assert list(tmp_path.rglob(".*")) == []


def test_threads_that_share_a_handle_lose_no_append(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    log.write(NO_ROWS)

    def work(writer: int) -> list[int]:
        return [append(log, ("handle", "transaction")[writer % 2], row(writer, n)) for n in range(8)]

    with ThreadPoolExecutor(WRITERS) as pool:
        versions = [version for versions in pool.map(work, range(WRITERS)) for version in versions]
    assert sorted(versions) == list(range(1, WRITERS * 8 + 1))
    assert rows(log) == [(writer, number) for writer in range(WRITERS) for number in range(8)]
    PlainLog(log.storage).check_checksums()
