"""Writers of every kind and readers on one table: what came of it has a serial order, and nothing else is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.compute as pc
import pytest

from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.concurrency.mixed_worker import NAMES, PARTS, READ, batch, found_rows
from spark_tests.faults.concurrency.plain_log import PlainLog
from spark_tests.faults.concurrency.serial_order import (
    APPEND,
    COUNT,
    OVERWRITE,
    PARTITIONS,
    REPLACE,
    SET,
    Committed,
    Operation,
    Row,
    check,
    from_json,
)
from spark_tests.faults.concurrency.workers import run_together

SEED = 20_240_229
# What each process does, and how often.
LOAD: list[tuple[list[str], int]] = [
    ([APPEND], 25),
    ([APPEND], 25),
    ([OVERWRITE, PARTITIONS, PARTITIONS], 20),
    ([REPLACE], 20),
    ([REPLACE, COUNT], 20),
    ([COUNT], 20),
    ([SET, READ, READ], 18),
    ([READ], 30),
]
FEATURES = {
    "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true", "delta.checkpointPolicy": "v2",
}  # fmt: skip
TABLES: dict[str, dict[str, str]] = {"Serializable": {}, "WriteSerializable": FEATURES}
DATA_CONFLICTS = {
    "ConcurrentAppendException", "ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException",
}  # fmt: skip

Step = dict[str, Any]


class History:
    """A load's table and everything its processes noted."""

    def __init__(self, folder: Path, level: str) -> None:
        self.level = level
        self.log = DeltaLog(folder)
        created = {"partitionBy": "part", "delta.isolationLevel": level, **TABLES[level]}
        assert self.log.write(batch(()), options=created) == 0
        jobs = [
            {"url": self.log.storage.url, "name": f"w{n}", "seed": SEED + n, "kinds": kinds, "steps": steps}
            for n, (kinds, steps) in enumerate(LOAD)
        ]
        self.processes: list[list[Step]] = run_together("mixed_worker", jobs)
        self.plain = PlainLog(self.log.storage)
        self._files: dict[str, list[Row]] = {}
        self.versions = {v: self._rows(live) for v, live in enumerate(self.plain.live)}

    def _rows(self, live: Mapping[str, Mapping[str, Any]]) -> list[Row]:
        """The rows of files, each of which is read once."""
        for path in live.keys() - self._files.keys():
            part = int(live[path]["partitionValues"]["part"])
            rows = [{**row, "part": part} for row in self.plain.read(path)]
            self._files[path] = [tuple(row[name] for name in NAMES) for row in rows]
        return [row for path in live for row in self._files[path]]

    @property
    def steps(self) -> list[Step]:
        return [step for steps in self.processes for step in steps]

    def tried(self) -> dict[int, Step]:
        """The writes that became versions."""
        found = [s for s in self.steps if s["kind"] != READ and s.get("version") is not None]
        by_version = {step["version"]: step for step in found}
        assert len(by_version) == len(found), "two writers say they have committed one version"
        return dict(sorted(by_version.items()))

    def committed(self) -> list[Committed]:
        """The same for the checker, with what each of them had read and has changed by the log."""
        out = []
        for version, step in self.tried().items():
            changed = frozenset(self.versions[version]) ^ frozenset(self.versions[version - 1])
            read = self.plain.commits[version].info["readVersion"]
            out.append(Committed(from_json(step["operation"]), version, read, changed))
        return out


def every_version_is_a_commit_that_a_process_knows_of(history: History) -> None:
    assert list(history.tried()) == [commit.version for commit in history.plain.commits[1:]]


def every_version_has_the_rows_of_a_serial_replay(history: History) -> None:
    check(history.committed(), history.versions, strict=history.level == "Serializable")


def the_kernel_reads_versions_as_the_log_has_them(history: History) -> None:
    last = len(history.versions) - 1
    for version in (*range(0, last, 3), last):
        rows = history.versions[version]
        found = found_rows(history.log.snapshot(version=version).scan().to_arrow())
        assert sorted(found) == sorted(rows), f"version {version}, seed {SEED}"


def every_version_has_the_properties_that_were_set_last(history: History) -> None:
    wanted: dict[str, str] = {}
    for commit in history.committed():
        if commit.operation.kind == SET:
            wanted[commit.operation.key] = commit.operation.text
        (metadata,) = history.plain.current("metaData", commit.version).values()
        found = metadata["configuration"].items()
        assert {k: v for k, v in found if not k.startswith("delta.")} == wanted
        assert {"delta.isolationLevel": history.level, **TABLES[history.level]}.items() <= found


def what_commits_say_of_themselves_is_true(history: History) -> None:
    for commit in history.committed():
        info = history.plain.commits[commit.version].info
        assert info["isBlindAppend"] == (commit.operation.kind in (APPEND, SET)), info
        assert info["isolationLevel"] == history.level, info


def readers_saw_the_rows_of_one_version_exactly(history: History) -> None:
    reads = [step for step in history.steps if step["kind"] == READ]
    assert reads
    for step in reads:
        seen = sorted(tuple(row) for row in step["rows"])
        assert seen == sorted(history.versions[step["version"]]), f"version {step['version']}, seed {SEED}"


