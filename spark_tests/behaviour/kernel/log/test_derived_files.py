"""What is derived from the commits never changes what is read, whoever writes or deletes it, and whenever."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import pickle
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.dml.commit import DmlCommand, commit_dml
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log import cache, checkpoint_adds, live_files, parts
from delta_ds.kernel.log.checkpoint_files import (
    CheckpointReplacedError,
    UnreadableCheckpointError,
)
from delta_ds.kernel.log.parts import Part, parts_for_tasks
from delta_ds.kernel.log.reconcile import select
from delta_ds.kernel.log.replay import load_head
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage import local
from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.records import replace
from delta_ds.spark.engines.large_tables import needed_in_parts
from spark_tests.behaviour.kernel.log.derived_files import DerivedTable, ids, put_in_place
from spark_tests.full_form import examples

GONE = "DELTA_LOG_FILE_NOT_FOUND"
KINDS = {
    "classic": {},
    "columns": {
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "true",
    },
    "v2": {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": "true"},
    "vectors": {"delta.enableDeletionVectors": "true"},
}


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_ROWS", 6)
        patch.setattr(checkpoint_adds, "_TEXT_ROWS", 2)
        patch.setattr(parts, "TASK_ROWS", 4)
        patch.setattr(live_files, "_TEXT_ROWS", 2)
        patch.setenv("DELTA_DS_CACHE", "off")
        yield


@contextlib.contextmanager
def no_etags() -> Iterator[None]:
    """Local files as of a store that tells sizes and times only, those to ten minutes."""
    told = local._file_status

    def without(path: str, found: os.stat_result) -> FileStatus:
        status = told(path, found)
        return replace(status, etag=None, modified_ms=status.modified_ms // 600_000 * 600_000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_file_status", without)
        yield


@contextlib.contextmanager
def place(kind: str) -> Iterator[str]:
    """Where a table is: a local folder, one of a store without etags, memory."""
    if kind == "memory":
        path = f"memory://{uuid.uuid4().hex}/t"
        yield path
        fsspec.filesystem("memory").rm(path.removeprefix("memory:/").rpartition("/")[0], recursive=True)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        no_etags() if kind == "no etags" else contextlib.nullcontext(),
    ):
        yield f"{folder}/t"


def looked_at(snapshot: Snapshot, how: str) -> Snapshot:
    """A snapshot that has read so much of its files."""
    if how == "loaded":
        snapshot.live_files()
    elif how == "filtered":
        ids(snapshot, "id = 201")
    elif how == "statistics":
        Scan(snapshot, "id = 201").pruning  # noqa: B018
    return snapshot


def derive(table: DerivedTable, what: str, random: Random) -> None:
    if what == "checkpoint":
        table.checkpoint()
    elif what == "older checkpoint":
        with contextlib.suppress(DeltaError):  # of a version that is cleaned up
            table.checkpoint(random.randint(0, table.version))
    elif what == "shuffled":
        for path in table.checkpoint_files():
            table.shuffle(path, random)
    elif what == "compacted":
        first = random.randint(0, table.version)
        with contextlib.suppress(FileNotFoundError):
            table.compact(first, random.randint(first, table.version))
    elif what == "parts":
        table.split(random)
    elif what == "hint":
        table.hint(random)
    else:
        getattr(table, what)()


DERIVED = [
    "checkpoint", "checkpoint", "older checkpoint", "shuffled", "shuffled", "compacted", "parts", "hint", "clean",
    "forget_checkpoints", "forget_older_checkpoints", "forget_checksums",
]  # fmt: skip
LOOKS = ["opened", "loaded", "filtered", "statistics"]


@functools.cache
def _template(kind: str) -> DerivedTable:
    """Six files and a checkpoint, of which a row was deleted since."""
    table = DerivedTable(tempfile.mkdtemp() + "/t", **KINDS[kind])
    for number in range(6):
        table.append(*range(number * 100, number * 100 + 2 * number + 1))
    table.checkpoint()
    table.delete(200)
    return table


@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["local", "local", "no etags", "memory"]),
    st.lists(
        st.sampled_from(["append", "delete", "open", "open", "read"]) | st.sampled_from(DERIVED),
        min_size=3,
        max_size=8,
    ),
    st.integers(0, 1 << 32).map(Random),
    st.booleans(),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_version_reads_the_same_before_between_and_after(
    kind: str, where: str, steps: list[str], random: Random, cached: bool
) -> None:
    with place(where) as path, tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if cached:
            patch.setenv("DELTA_DS_CACHE", f"{folder}/cache")
            patch.setattr(cache, "_WORTHWHILE_FILES", 0)
        table = _template(kind).copied_to(path)
        held: list[Snapshot] = []
        cleaned = False
        text = kind != "columns"
        for step in steps:
            if step == "append":
                table.append(table.version * 100 + 1000, table.version * 100 + 1001)
            elif step == "delete":
                table.delete(random.choice(table.rows[-1]))
            elif step == "open":
                held.append(looked_at(DeltaLog(path).open_snapshot(), random.choice(LOOKS)))
            elif step != "read":
                cleaned = cleaned or step == "clean"
                derive(table, step, random)
            for snapshot in held if step == "read" else random.sample(held, min(len(held), 1)):
                check(table, snapshot, stats=text, may_be_gone=cleaned)
        for snapshot in [*held, DeltaLog(path).open_snapshot()]:
            check(table, snapshot, stats=text, may_be_gone=cleaned)


def check(table: DerivedTable, snapshot: Snapshot, *, stats: bool, may_be_gone: bool) -> None:
    """What is read is right; or the log was cleaned, and the error says so."""
    try:
        table.check(snapshot, stats=stats)
    except DeltaError as error:
        assert may_be_gone, error
        assert snapshot.version < table.version
        assert error.condition == GONE, error


@pytest.mark.parametrize("kind", ["classic", "columns", "v2"])
@pytest.mark.parametrize("look", ["loaded", "filtered"])
@pytest.mark.parametrize("where", ["local", "no etags"])
def test_a_checkpoint_of_the_same_size_time_and_footer_is_noticed(
    where: str, kind: str, look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By snapshots that were read before, and by those that come from the cache, whose key is the same."""
    monkeypatch.setenv("DELTA_DS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_WORTHWHILE_FILES", 0)
    with place(where) as path:
        table = _template(kind).copied_to(path)
        table.shuffle_unnoticed(Random(1))
        _set_times(table)
        before = [(status.size, status.modified_ms) for status in _statuses(table)]
        snapshot = looked_at(DeltaLog(path).open_snapshot(), look)
        for seed in range(2, 4):
            table.shuffle_unnoticed(Random(seed))
            _set_times(table)
            assert [(status.size, status.modified_ms) for status in _statuses(table)] == before
            for read in (snapshot, DeltaLog(path).open_snapshot()):
                table.check(read, stats=kind != "columns")


