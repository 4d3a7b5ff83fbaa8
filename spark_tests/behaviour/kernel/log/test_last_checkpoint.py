"""The checksum of `_last_checkpoint` and how far the hint is believed."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.log.filenames import checksum, read_hint
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import TableBuilder


def test_the_checksum_is_that_of_the_protocol_text():
    hint = json.loads(
        '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], '
        '{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
    )
    assert checksum(hint) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_empty_objects_and_lists_contribute_nothing():
    assert checksum({"a": 1, "b": {}, "c": []}) == checksum({"a": 1})


@pytest.fixture
def table(tmp_path):
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([("id", pa.int64())]))
    for i in range(4):
        builder.append(pa.table({"id": [i]}))
    return builder


def test_a_good_hint_is_believed(table):
    table.checkpoint(version=2)
    assert read_hint(open_storage(table.path)) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"version":"2"}',
        b'{"version":true}',
        b'{"version":-1}',
        b'{"size":1}',
        b'{"version":2,"size":1,"checksum":"00000000000000000000000000000000"}',
        b'{"version":2,"version":3}',
        b"\xff\xfe",
        b'{"version":2,"size":1,"note":"\\ud800","checksum":"00000000000000000000000000000000"}',
        b'{"version":2,"size":1,"\\udfff":{"a":1},"checksum":"00000000000000000000000000000000"}',
    ],
)
def test_a_broken_hint_is_worked_around(table, content):
    table.checkpoint(version=2, hint=False)
    (table.log / "_last_checkpoint").write_bytes(content)
    assert read_hint(open_storage(table.path)) is None
    assert DeltaLog(table.path).snapshot().files().num_rows == 4


@pytest.mark.parametrize("version", [3, 4, 99])
def test_a_hint_at_a_checkpoint_that_is_not_there_is_worked_around(table, version):
    table.checkpoint(version=1)
    table.last_checkpoint(version)
    snapshot = DeltaLog(table.path).snapshot()
    assert (snapshot.version, snapshot.files().num_rows) == (4, 4)


def test_a_stale_hint_finds_the_newer_checkpoint(table):
    table.checkpoint(version=1)
    table.checkpoint(version=3, hint=False)
    snapshot = DeltaLog(table.path).open_snapshot()
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.version == 3
