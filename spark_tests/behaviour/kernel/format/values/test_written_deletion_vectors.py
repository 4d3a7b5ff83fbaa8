"""Deletion vectors in files of their own: what is written is read back, and several share a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.kernel.format.values import deletion_vector
from delta_ds.kernel.format.values.deletion_vector import (
    as_action,
    inline,
    merge_positions,
    read_positions,
    write_vectors,
)
from delta_ds.kernel.storage.open import open_storage

_POSITIONS = st.sets(st.integers(0, 1 << 34), min_size=1, max_size=40)


def _array(positions: set[int]) -> np.ndarray:
    return np.array(sorted(positions), np.uint64)


@given(st.dictionaries(st.text("abc/", min_size=1, max_size=5), _POSITIONS, max_size=6))
def test_vectors_are_read_back_whatever_they_delete(tmp_path_factory, deleted) -> None:
    storage = open_storage(tmp_path_factory.mktemp("table"))
    written: list[str] = []

    found = write_vectors(storage, {path: _array(p) for path, p in deleted.items()}, written)

    assert {path: set(read_positions(storage, vector).tolist()) for path, vector in found.items()} == deleted
    assert {path: vector.cardinality for path, vector in found.items()} == {
        p: len(d) for p, d in deleted.items()
    }
    assert len(written) == (1 if deleted else 0)


def test_many_bytes_of_vectors_are_spread_over_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(deletion_vector, "_TARGET_BYTES", 100)
    storage = open_storage(tmp_path)
    written: list[str] = []

    found = write_vectors(storage, {str(n): _array({n, 1 << (n + 20)}) for n in range(10)}, written)

    assert len(written) > 1
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(written)
    assert [read_positions(storage, found[str(n)]).tolist() for n in range(10)] == [
        [n, 1 << (n + 20)] for n in range(10)
    ]


@given(_POSITIONS, _POSITIONS)
def test_a_vector_keeps_what_was_deleted_before(tmp_path_factory, before, more) -> None:
    storage = open_storage(tmp_path_factory.mktemp("table"))

    rows = max(before | more, default=0) + 1
    merged = merge_positions(storage, inline(_array(before)), _array(more), rows)
    assert merged.tolist() == sorted(before | more)
    assert merge_positions(storage, None, _array(more), rows).tolist() == sorted(more)


def test_an_action_leaves_out_what_a_vector_has_not() -> None:
    assert "offset" not in as_action(inline(_array({1, 5})))
