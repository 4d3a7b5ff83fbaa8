"""Rows on their way from old files to new ones: which batches are joined, and that memory stays bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.optimize import rewriting
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.rewriting import read_rows, rewrite_plan
from delta_ds.kernel.files.read import data_file
from delta_ds.kernel.files.read.data_file import BATCH_ROWS
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.snapshot import open_snapshot
from spark_tests.behaviour.kernel.commands.whole_tables import ids, rows

MIB = 1 << 20


def _batches(log: DeltaLog) -> list[pa.RecordBatch]:
    """What OPTIMIZE reads of a table."""
    snapshot = open_snapshot(log.storage)
    return list(read_rows(rewrite_plan(snapshot, "UTC"), Scan(snapshot).slices()))


def _nested(first: int, texts: pa.Array) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + len(texts)), pa.int64()),
            "s": pa.StructArray.from_arrays([texts], ["t"]),
        }
    )


def test_rows_of_many_small_files_come_in_few_batches(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for first in range(0, 400, 10):
        log.write(ids(*range(first, first + 10)))
    found = _batches(log)
    assert sum(batch.num_rows for batch in found) == 400
    assert len(found) <= 8


def test_small_files_of_many_bytes_of_text_are_not_joined(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    text = pa.array(["x" * 20_000])
    for n, count in enumerate([1, 1000, 1, 1, 1000, 1, 1, 1] + [1] * 32):
        log.write(_nested(n * 1000, text.take(pa.array([0] * count))))
    assert max(file.stat().st_size for file in tmp_path.glob("*.parquet")) < MIB
    before = log.snapshot().scan().to_arrow().sort_by("id")
    found = _batches(log)
    assert sum(batch.num_rows for batch in found) == before.num_rows
    assert sorted(batch.num_rows for batch in found)[-2:] == [1000, 1000]
    assert len(found) < 40
    optimize(log)
    assert log.snapshot().scan().to_arrow().sort_by("id").equals(before)


@pytest.fixture
def gibibytes(tmp_path: Path) -> Iterator[pa.Array]:
    """Two texts of 0.75 GiB, in a file that takes no room: only their lengths may be looked at."""
    size = 768 * MIB
    with open(tmp_path / "texts", "wb") as file:
        file.truncate(2 * size)
    with pa.memory_map(str(tmp_path / "texts")) as source:
        ends = pa.array([0, size, 2 * size], pa.int32()).buffers()[1]
        yield pa.Array.from_buffers(pa.string(), 2, [None, ends, source.read_buffer(2 * size)])


@pytest.mark.parametrize("kind", ["struct", "list"])
def test_batches_that_have_more_than_2_gib_together_stay_as_they_are(
    tmp_path: Path, gibibytes: pa.Array, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = (
        pa.StructArray.from_arrays([gibibytes], ["t"])
        if kind == "struct"
        else pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), gibibytes)
    )
    log = DeltaLog(tmp_path / "table")
    for n in range(16):
        log.write(ids(n))
    batch = pa.record_batch({"id": texts})

    def of_a_file(*_: object) -> Iterator[pa.RecordBatch]:
        yield batch

    monkeypatch.setattr(rewriting, "read_slice", of_a_file)
    assert [found.num_rows for found in _batches(log)] == [2] * 16


def test_a_large_file_of_a_store_is_held_a_row_group_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaLog(tmp_path)
    table = _nested(0, pa.array([f"{n:01000}" for n in range(6000)]))
    log.write(table)
    (file,) = tmp_path.glob("*.parquet")
    pq.write_table(table, file, row_group_size=300, compression="none", use_dictionary=False)
    monkeypatch.setattr(data_file, "is_remote", lambda _: True)
    assert [batch.num_rows for batch in _batches(log)] == [300] * 20


def test_files_whose_size_the_log_gives_as_0_are_rewritten(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for n in range(3):
        log.write(ids(n))
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["size"] = 0
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    log = DeltaLog(tmp_path)
    assert optimize(log).metrics["numFilesRemoved"] == 3
    assert rows(log) == [0, 1, 2]


SIZES = st.tuples(st.sampled_from([1, 2, 500, BATCH_ROWS - 1, BATCH_ROWS]), st.sampled_from([1, 40, 400]))


@settings(deadline=None, max_examples=60)
@given(st.lists(SIZES, max_size=12))
def test_joined_batches_are_the_same_rows_in_order_and_bounded(sizes: list[tuple[int, int]]) -> None:
    batches = [
        pa.record_batch({"s": pa.array([chr(97 + n) * width]).take(pa.array([0] * count))})
        for n, (count, width) in enumerate(sizes)
    ]
    found = list(rewriting._joined(iter(batches)))
    if batches:
        assert pa.Table.from_batches(found).equals(pa.Table.from_batches(batches))
    large = [b for b in batches if b.num_rows >= BATCH_ROWS or b.nbytes >= 16 * MIB]
    assert all(any(b is one for one in found) for b in large)
    for batch in found:
        assert batch.num_rows < 2 * BATCH_ROWS
        assert batch.nbytes < 2 * 16 * MIB or any(batch is one for one in large)
    is_full = [batch.num_rows >= BATCH_ROWS or batch.nbytes >= 16 * MIB for batch in found]
    assert all(one or following for one, following in zip(is_full, is_full[1:], strict=False))
