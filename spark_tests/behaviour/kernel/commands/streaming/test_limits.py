from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.kernel.commands.streaming.offsets import Admission, ReadLimits, default_limits
from delta_ds.kernel.format.options.stream_read import parse_stream_read_options

SIZES = st.lists(st.integers(0, 50), max_size=20)


def one_by_one(sizes: list[int], limits: ReadLimits) -> int:
    """What delta-spark's `AdmissionLimits.admit` lets in, file by file."""
    files, room, taken = limits.max_files, limits.max_bytes, 0
    for size in sizes:
        if (files is not None and files <= 0) or (room is not None and room <= 0):
            break
        files = None if files is None else files - 1
        room = None if room is None else room - size
        taken += 1
    return taken


@given(SIZES, SIZES, st.none() | st.integers(1, 9), st.none() | st.integers(1, 200))
def test_files_come_until_a_limit_is_used_up(
    first: list[int], second: list[int], files: int | None, size: int | None
) -> None:
    limits = ReadLimits(files, size)
    admission = Admission(limits)
    taken = admission.take(np.array(first, np.int64))
    if taken == len(first):
        taken += admission.take(np.array(second, np.int64))
    assert taken == one_by_one([*first, *second], limits)
    assert taken or not [*first, *second]


def test_what_belongs_together_comes_whole_and_alone_if_it_is_too_large() -> None:
    admission = Admission(ReadLimits(max_files=2))
    assert admission.take_whole(5, 1)
    assert not admission.take_whole(1, 1)
    admission = Admission(ReadLimits(max_files=3, max_bytes=10))
    assert admission.take(np.array([4], np.int64)) == 1
    assert not admission.take_whole(2, 7)
    assert admission.take_whole(2, 6)


def test_bytes_alone_lift_the_default_number_of_files() -> None:
    def limits(**options: str) -> ReadLimits:
        return default_limits(parse_stream_read_options({"path": "/t", **options}))

    assert limits() == ReadLimits(1000, None)
    assert limits(maxBytesPerTrigger="1k") == ReadLimits(None, 1024)
    assert limits(maxBytesPerTrigger="1k", maxFilesPerTrigger="3") == ReadLimits(3, 1024)