def nobody_reads_a_version_older_than_one_that_was_there_before(history: History) -> None:
    """Whoever begins after a commit has returned, or after another one has read it, sees that version."""
    known = [(step["ended"], step["version"]) for step in history.steps if step.get("version") is not None]
    for step in history.steps:
        if step.get("version") is None:
            continue
        before = max((version for ended, version in known if ended < step["began"]), default=0)
        is_read = step["kind"] == READ
        seen = step["version"] if is_read else history.plain.commits[step["version"]].info["readVersion"]
        assert seen >= before, step


def changes_are_what_differs_from_version_to_version(history: History) -> None:
    by_version: dict[int, dict[str, list[Row]]] = {v: {"insert": [], "delete": []} for v in history.versions}
    found = history.log.changes(1).to_arrow()
    kinds, versions = found["_change_type"].to_pylist(), found["_commit_version"].to_pylist()
    for row, kind, version in zip(found_rows(found), kinds, versions, strict=True):
        by_version[version][kind].append(row)
    for version in list(history.versions)[1:]:
        before, after = set(history.versions[version - 1]), set(history.versions[version])
        assert sorted(by_version[version]["insert"]) == sorted(after - before), version
        assert sorted(by_version[version]["delete"]) == sorted(before - after), version


def rows_keep_the_ids_that_they_were_given(history: History) -> None:
    ids: dict[str, tuple[int, int]] = {}
    for version in range(0, len(history.versions), 3):
        scan = history.log.snapshot(version=version).scan(metadata_columns=["row_id", "row_commit_version"])
        found = scan.to_arrow()
        given = zip(*(pc.struct_field(found["_metadata"], n).to_pylist() for n in (0, 1)), strict=True)
        for tag, row_id in zip(found["tag"].to_pylist(), given, strict=True):
            assert ids.setdefault(tag, row_id) == row_id, (version, tag)
            assert tag in {row[0] for row in history.versions[row_id[1]]}, (version, tag)
    assert len({row_id for row_id, _ in ids.values()}) == len(ids)
    marks = [
        json.loads(b["configuration"]) for c in history.plain.commits for b in c.bodies("domainMetadata")
    ]
    assert marks == sorted(marks, key=lambda mark: mark["rowIdHighWaterMark"])


def times_of_commits_increase(history: History) -> None:
    times = [commit.info["inCommitTimestamp"] for commit in history.plain.commits]
    assert times == sorted(set(times))


def every_refusal_has_the_name_and_the_winner_that_explain_it(history: History) -> None:
    for step in history.steps:
        if "error" in step:
            _check_refusal(history, step)


def _check_refusal(history: History, step: Step) -> None:
    refused, error = from_json(step["operation"]), step["error"]
    winning = history.tried()[step["winner"]]
    winner = from_json(winning["operation"])
    where = (history.level, step["text"], winner)
    assert winning["ended"] > step["began"], where
    if error == "MetadataChangedException":
        assert winner.kind == SET, where
        return
    assert error in DATA_CONFLICTS, where
    assert not refused.is_blind, where
    commit = history.plain.commits[step["winner"]]
    touched = commit.adds if error == "ConcurrentAppendException" else commit.removes
    parts = {int(file["partitionValues"]["part"]) for file in touched.values()}
    assert any(_looks_at(refused, part) for part in parts), where
    if history.level == "WriteSerializable" and error == "ConcurrentAppendException":
        assert winner.kind != APPEND, where


def _looks_at(operation: Operation, part: int) -> bool:
    """Conflicts go by partition, not by row."""
    if operation.kind in (REPLACE, COUNT):
        return part in operation.parts
    return operation.reads(("", part, 0, -1))


def refused_writes_leave_no_file(history: History) -> None:
    folder = Path(history.log.storage.url)
    referenced = {unquote(path) for live in history.plain.live for path in live}
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    referenced |= {unquote(b["path"]) for c in history.plain.commits for b in c.bodies("cdc")}
    assert {path for path in found if not path.startswith("_delta_log")} == referenced
    assert [path for path in folder.rglob(".*")] == []


def checksums_and_checkpoints_are_right(history: History) -> None:
    history.plain.check_checksums()
    last = len(history.plain.commits) - 1
    assert history.plain.check_checkpoints() == list(range(10, last + 1, 10))


def the_load_was_one(history: History) -> None:
    """Whatever the interleaving: appends have come through, properties were set, every partition was written to."""
    kinds = {commit.operation.kind for commit in history.committed()}
    assert {APPEND, SET} <= kinds
    parts = {row[1] for rows in history.versions.values() for row in rows}
    assert parts == set(range(PARTS))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_a_mixed_load_comes_to_what_a_serial_one_would(level: str, tmp_path: Path) -> None:
    print(f"seed={SEED}")
    history = History(tmp_path / "table", level)
    every_version_is_a_commit_that_a_process_knows_of(history)
    every_version_has_the_rows_of_a_serial_replay(history)
    every_version_has_the_properties_that_were_set_last(history)
    the_kernel_reads_versions_as_the_log_has_them(history)
    what_commits_say_of_themselves_is_true(history)
    readers_saw_the_rows_of_one_version_exactly(history)
    nobody_reads_a_version_older_than_one_that_was_there_before(history)
    every_refusal_has_the_name_and_the_winner_that_explain_it(history)
    refused_writes_leave_no_file(history)
    checksums_and_checkpoints_are_right(history)
    the_load_was_one(history)
    if level == "WriteSerializable":
        changes_are_what_differs_from_version_to_version(history)
        rows_keep_the_ids_that_they_were_given(history)
        times_of_commits_increase(history)