def test_a_checkpoint_that_another_machine_has_seen_is_the_same_by_its_rows(tmp_path: Path) -> None:
    """Of local files etags belong to a mount: there it is another one."""
    table = _template("classic").copied_to(f"{tmp_path}/t")
    table.shuffle_unnoticed(Random(1))
    _set_times(table)
    snapshot = DeltaLog(table.path).open_snapshot()
    files = snapshot.live_files().parts[2]
    assert files is not None and files.are_certain
    ((name, seen),) = files.seen.items()
    files.seen[name] = replace(seen, machine="another", status=replace(seen.status, etag="its own"))
    table.check(snapshot)
    assert not files.are_certain
    table.shuffle_unnoticed(Random(2))
    _set_times(table)
    table.check(snapshot)
    table.check(DeltaLog(table.path).open_snapshot())


def _set_times(table: DerivedTable) -> None:
    for name in table.checkpoint_files():
        os.utime(f"{table.path}/{name}", (1_750_000_000, 1_750_000_000))


def _statuses(table: DerivedTable) -> list[FileStatus]:
    return [table.storage.status(path) for path in table.checkpoint_files()]


@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["local", "no etags"]),
    st.sampled_from(["checkpoint", "shuffled", "parts", "forget_checkpoints"]),
    st.integers(0, 1 << 32).map(Random),
)
@settings(max_examples=examples(12), deadline=None)
def test_a_change_that_began_before_takes_no_other_rows_and_commits_no_other_statistics(
    kind: str, where: str, derived: str, random: Random
) -> None:
    with place(where) as path:
        table = _template("vectors" if kind == "classic" else kind).copied_to(path)
        snapshot = DeltaLog(path).open_snapshot()
        gone = random.choice([n for n in table.rows[-1] if n not in (0, 100)])
        ((name, row),) = _places(snapshot, gone)
        derive(table, derived, random)
        rows = np.array([row], np.uint64)
        if kind in ("classic", "vectors"):
            commit_dml(snapshot, DmlCommand("DELETE", deleted={name: rows}))
            table.committed([n for n in table.rows[-1] if n != gone])
        else:
            table.delete(gone)
        for _ in range(2):
            table.check(DeltaLog(path).open_snapshot(), stats=kind != "columns")
            derive(table, "checkpoint", random)


def _places(snapshot: Snapshot, number: int) -> list[tuple[str, int]]:
    """The file, as the log names it, and the position of each row with an id."""
    paths = snapshot.live_files().table["path"].to_pylist()
    found = (
        Scan(snapshot, f"id = {number}", metadata_columns=("file_path", "row_index")).to_arrow().to_pylist()
    )
    return [
        (next(p for p in paths if row["_metadata"]["file_path"].endswith(p)), row["_metadata"]["row_index"])
        for row in found
    ]


# ---------------------------------------------------------------- in other processes


def _in_parts(snapshot: Snapshot, meanwhile: Callable[[], None]) -> list[str]:
    """The live files of a version as tasks find them, something being done once half of them have."""
    head = load_head(snapshot.storage, snapshot.segment)
    assert head.older is not None

    def in_another_process(files_of: Callable[[Part], pa.Table], parts: list[Part]) -> Iterator[pa.Table]:
        files_of, parts = pickle.loads(pickle.dumps((files_of, parts)))
        for number, part in enumerate(parts):
            if number == len(parts) // 2:
                meanwhile()
            yield files_of(part)

    in_tasks = parts_for_tasks(snapshot.storage, head.older.checkpoint)
    found = [*select(head.older, in_tasks, None, in_another_process, statistics=True), head.state.files.table]
    return sorted(path for files in found for path in files["path"].to_pylist())


