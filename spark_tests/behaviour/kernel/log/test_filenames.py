"""What the names in `_delta_log` mean."""

from __future__ import annotations

import pytest

from delta_ds.kernel.log.filenames import Kind, parse_name
from delta_ds.kernel.storage.filesystem import FileStatus

V = "00000000000000000007"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def parse(name: str):
    return parse_name(FileStatus(f"_delta_log/{name}", 1, 1))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{V}.json", Kind.COMMIT),
        (f"{V}.crc", Kind.CHECKSUM),
        (f"{V}.checkpoint.parquet", Kind.CHECKPOINT),
        (f"{V}.checkpoint.{UUID}.parquet", Kind.CHECKPOINT),
        (f"{V}.checkpoint.{UUID}.json", Kind.CHECKPOINT),
        (f"{V}.checkpoint.0000000001.0000000002.parquet", Kind.CHECKPOINT),
    ],
)
def test_known_names_are_parsed(name, kind):
    file = parse(name)
    assert file is not None
    assert (file.kind, file.version) == (kind, 7)


def test_a_compaction_names_both_ends():
    file = parse(f"{V}.00000000000000000011.compacted.json")
    assert file is not None
    assert (file.kind, file.version, file.end) == (Kind.COMPACTION, 7, 11)


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        f".{V}.json.crc",
        f".{V}.json.tmp",
        f"{V}.json.tmp",
        "7.json",
        f"{V}.{UUID}.json",
        f"{V}.checkpoint.parquet.tmp",
        "notes.txt",
    ],
)
def test_staged_temporary_and_foreign_files_are_not_part_of_the_log(name):
    assert parse(name) is None
