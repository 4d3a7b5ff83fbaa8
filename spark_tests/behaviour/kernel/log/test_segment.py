"""Which files make up a version, and what is refused."""

from __future__ import annotations

import time
from contextlib import suppress

import pyarrow as pa
import pytest

from delta_ds import (
    DeltaLog,
    LogError,
    NotADeltaTableError,
    TruncatedLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from delta_ds.exceptions import DeltaError, StorageError
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.segment import no_rows
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import TableBuilder


@pytest.fixture
def table(tmp_path):
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([("id", pa.int64())]))
    for i in range(1, 6):
        builder.append(pa.table({"id": [i]}))
    return builder


def test_a_folder_of_a_partition_is_told_to_be_a_filter(tmp_path):
    with pytest.raises(NotADeltaTableError, match="load the table itself, and filter by country$"):
        DeltaLog(tmp_path / "sales" / "country=FR").snapshot()


def test_a_path_that_does_not_exist_is_no_table(tmp_path):
    with pytest.raises(NotADeltaTableError, match="nowhere"):
        DeltaLog(tmp_path / "nowhere").snapshot()


def test_a_folder_without_commits_is_no_table(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(NotADeltaTableError, match="no commit"):
        DeltaLog(tmp_path).snapshot()


@pytest.mark.parametrize("place", ["{}", "memory://no-rows{}"])
def test_rows_are_looked_for_in_vain_where_there_is_nothing_or_no_log(tmp_path, place):
    storage = open_storage(place.format(tmp_path / "t"))
    error = no_rows(storage)
    assert isinstance(error, NotADeltaTableError)
    assert (error.condition, error.sql_state) == ("PATH_NOT_FOUND", "42K03")
    assert error.parameters == {"path": storage.url}
    assert "Path does not exist" in error.text and "doesn't exist" in error.text
    storage.write("part-0.parquet", b"x")
    assert no_rows(storage).condition == "DELTA_TABLE_NOT_FOUND"
    said = NotADeltaTableError("as somebody else says")
    assert no_rows(storage, said) is said


def test_rows_of_a_partition_that_is_not_there_are_those_of_its_table(tmp_path):
    assert no_rows(open_storage(str(tmp_path / "country=DE"))).text.endswith("and filter by country")


@pytest.mark.parametrize("version", [-1, 6])
def test_a_version_out_of_range_names_the_range(table, version):
    with pytest.raises(VersionNotFoundError, match=r"\[0, 5\]"):
        DeltaLog(table.path).snapshot(version)


@pytest.mark.parametrize("hint", [True, False])
@pytest.mark.parametrize("first", [0, 3])
def test_the_range_that_is_named_does_not_depend_on_the_checkpoint_that_is_found(table, hint, first):
    """Nor on `_last_checkpoint`: what it leads past can be read, too."""
    for version in (3, 4):
        table.checkpoint(version=version, hint=hint)
    for version in range(first):
        table.commit_file(version).unlink()
    readable = []
    for version in range(6):
        with suppress(DeltaError):
            readable.append(DeltaLog(table.path).snapshot(version).version)
    assert (readable[0], readable[-1]) == (first, 5)
    for wanted in (-1, 6, 99):
        with pytest.raises(VersionNotFoundError, match=rf"\[{first}, 5\]") as caught:
            DeltaLog(table.path).snapshot(wanted)
        assert (caught.value.parameters["earliest"], caught.value.parameters["latest"]) == (first, 5)


@pytest.mark.parametrize("name", ["commit", "compaction", "manifest"])
@pytest.mark.parametrize("always", [True, False])
def test_a_file_that_comes_shorter_than_it_is_listed_is_not_taken_for_whole(table, name, always, monkeypatch):
    """A proxy may cut it at the end of a line, where nothing else tells."""
    if name == "manifest":
        table.checkpoint("v2-json", version=4)
    if name == "compaction":
        data = b"".join(table.commit_file(version).read_bytes() for version in (2, 3, 4))
        (table.log / f"{2:020d}.{4:020d}.compacted.json").write_bytes(data)
    ending = {"commit": f"{5:020d}.json", "compaction": ".compacted.json", "manifest": ".json"}[name]
    read, cut = LocalStorage.read, []

    def shorter(self, path):
        data = read(self, path)
        if (
            not path.endswith(ending)
            or (name == "manifest" and ".checkpoint." not in path)
            or (cut and not always)
        ):
            return data
        cut.append(path)
        return data[: data.rindex(b"\n", 0, -1) + 1]

    monkeypatch.setattr(LocalStorage, "read", shorter)
    if always:
        with pytest.raises(StorageError, match="came with [0-9]+ bytes"):
            DeltaLog(table.path).open_snapshot().live_files()
    else:
        assert DeltaLog(table.path).open_snapshot().live_files().num_rows == 5
    assert cut


def test_a_gap_is_refused_and_named(table):
    table.commit_file(3).unlink()
    with pytest.raises(VersionsNotContiguousError, match=r"\(2, 4\)"):
        DeltaLog(table.path).snapshot()


def test_a_gap_below_a_checkpoint_is_of_no_matter(table):
    table.checkpoint(version=4)
    table.commit_file(2).unlink()
    assert DeltaLog(table.path).snapshot().files().num_rows == 5


def test_a_log_without_its_start_is_refused(table):
    table.commit_file(0).unlink()
    with pytest.raises(TruncatedLogError, match="version 5"):
        DeltaLog(table.path).snapshot()


def test_a_cleaned_up_version_names_what_is_left(table):
    table.checkpoint(version=3)
    for version in range(3):
        table.commit_file(version).unlink()
    with pytest.raises(VersionNotFoundError, match=r"\[3, 5\]"):
        DeltaLog(table.path).snapshot(1)
    assert DeltaLog(table.path).snapshot(3).files().num_rows == 3


def test_a_checkpoint_without_its_commit_is_refused(table):
    table.checkpoint(version=5)
    table.commit_file(5).unlink()
    with pytest.raises(LogError, match="version 5"):
        DeltaLog(table.path).snapshot()


def test_an_incomplete_multi_part_checkpoint_is_passed_over(table):
    table.checkpoint(version=2)
    table.checkpoint("multi-part", version=4)[0].unlink()
    snapshot = DeltaLog(table.path).open_snapshot()
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.version == 2
    assert Scan(snapshot).files().num_rows == 5


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all"])
def test_a_damaged_checkpoint_is_passed_over_for_the_commits(table, damage):
    table.checkpoint(version=4)[0].write_bytes(damage)
    assert DeltaLog(table.path).snapshot().files().num_rows == 5


def test_a_damaged_checkpoint_without_commits_to_replace_it_is_refused(table):
    (file,) = table.checkpoint(version=4)
    file.write_bytes(file.read_bytes()[:100])
    for version in range(4):
        table.commit_file(version).unlink()
    with pytest.raises(LogError, match="checkpoint"):
        DeltaLog(table.path).snapshot()


def test_compactions_replace_the_commits_they_cover(table):
    file = table.compact(1, 3)
    snapshot = DeltaLog(table.path).open_snapshot()
    assert file.name in [f.path.rsplit("/", 1)[-1] for f in snapshot.segment.commits]
    assert Scan(snapshot).files().num_rows == 5


def test_a_compaction_that_reaches_past_the_version_is_not_used(table):
    table.compact(1, 4)
    assert DeltaLog(table.path).snapshot(2).files().num_rows == 2


def test_a_commit_that_vanishes_while_reading_is_an_error_that_says_so(table):
    snapshot = DeltaLog(table.path).snapshot()
    table.commit_file(3).unlink()
    with pytest.raises(LogError, match="deleted while it was read"):
        snapshot.files()


def test_commits_that_give_way_to_a_checkpoint_while_reading_are_of_no_matter(table):
    snapshot = DeltaLog(table.path).snapshot()
    table.checkpoint(version=4)
    for version in range(4):
        table.commit_file(version).unlink()
    assert snapshot.files().num_rows == 5


@pytest.mark.parametrize("number", [10**12, 2**63 - 1, 10**20 - 1])
@pytest.mark.parametrize(
    "suffix",
    [
        "json",
        "crc",
        "checkpoint.parquet",
        "checkpoint.0000000001.9999999999.parquet",
        "checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        "99999999999999999999.compacted.json",
    ],
)
def test_nothing_grows_with_the_number_in_a_name(table, number, suffix):
    log = DeltaLog(table.path)
    log.write(pa.table({"id": [6]}))
    (table.path / "_delta_log" / f"{number:020d}.{suffix}").write_text('{"commitInfo":{}}\n')
    started = time.monotonic()
    for handle in (log, DeltaLog(table.path)):
        for action in (
            lambda handle: handle.snapshot(),
            lambda handle: handle.snapshot(version=3),
            lambda handle: handle.snapshot(version=number),
            lambda handle: handle.changes(0, number),
            lambda handle: handle.history(),
            lambda handle: vacuum(handle, mode="lite", dry_run=True),
            lambda handle: handle.write(pa.table({"id": [7]})),
            lambda handle: handle.checkpoint(),
        ):
            with suppress(DeltaError):
                action(handle)
    assert time.monotonic() - started < 10


def test_a_hint_with_an_absurd_version_is_of_no_matter(table):
    (table.path / "_delta_log" / "_last_checkpoint").write_text('{"version":1000000000000,"size":1}')
    assert DeltaLog(table.path).snapshot().version == 5