@pytest.mark.parametrize("where", ["local", "no etags", "memory"])
@pytest.mark.parametrize("kind", ["classic", "columns", "v2"])
@pytest.mark.parametrize("derived", ["shuffled", "parts", "checkpoint"])
def test_parts_of_two_writings_of_a_checkpoint_are_not_mixed(kind: str, where: str, derived: str) -> None:
    with place(where) as path:
        table = _template(kind).copied_to(path)
        table.checkpoint()
        for file in table.checkpoint_files():
            table.shuffle(file, Random(1), row_group_size=2)
        snapshot = DeltaLog(path).open_snapshot()
        live = sorted(snapshot.live_files().table["path"].to_pylist())
        assert _in_parts(snapshot, lambda: None) == live
        try:
            found = _in_parts(snapshot, lambda: derive(table, derived, Random(9)))
        except UnreadableCheckpointError as error:
            assert derived == "parts" or isinstance(error, CheckpointReplacedError)
        else:
            assert found == live
            assert kind == "v2" and derived != "shuffled"


def test_vacuum_in_parts_refuses_parts_of_another_writing() -> None:
    with place("local") as path:
        table = _template("classic").copied_to(path)
        table.checkpoint()
        for file in table.checkpoint_files():
            table.shuffle(file, Random(1), row_group_size=2)
        snapshot = DeltaLog(path).open_snapshot()

        def meanwhile(function: Callable[[Part], pa.Table], parts: list[Part]) -> Iterator[pa.Table]:
            table.checkpoint()
            return map(function, pickle.loads(pickle.dumps(parts)))

        with pytest.raises(CheckpointReplacedError):
            needed_in_parts(snapshot, list_log(snapshot.storage), 0, meanwhile)


# ---------------------------------------------------------------- meanwhile


def _meanwhile(patch: pytest.MonkeyPatch, number: int, action: Callable[[], None], *, before: bool) -> None:
    """Do something once, just before or after a file of the log is opened or read, so many having been before it."""
    count = itertools.count()

    def patched(name: str) -> None:
        original: Callable[[LocalStorage, str], Any] = getattr(LocalStorage, name)

        def call(self: LocalStorage, path: str) -> Any:
            now = path.startswith("_delta_log") and next(count) == number
            if now and before:
                action()
            found = original(self, path)
            if now and not before:
                action()
            return found

        patch.setattr(LocalStorage, name, call)

    patched("open")
    patched("read")


def _cleaned(table: DerivedTable) -> None:
    table.checkpoint()
    table.clean()


def _in_place(table: DerivedTable) -> None:
    for path in table.checkpoint_files():
        table.shuffle(path, Random(5), put_in_place(table))


MEANWHILE: dict[str, Callable[[DerivedTable], None]] = {
    "written again": DerivedTable.checkpoint,
    "shuffled": lambda table: derive(table, "shuffled", Random(3)),
    "shuffled in place": _in_place,
    "in parts": lambda table: table.split(Random(2)),
    "with sidecars": lambda table: table.move_to_sidecar(),
    "deleted": DerivedTable.forget_checkpoints,
    "cleaned": _cleaned,
}


@given(
    st.sampled_from(sorted(MEANWHILE)),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["local", "no etags"]),
    st.sampled_from(LOOKS),
    st.integers(0, 8),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_checkpoint_that_is_written_again_while_it_is_read_gives_right_rows(
    meanwhile: str, kind: str, where: str, how: str, number: int, before: bool, newest: bool
) -> None:
    with place(where) as path:
        table = _template(kind).copied_to(path)
        if newest:
            table.checkpoint()
        snapshot = looked_at(DeltaLog(path).open_snapshot(), how)
        with pytest.MonkeyPatch.context() as patch:
            _meanwhile(patch, number, lambda: MEANWHILE[meanwhile](table), before=before)
            table.check(snapshot, stats=kind != "columns")
        table.check(snapshot, stats=kind != "columns")


@pytest.mark.parametrize("where", ["local", "no etags"])
def test_one_who_writes_checkpoints_again_all_the_time_changes_no_rows(where: str) -> None:
    with place(where) as path:
        table = _template("classic").copied_to(path)
        table.checkpoint()
        held = [looked_at(DeltaLog(path).open_snapshot(), look) for look in LOOKS]
        stop = threading.Event()

        def write() -> None:
            random = Random(4)
            while not stop.is_set():
                derive(table, random.choice(["checkpoint", "shuffled", "older checkpoint"]), random)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(5):
                for snapshot in [*held, DeltaLog(path).open_snapshot()]:
                    with contextlib.suppress(CheckpointReplacedError):
                        table.check(snapshot)
        finally:
            stop.set()
            writer.join()
        for snapshot in [*held, DeltaLog(path).open_snapshot()]:
            table.check(snapshot)
