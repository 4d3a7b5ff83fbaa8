"""Streams drained by threads: order, bound, errors, early ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.kernel.files.read.data_file import Batches
from delta_ds.kernel.files.read.reader import in_order
from spark_tests.full_form import examples


def _stream(first: int, count: int, error: Exception | None = None) -> Batches:
    for number in range(first, first + count):
        yield pa.record_batch({"x": [number] * 10})
    if error is not None:
        raise error


def _streams(lengths: list[int]) -> list[Callable[[], Batches]]:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [partial(_stream, start, count) for start, count in zip(starts, lengths, strict=True)]


@given(
    lengths=st.lists(st.integers(0, 5), max_size=8),
    workers=st.integers(1, 4),
    max_bytes=st.sampled_from([0, 80, 400, float("inf")]),
)
@settings(max_examples=examples(100), deadline=None)
def test_batches_come_in_the_order_of_the_streams(lengths: list[int], workers: int, max_bytes: float) -> None:
    found = [batch["x"][0].as_py() for batch in in_order(_streams(lengths), workers, max_bytes)]
    assert found == list(range(sum(lengths)))


def test_threads_wait_where_no_more_may_be_held() -> None:
    made = []

    def stream(number: int) -> Batches:
        for _ in range(20):
            made.append(number)
            yield pa.record_batch({"x": pa.array([number] * 10, pa.int64())})  # 80 bytes

    batches = in_order([partial(stream, number) for number in range(3)], 2, 400)
    next(batches)
    time.sleep(0.2)
    # Held at most 400 bytes and the batch of each thread, beside the one that was taken.
    assert len(made) <= 1 + 5 + 2
    assert sum(1 for _ in batches) == 59


def test_error_comes_at_its_turn_and_threads_end() -> None:
    streams = [partial(_stream, 0, 3), partial(_stream, 3, 1, ValueError("mine")), partial(_stream, 4, 100)]
    taken: list[int] = []
    with pytest.raises(ValueError, match="mine"):
        taken.extend(batch["x"][0].as_py() for batch in in_order(streams, 2, 200))
    assert taken == [0, 1, 2, 3]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("delta_ds-read")]


def test_closing_early_ends_the_threads_and_closes_the_streams() -> None:
    begun, closed = [], []

    def stream(number: int) -> Batches:
        begun.append(number)
        try:
            yield from _stream(0, 100)
        finally:
            closed.append(number)

    batches = in_order([partial(stream, number) for number in range(5)], 2, 100)
    next(batches)
    batches.close()
    # The second thread may not have had its turn yet.
    assert sorted(begun) in ([0], [0, 1])
    assert sorted(closed) == sorted(begun)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("delta_ds-read")]


def test_a_program_may_end_with_batches_left() -> None:
    program = """
import pyarrow as pa
from delta_ds.kernel.files.read.reader import in_order
def stream():
    for _ in range(1000):
        yield pa.record_batch({"x": [1]})
batches = in_order([stream] * 4, 2, 1)
next(batches)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=180)
