"""Arrow arrays by their buffers, and what some versions of Arrow do wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import delta_ds
from delta_ds.kernel.base.arrow_buffers import true_rows


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (pa.array([True, None, False, True]), [0, 3]),
        (pa.chunked_array([[True], [], [False, True]]), [0, 2]),
        (pa.chunked_array([], pa.bool_()), []),
        (pa.array([], pa.bool_()), []),
    ],
)
def test_places_of_what_is_true(flags: pa.Array | pa.ChunkedArray, found: list[int]) -> None:
    rows = true_rows(flags)
    assert rows.type == pa.int64()
    assert rows.to_pylist() == found


def test_everybody_asks_for_places_in_this_way() -> None:
    home = Path(delta_ds.__file__).parent
    by_themselves = [
        path.relative_to(home).as_posix()
        for path in home.rglob("*.py")
        if "pc.indices_nonzero(" in path.read_text("utf-8") and path.name != "arrow_buffers.py"
    ]
    assert by_themselves == [], "see arrow_buffers.true_rows: Arrow 25 falls over flags without chunks"
