"""VACUUM: what goes, what stays, what is refused, and what the history says."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog, ProgressReport, add_listener
from delta_ds.exceptions import (
    DataFileError,
    InvalidOptionError,
    LogError,
    StorageError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.commands.vacuum import command, vacuum
from delta_ds.kernel.commands.vacuum.candidates import find_candidates
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.vacuum_tables import (
    NOW,
    WEEK,
    add,
    age,
    cdc,
    commit,
    files,
    new_table,
    operations,
    put,
    remove,
    texts_of,
)


def run(table: TableBuilder, hours: float | None = None, **how: Any) -> set[str]:
    """Vacuum a table and return the files that it says it deleted."""
    how = {"now_ms": NOW, "retention_check": False, **how}
    return texts_of(vacuum(DeltaLog(table.path), hours, **how).paths)


def test_files_nobody_needs_go_when_they_are_older_than_the_retention(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for name in ("live", "old", "young", "tombstone", "expired"):
        put(tmp_path, name, 1 if name == "young" else 1000)
    commit(table, 900, add("live"), add("tombstone"), add("expired"))
    commit(table, WEEK + 1, remove("expired", WEEK + 1))
    commit(table, WEEK - 1, remove("tombstone", WEEK - 1))
    assert run(table) == {"old", "expired"}
    assert files(tmp_path) == {"live", "young", "tombstone"}


def test_a_file_exactly_as_old_as_the_retention_stays(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "edge", 10)
    put(tmp_path, "removed", 500)
    commit(table, 400, add("removed"))
    commit(table, 300, remove("removed", 10))
    assert run(table, 10) == set()
    assert run(table, 9.999) == {"edge", "removed"}


def test_the_property_is_the_retention_where_none_is_given(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"delta.deletedFileRetentionDuration": "interval 2 hours"})
    put(tmp_path, "a", 3)
    put(tmp_path, "b", 1)
    assert run(table) == {"a"}


def test_a_dry_run_tells_and_touches_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "p=1/a b")
    (tmp_path / "empty").mkdir()
    age(tmp_path / "empty", 1000)
    result = vacuum(DeltaLog(tmp_path), dry_run=True, now_ms=NOW)
    assert texts_of(result.paths) == {"p=1/a b"}
    assert (result.num_files, result.num_bytes, result.folders, result.num_folders) == (1, 5, ("empty",), 3)
    assert result.dry_run and result.version is None
    assert files(tmp_path) == {"p=1/a b"} and (tmp_path / "empty").exists()
    assert table.version == DeltaLog(tmp_path).snapshot().version
    assert not (tmp_path / "_delta_log" / "_last_vacuum_info").exists()


def test_two_commits_tell_of_it_as_delta_spark_does(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "p=1/a")
    put(tmp_path, "p=2/b", content=b"123")
    result = vacuum(DeltaLog(tmp_path), 0, retention_check=False, now_ms=NOW)
    assert result.version == 2
    start, end = [
        json.loads(table.commit_file(version).read_text().splitlines()[0])["commitInfo"] for version in (1, 2)
    ]
    assert start["operation"] == "VACUUM START"
    assert start["operationParameters"] == {
        "retentionCheckEnabled": False, "defaultRetentionMillis": 604800000, "specifiedRetentionMillis": 0,
    }  # fmt: skip
    assert start["operationMetrics"] == {"numFilesToDelete": "2", "sizeOfDataToDelete": "8"}
    assert end["operation"] == "VACUUM END"
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "2", "numVacuumedDirectories": "3"}
    for info in (start, end):
        assert info["isBlindAppend"] is True and info["isolationLevel"] == "SnapshotIsolation"


def test_without_a_retention_the_history_names_the_default_only(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    run(table, retention_check=True)
    assert [name for name, *_ in operations(tmp_path)] == ["WRITE", "VACUUM START", "VACUUM END"]
    assert operations(tmp_path)[1][1] == {
        "retentionCheckEnabled": "true", "defaultRetentionMillis": "604800000",
    }  # fmt: skip


def test_without_record_nothing_is_committed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "a")
    assert run(table, record=False) == {"a"}
    assert files(tmp_path) == set()
    assert DeltaLog(tmp_path).snapshot().version == 0


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("hours", "how", "condition"),
    [
        (-1, {}, "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"),
        (WEEK - 0.01, {}, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        (0, {"dry_run": True}, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        (-1, {"retention_check": False}, "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"),
        (float("nan"), {}, "DELTA_ILLEGAL_OPTION"),
        (None, {"mode": "LITE"}, "DELTA_ILLEGAL_OPTION"),
        (None, {"mode": "lite", "inventory": []}, "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_what_is_not_safe_is_refused_before_anything_happens(
    tmp_path: Path, hours: float | None, how: dict[str, Any], condition: str
) -> None:
    new_table(tmp_path)
    put(tmp_path, "a")
    with pytest.raises(InvalidOptionError) as error:
        vacuum(DeltaLog(tmp_path), hours, now_ms=NOW, **how)
    assert error.value.condition == condition
    assert files(tmp_path) == {"a"}
    assert DeltaLog(tmp_path).snapshot().version == 0


def test_the_retention_of_the_property_itself_is_long_enough(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "a")
    assert run(table, WEEK, retention_check=True) == {"a"}


def test_a_table_that_cannot_be_written_is_not_vacuumed(tmp_path: Path) -> None:
    new_table(tmp_path, writer_features=["collations", "domainMetadata"])
    put(tmp_path, "a")
    for dry_run in (True, False):
        with pytest.raises(UnsupportedFeatureError, match="collations"):
            vacuum(DeltaLog(tmp_path), now_ms=NOW, dry_run=dry_run)
    assert files(tmp_path) == {"a"}


def test_a_table_with_the_protocol_check_is_vacuumed(tmp_path: Path) -> None:
    table = new_table(
        tmp_path, reader_features=["vacuumProtocolCheck"], writer_features=["vacuumProtocolCheck"]
    )
    put(tmp_path, "a")
    assert run(table) == {"a"}


# ---------------------------------------------------------------- deletion vectors, change files


@pytest.mark.parametrize("storage", ["u", "p"])
def test_the_files_of_deletion_vectors_live_as_long_as_what_names_them(tmp_path: Path, storage: str) -> None:
    table = new_table(tmp_path, reader_features=["deletionVectors"], writer_features=["deletionVectors"])
    vectors, written = [], []
    for row in range(3):
        vectors.append(table.deletion_vector([row], storage))
        written += set(tmp_path.glob("deletion_vector_*")).difference(written)
    for file in written:
        age(file, 1000)
    put(tmp_path, "deletion_vector_orphan.bin")
    put(tmp_path, "a")
    commit(table, 900, add("a"))
    commit(table, 800, remove("a", 800), add("a", deletionVector=vectors[0]))
    commit(table, 700, remove("a", 700, deletionVector=vectors[0]), add("a", deletionVector=vectors[1]))
    commit(table, 5, remove("a", 5, deletionVector=vectors[1]), add("a", deletionVector=vectors[2]))
    assert run(table) == {written[0].name, "deletion_vector_orphan.bin"}
    assert files(tmp_path) == {"a", written[1].name, written[2].name}


def test_vectors_with_a_prefix_and_inline_ones_are_understood(tmp_path: Path) -> None:
    from delta_ds.kernel.format.values.deletion_vector import z85_encode

    table = new_table(tmp_path, reader_features=["deletionVectors"], writer_features=["deletionVectors"])
    name = uuid.uuid4()
    put(tmp_path, f"aB/deletion_vector_{name}.bin")
    put(tmp_path, f"deletion_vector_{name}.bin")
    prefixed = {
        "storageType": "u", "pathOrInlineDv": "aB" + z85_encode(name.bytes), "offset": 1, "sizeInBytes": 1,
        "cardinality": 1,
    }  # fmt: skip
    inline = table.deletion_vector([1], "i")
    commit(table, 500, add("a", deletionVector=prefixed), add("b", deletionVector=inline))
    assert run(table) == {f"deletion_vector_{name}.bin"}


def test_a_vector_that_names_no_file_stops_everything(tmp_path: Path) -> None:
    table = new_table(tmp_path, reader_features=["deletionVectors"], writer_features=["deletionVectors"])
    put(tmp_path, "orphan")
    broken = {"storageType": "u", "pathOrInlineDv": "?", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    commit(table, 500, add("a", deletionVector=broken))
    with pytest.raises(DataFileError):
        run(table)
    assert files(tmp_path) == {"orphan"}
    assert DeltaLog(tmp_path).snapshot().version == 1


def test_change_files_go_when_they_are_old_and_stay_while_their_version_is_young(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for name in ("old", "slow", "staged"):
        put(tmp_path, f"_change_data/{name}.parquet", 3 if name == "staged" else 300)
    commit(table, 290, cdc("_change_data/old.parquet"))
    commit(table, 2, cdc("_change_data/slow.parquet"))
    assert run(table) == {"_change_data/old.parquet"}


# ---------------------------------------------------------------- the log and its clocks


def test_removals_without_a_time_keep_their_files_while_their_commit_is_young(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for name in ("a", "b", "c"):
        put(tmp_path, name)
    commit(table, 900, add("a"), add("b"), add("c"))
    commit(table, 800, remove("a", None))
    commit(table, 3, remove("b", None), remove("c", 300))
    assert run(table) == {"a"}


@pytest.mark.parametrize("kind", ["v1", "multi-part", "v2-parquet", "v2-json"])
def test_removals_in_checkpoints_count(tmp_path: Path, kind: Any) -> None:
    features = ["v2Checkpoint"] if kind.startswith("v2") else None
    table = new_table(tmp_path, reader_features=features, writer_features=features)
    for name in ("live", "young", "old", "orphan"):
        put(tmp_path, name)
    commit(table, 900, *(add(name) for name in ("live", "young", "old")))
    # Dated by a clock that is ahead: only the tombstone itself tells that its file must stay.
    commit(table, 300, remove("young", 1), remove("old", 300))
    table.checkpoint(kind)
    for version in (0, 1):
        table.commit_file(version).unlink()
    assert run(table) == {"old", "orphan"}


def without_field(file: Path, action: str, field: str) -> None:
    """Take a field out of the structs of an action in a checkpoint file."""
    found = pq.read_table(file)
    column = found[action].combine_chunks()
    names = [name for name in column.type.names if name != field]
    parts = [column.field(name) for name in names]
    kept = pa.StructArray.from_arrays(parts, names=names, mask=column.is_null())
    place = found.column_names.index(action)
    pq.write_table(found.set_column(place, action, kept), file)


@pytest.mark.parametrize("kind", ["v1", "multi-part", "v2-parquet"])
@pytest.mark.parametrize("again", [False, True])
def test_removals_in_a_checkpoint_without_times_are_as_old_as_the_checkpoint(
    tmp_path: Path, kind: Any, again: bool
) -> None:
    table = new_table(tmp_path, reader_features=["v2Checkpoint"], writer_features=["v2Checkpoint"])
    for name in ("live", "gone", "orphan"):
        put(tmp_path, name)
    commit(table, 900, add("live"), add("gone"))
    commit(table, 300, remove("gone", 300))
    for file in table.checkpoint(kind):
        if "remove" in pq.read_schema(file).names:
            without_field(file, "remove", "deletionTimestamp")
        age(file, 100)
    for version in range(table.version):
        table.commit_file(version).unlink()
    if again:
        # The next checkpoint knows no more, and must not say that they were removed long ago.
        newest = DeltaLog(tmp_path).write(pa.table({"id": [1]}))
        age(table.commit_file(newest), 50)
        snapshot = DeltaLog(tmp_path).open_snapshot()
        write_checkpoint(snapshot.storage, snapshot.segment, now_ms=NOW)
    assert run(table, 101) == {"orphan"}
    assert run(table, 99) == {"gone"}


def test_removals_in_a_checkpoint_without_paths_stop_vacuum(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for name in ("live", "gone"):
        put(tmp_path, name)
    commit(table, 900, add("live"), add("gone"))
    commit(table, 300, remove("gone", 1))
    for file in table.checkpoint("v1"):
        without_field(file, "remove", "path")
    for version in range(table.version):
        table.commit_file(version).unlink()
    assert DeltaLog(tmp_path).open_snapshot().live_files().num_rows == 1
    with pytest.raises(LogError, match="remove column of checkpoint file .*checkpoint.parquet"):
        run(table)
    assert files(tmp_path) == {"live", "gone"}


def test_an_unreadable_checkpoint_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = new_table(tmp_path)
    for name in ("live", "young", "old"):
        put(tmp_path, name)
    commit(table, 900, *(add(name) for name in ("live", "young", "old")))
    commit(table, 300, remove("young", 1), remove("old", 300))
    for file in table.checkpoint("v1"):
        file.write_bytes(b"PAR1 damaged PAR1")
    assert run(table) == {"old"}
    assert "checkpoint_passed_over" in caplog.text


def test_a_file_that_was_restored_stays(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "a")
    commit(table, 900, add("a"))
    commit(table, 800, remove("a", 800))
    commit(table, 700, add("a"))
    assert run(table) == set()


def test_a_commit_that_brings_a_file_back_while_vacuum_looks_saves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "back")
    put(tmp_path, "gone")
    commit(table, 900, add("back"), add("gone"))
    commit(table, 800, remove("back", 800), remove("gone", 800))

    def restore(*listed: Any) -> Any:
        DeltaLog(tmp_path).start_transaction().add(add("back")["add"]).commit("RESTORE")
        return find_candidates(*listed)

    monkeypatch.setattr(command, "find_candidates", restore)
    result = vacuum(DeltaLog(tmp_path), now_ms=NOW)
    assert texts_of(result.paths) == {"gone"}
    assert files(tmp_path) == {"back"}
    assert operations(tmp_path)[-1][2]["numDeletedFiles"] == "1"


# ---------------------------------------------------------------- failures


def test_a_deletion_that_fails_is_recorded_and_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_table(tmp_path)
    put(tmp_path, "a")
    log = DeltaLog(tmp_path)

    def refuse(paths: Any) -> None:
        raise StorageError("cannot delete: read-only")

    monkeypatch.setattr(log.storage, "delete", refuse)
    with pytest.raises(StorageError, match="read-only"):
        vacuum(log, now_ms=NOW)
    assert operations(tmp_path)[-1] == ("VACUUM END", {"status": "FAILED"}, {})
    assert not (tmp_path / "_delta_log" / "_last_vacuum_info").exists()


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("mode", ["full", "lite"])
@pytest.mark.parametrize("phase", ["listing", "start", "half", "deleted", "end", "mark"])
def test_a_crash_at_any_phase_leaves_a_table_that_the_next_vacuum_cleans(
    tmp_path: Path, phase: str, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    rows = table.write_file(pa.table({"id": [1, 2, 3]}), path="live")
    age(tmp_path / "live", 1000)
    names = [f"old-{i:04d}" for i in range(1500)]
    for name in names:
        put(tmp_path, name)
    commit(table, 900, rows, *map(add, names))
    commit(table, 800, *(remove(name, 800) for name in names))
    log = DeltaLog(tmp_path)
    _crash_at(phase, log, monkeypatch)
    with pytest.raises(Crash):
        vacuum(log, now_ms=NOW, mode=mode)
    monkeypatch.undo()
    again = DeltaLog(tmp_path)
    assert again.snapshot().scan().to_arrow().to_pydict() == {"id": [1, 2, 3]}
    vacuum(again, now_ms=NOW, mode=mode)
    assert files(tmp_path) == {"live"}
    assert again.snapshot().scan().to_arrow().to_pydict() == {"id": [1, 2, 3]}


def _crash_at(phase: str, log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_ds.kernel.commands.vacuum import candidates, command

    def crash(*args: Any, **kwargs: Any) -> None:
        raise Crash

    storage = log.storage
    delete = storage.delete

    def delete_half(paths: Any) -> None:
        delete(list(paths)[: len(paths) // 2])
        raise Crash

    def delete_then_crash(*args: Any, **kwargs: Any) -> None:
        delete_files(*args, **kwargs)
        if len(args[1]):
            raise Crash

    delete_files = command.delete_files
    starts = {"start": 1, "end": 2}
    begin = log.start_transaction
    begun: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        begun.append(1)
        if len(begun) == starts.get(phase):
            raise Crash
        return begin(*args, **kwargs)

    if phase == "listing":
        monkeypatch.setattr(command, "needed_paths", crash)
    elif phase == "half":
        monkeypatch.setattr(storage, "delete", delete_half)
    elif phase == "deleted":
        monkeypatch.setattr(command, "delete_files", delete_then_crash)
    elif phase == "mark":
        monkeypatch.setattr(candidates, "write_mark", crash)
    else:
        monkeypatch.setattr(log, "start_transaction", counted)


def test_progress_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(2500):
        put(tmp_path, f"p={number % 3}/{number}")
    told: list[Any] = []
    with add_listener(lambda report: told.append(report) if isinstance(report, ProgressReport) else None):
        run(table)
    listing, deleting = ([each for each in told if each.phase == name] for name in ("listing", "deleting"))
    assert listing[-1].done > 2500 and listing[-1].total is None and listing[-1].finished
    assert (deleting[-1].done, deleting[-1].total, deleting[-1].finished) == (2500, 2500, True)
    assert [each.done for each in deleting] == sorted(each.done for each in deleting)


def test_a_table_in_an_object_store_is_vacuumed(tmp_path: Path) -> None:
    log = DeltaLog(f"memory://vacuum-{uuid.uuid4()}/t 1")
    log.write(pa.table({"id": [1], "p": ["a b"]}), options={"partitionBy": "p"})
    log.write(pa.table({"id": [2], "p": ["c%20d"]}), mode="overwrite")
    log.storage.write("_x/hidden", b"1")
    later = NOW + 10 * 365 * 24 * 3_600_000
    result = vacuum(log, 0, retention_check=False, now_ms=later)
    (path,) = texts_of(result.paths)
    assert path.startswith("p=a b/part-")
    assert result.num_folders == 3
    assert log.snapshot().scan().to_arrow().to_pydict() == {"id": [2], "p": ["c%20d"]}
    assert log.storage.read("_x/hidden") == b"1"
    assert not log.storage.exists(path)


def test_files_of_unknown_age_stay(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(tmp_path, "a")
    os.utime(tmp_path / "a", ns=(0, 0))
    assert run(table) == set()
