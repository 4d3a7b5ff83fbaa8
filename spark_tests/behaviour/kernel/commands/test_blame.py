"""Every row names the commit that last wrote it, whatever has copied it since."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    CorruptLogFileError,
    SchemaError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.kernel.commands import blame as commits
from delta_ds.kernel.commands.blame import BLAME_FIELDS, Blame
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    DELETE,
    FIRST_ROWS,
    MERGE,
    OPTIMIZE,
    PURGE,
    UPDATE,
    Choices,
    Command,
    Row,
)
from spark_tests.full_form import examples

TRACKED = {"delta.enableRowTracking": "true"}


def log_at(path: Path) -> DeltaLog:
    """Version 0: ids 1 and 2; version 1: id 3, said to be late."""
    log = DeltaLog(path)
    log.write(pa.table({"id": [1, 2]}), options={**TRACKED, "userMetadata": "first load"})
    log.write(pa.table({"id": [3]}), options={"userMetadata": "late rows"})
    return log


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return log_at(tmp_path / "t")


def versions(log: DeltaLog, **at: Any) -> dict[int, int]:
    found = log.blame(columns=["id"], **at).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["_commit_version"].to_pylist(), strict=True))


def facts(log: DeltaLog, predicate: str) -> dict[str, Any]:
    (row,) = log.blame(predicate).to_arrow().to_pylist()
    return dict(row)


# --- the law

_KINDS = (APPEND, DELETE, UPDATE, MERGE, OPTIMIZE, PURGE, "restore", "overwrite")
_LAYOUTS = st.fixed_dictionaries(
    {
        "delta.enableDeletionVectors": st.sampled_from(["true", "false"]),
        "delta.enableChangeDataFeed": st.sampled_from(["true", "false"]),
        "delta.checkpointInterval": st.sampled_from(["3", "100"]),
    }
)


@given(
    kinds=st.lists(st.sampled_from(_KINDS), min_size=1, max_size=8),
    seed=st.integers(0, 10_000),
    properties=_LAYOUTS,
    partitioned=st.booleans(),
)
@settings(max_examples=examples(25), deadline=None)
def test_each_version_blames_what_a_replay_of_the_commands_says(
    kinds: list[str], seed: int, properties: dict[str, str], partitioned: bool
) -> None:
    """The last version whose operation wrote the values of the row; and a row keeps its id as long as it lives."""
    with TemporaryDirectory() as folder:
        log = DeltaLog(folder)
        row_commands.create(log, {**TRACKED, **properties}, partitioned=partitioned)
        choices = Choices(0, seed)
        replay: dict[int, dict[int, tuple[Row, int]]] = {0: {row[0]: (row, 0) for row in FIRST_ROWS}}
        for number, kind in enumerate(kinds):
            newest = max(replay)
            rows = replay[newest]
            if kind == "restore":
                back = (seed + number) % (newest + 1)
                done = restore(log, version=back)
                version, rows = done.version if done else None, replay[back]
            elif kind == "overwrite":
                version = log.write(row_commands.batch(FIRST_ROWS[: seed % 9]), "overwrite")
                rows = {row[0]: (row, newest + 1) for row in FIRST_ROWS[: seed % 9]}
            else:
                command = choices.command(kind)
                version = row_commands.run(log, command, kind)
                after = command.apply({key: row for key, (row, _) in rows.items()})
                rows = {
                    key: rows[key] if key in rows and rows[key][0] == row else (row, newest + 1)
                    for key, row in after.items()
                }
            if version is not None:
                replay[version] = rows
        for version, rows in replay.items():
            table = log.blame(version=version).to_arrow()
            assert _of(table) == rows
            operations = {entry["version"]: entry["operation"] for entry in log.history()}
            assert table["_commit_operation"].to_pylist() == [
                operations[v] for v in table["_commit_version"].to_pylist()
            ]
            assert len(set(table["_row_id"].to_pylist())) == table.num_rows


def _of(table: pa.Table) -> dict[int, tuple[Row, int]]:
    rows = zip(row_commands.rows_of(table), table["_commit_version"].to_pylist(), strict=True)
    return {row[0]: (row, version) for row, version in rows}


# --- what is told


def test_a_row_tells_its_commit(log: DeltaLog) -> None:
    found = facts(log, "id = 3")
    entry = log.history(1)[0]
    assert list(found) == ["id", *BLAME_FIELDS.names]
    assert (found["id"], found["_row_id"], found["_commit_version"]) == (3, 2, 1)
    assert found["_commit_timestamp"] == entry["timestamp"]
    assert (found["_commit_operation"], found["_commit_user_metadata"]) == ("WRITE", "late rows")
    assert found["_commit_engine_info"] == entry["engineInfo"]
    assert found["_commit_txn_id"] == entry["txnId"]


def test_columns_and_predicate_choose_as_in_a_scan(log: DeltaLog) -> None:
    log.write(pa.table({"id": [4], "text": ["x"]}), options={"mergeSchema": "true"})
    found = log.blame("id > 2", ["text"]).to_arrow()
    assert found["text"].to_pylist() == [None, "x"]
    assert found.column_names[0] == "text" and "id" not in found.column_names
    with pytest.raises(SchemaError, match="did you mean 'text'"):
        log.blame(columns=["txt"])


def test_jobs_and_notebooks_of_other_writers_are_told(log: DeltaLog) -> None:
    rewrite_info(
        log, 1, job={"jobId": "7", "runId": "9", "odd": "x"}, notebook={"notebookId": "12"}, userName="ann"
    )
    found = facts(log, "id = 3")
    assert found["_commit_job"]["jobId"] == "7" and found["_commit_job"]["runId"] == "9"
    assert found["_commit_notebook"] == {"notebookId": "12"}
    assert found["_commit_user_name"] == "ann" and found["_commit_application"] is None


def test_moments_are_those_of_the_history(log: DeltaLog, tmp_path: Path) -> None:
    """In-commit ones too, from the version on that has them; and of files that are older than their predecessor."""
    os.utime(tmp_path / "t/_delta_log" / f"{1:020d}.json", (1, 1))
    set_properties(log, {"delta.enableInCommitTimestamps": "true"})
    log.write(pa.table({"id": [4]}))
    os.utime(tmp_path / "t/_delta_log" / f"{3:020d}.json", (2, 2))
    told = {entry["version"]: entry["timestamp"] for entry in log.history()}
    found = log.blame().to_arrow()
    assert found["_commit_timestamp"].to_pylist() == [told[v] for v in found["_commit_version"].to_pylist()]


# --- what the log does not say


def test_of_a_commit_that_was_cleaned_up_only_the_version_is_known(log: DeltaLog, tmp_path: Path) -> None:
    log.checkpoint()
    (tmp_path / "t/_delta_log" / f"{0:020d}.json").unlink()
    found = facts(log, "id = 2")
    assert found["_commit_version"] == 0 and found["_row_id"] == 1
    assert {found[name] for name in BLAME_FIELDS.names[2:]} == {None}
    assert facts(log, "id = 3")["_commit_operation"] == "WRITE"


def test_a_commit_that_goes_away_while_it_is_read_counts_as_cleaned_up(
    log: DeltaLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.checkpoint()
    real = commits.list_log

    def list_and_clean(storage: Any) -> Any:
        found = real(storage)
        (tmp_path / "t/_delta_log" / f"{0:020d}.json").unlink()
        return found

    monkeypatch.setattr(commits, "list_log", list_and_clean)
    found = log.blame().to_arrow()
    assert found["_commit_operation"].to_pylist() == [None, None, "WRITE"]


def test_a_commit_without_commit_info_has_a_moment_and_no_operation(log: DeltaLog) -> None:
    rewrite_info(log, 1, drop=True)
    found = facts(log, "id = 3")
    assert found["_commit_version"] == 1 and found["_commit_operation"] is None
    assert found["_commit_timestamp"] == log.history(1)[0]["timestamp"]


def test_a_damaged_commit_is_named(log: DeltaLog, tmp_path: Path) -> None:
    log.checkpoint()
    path = tmp_path / "t/_delta_log" / f"{0:020d}.json"
    path.write_text('{"commitInfo": {"operation"')
    assert facts(log, "id = 3")["_commit_version"] == 1  # nobody asked for version 0
    with pytest.raises(CorruptLogFileError, match="00000000000000000000.json"):
        log.blame("id = 1").to_arrow()


def test_only_commits_that_rows_name_are_read(log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4, 9):
        log.write(pa.table({"id": [number]}))
    read: list[int] = []
    real = commits.read_in_batches

    def spy(storage: Any, files: Any) -> Any:
        read.extend(file.version for file in files)
        return real(storage, files)

    monkeypatch.setattr(commits, "read_in_batches", spy)
    log.blame("id = 2 OR id = 6").to_arrow()
    assert sorted(read) == [0, 4]


# --- which tables


def test_a_table_that_does_not_track_rows_is_refused(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}), options={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(UnsupportedOperationError, match=r"delta\.enableRowTracking to true") as caught:
        log.blame()
    assert caught.value.condition == "DELTA_ROW_TRACKING_NOT_ENABLED"


def test_rows_from_before_row_tracking_count_as_written_by_the_backfill(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    set_properties(log, TRACKED)
    log.write(pa.table({"id": [2]}))
    old, new = facts(log, "id = 1"), facts(log, "id = 2")
    assert (old["_commit_operation"], new["_commit_operation"]) == ("ROW TRACKING BACKFILL", "WRITE")
    assert old["_commit_version"] < new["_commit_version"] == log.snapshot().version
    with pytest.raises(UnsupportedOperationError):
        log.blame(version=0)


def test_a_version_of_the_past_is_blamed_as_it_was(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    row_commands.create(log, TRACKED, partitioned=False)
    row_commands.run(log, Command(UPDATE, modulus=2, rest=0), "all")
    assert set(versions(log).values()) == {1}
    assert set(versions(log, version=0).values()) == {0}
    with pytest.raises(VersionNotFoundError):
        log.blame(version=7)


@pytest.mark.parametrize("clone", [shallow_clone, deep_clone])
def test_rows_of_a_clone_count_as_written_by_the_clone(log: DeltaLog, tmp_path: Path, clone: Any) -> None:
    """Ids and versions of the source mean nothing there, also where its files hold them."""
    row_commands_table = DeltaLog(tmp_path / "source")
    row_commands.create(row_commands_table, TRACKED, partitioned=False)
    row_commands.run(row_commands_table, Command(UPDATE, modulus=3, rest=0), "some")
    row_commands.run(row_commands_table, Command(OPTIMIZE), "join")
    target = DeltaLog(tmp_path / "clone")
    clone(row_commands_table, target)
    assert set(versions(target).values()) == {0}
    assert facts(target, "id = 6")["_commit_operation"] == "CLONE"
    row_commands.run(target, Command(UPDATE, modulus=4, rest=0), "own")
    assert versions(target)[4] == 1 and versions(target)[6] == 0


def test_a_restored_row_names_the_commit_that_wrote_it(log: DeltaLog) -> None:
    before = versions(log)
    log.write(pa.table({"id": [9]}), "overwrite")
    restore(log, version=1)
    assert versions(log) == before == {1: 0, 2: 0, 3: 1}


def test_a_column_with_a_name_of_the_answer_is_refused(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "_COMMIT_version": [5]}), options=TRACKED)
    with pytest.raises(SchemaError, match="_COMMIT_version"):
        log.blame()
    assert log.blame("_COMMIT_version = 5", ["id"]).to_arrow()["_commit_version"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("predicate", "columns"), [("id = 1", None), ("_Metadata = 'a'", ["id"]), (None, ["_metadata"])]
)
def test_a_column_named_as_spark_s_metadata_is_refused_where_it_is_read(
    tmp_path: Path, predicate: str | None, columns: list[str] | None
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "_metadata": ["a"]}), options=TRACKED)
    with pytest.raises(SchemaError, match="_metadata"):
        log.blame(predicate, columns)
    assert log.blame("id = 1", ["id"]).to_arrow()["_row_id"].to_pylist() == [0]
    assert log.blame("id = 1", []).to_arrow().column_names == BLAME_FIELDS.names


def test_a_reader_of_slices_can_be_pickled_and_gives_the_same_rows(log: DeltaLog) -> None:
    blame = Blame(log.open_snapshot(), "id > 1")
    reader = pickle.loads(pickle.dumps(blame.reader()))
    found = pa.Table.from_batches(reader.read(log.storage, blame.scan.slices(), "UTC"))
    assert found.equals(log.blame("id > 1").to_arrow())


def test_other_libraries_read_it(log: DeltaLog) -> None:
    assert pa.table(log.blame("id = 3")).equals(log.blame("id = 3").to_arrow())
    assert "Blame(" in repr(log.blame())


def rewrite_info(log: DeltaLog, version: int, *, drop: bool = False, **more: Any) -> None:
    """Change the `commitInfo` of a commit as another writer might have written it."""
    path = Path(log.storage.url) / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"].update(more)
    kept = [action for action in actions if not (drop and "commitInfo" in action)]
    path.write_text("\n".join(map(json.dumps, kept)) + "\n")
