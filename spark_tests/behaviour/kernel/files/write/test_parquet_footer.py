"""Footers as trees: what is read can be written again to the byte, and damage is an error."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.kernel.files.write.column_replacement import read_struct, write_struct
from spark_tests.engines.conformance.corpora import corpus


def _footer(data: bytes) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


def test_footers_of_all_writers_are_written_as_they_were_read() -> None:
    files = sorted(corpus("acceptance").rglob("*.parquet"))[:300]
    assert files
    for file in files:
        footer = _footer(file.read_bytes())
        assert write_struct(read_struct(footer)) == footer, file


@given(columns=st.integers(1, 40), groups=st.integers(1, 20), index=st.booleans())
def test_footers_of_any_size(columns: int, groups: int, index: bool) -> None:
    table = pa.table({f"c{n}": [*range(groups)] for n in range(columns)})
    out = io.BytesIO()
    pq.write_table(
        table, out, row_group_size=1, write_page_index=index, sorting_columns=[pq.SortingColumn(0)]
    )
    footer = _footer(out.getvalue())
    assert write_struct(read_struct(footer)) == footer


_VALUES = st.deferred(
    lambda: st.one_of(
        st.tuples(st.just(1), st.booleans()),
        st.tuples(st.just(3), st.integers(0, 255)),
        st.tuples(st.sampled_from([4, 5, 6]), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just(7), st.floats(allow_nan=False)),
        st.tuples(st.just(8), st.binary(max_size=300)),
        st.tuples(st.just(9), st.tuples(st.just(6), st.lists(st.integers(-9, 9), max_size=40))),
        st.tuples(st.just(9), st.tuples(st.just(1), st.lists(st.booleans(), max_size=20))),
        st.tuples(st.just(12), _STRUCTS),
    )
)
_STRUCTS = st.dictionaries(st.integers(1, 60), _VALUES, max_size=5)


@given(value=_STRUCTS)
def test_structs_survive(value: dict[int, tuple[int, object]]) -> None:
    def plain(struct: object) -> object:
        if isinstance(struct, dict):
            # Booleans have their value in their type.
            return {n: (1 if kind in (1, 2) else kind, plain(inner)) for n, (kind, inner) in struct.items()}
        return struct

    assert plain(read_struct(write_struct(value))) == plain(value)


@pytest.mark.parametrize("data", [b"", b"\x18", b"\x18\xff\xff\xff\x0f", b"\x1b\x00", b"\x1c" * 5000])
def test_damage_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="struct of Thrift|no values of the type"):
        read_struct(data)
