"""Spark's hash of strings, which assigns actions to the parts of a multi-part checkpoint.

Racing writers of one multi-part checkpoint must make the same parts, so the hash is Spark's own: Murmur3 with
seed 42, and bytes after the last full word mixed in one by one.

Source: PROTOCOL.md, "Multi-part checkpoint"; protocol-checklist CKP-W-18.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_ds.kernel.arrow_buffers import flags

_SEED = 42


def partition_of(columns: Sequence[pa.StringArray], parts: int) -> Any:
    """The number from 0 to `parts` - 1 of each row, as Spark's hash partitioning by some columns gives it.

    Parameters
    ----------
    columns
        Texts of equal length; a null leaves the hash as the columns before it made it.
    """
    seed = np.full(len(columns[0]), _SEED, dtype=np.uint32)
    for column in columns:
        seed = _hash(column, seed)
    return seed.view(np.int32).astype(np.int64) % parts


def _hash(texts: pa.StringArray, seed: Any) -> Any:
    if len(texts) == 0:
        return seed
    valid = flags(texts.is_valid())
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    # Padded, so that the words of short texts at the end may be looked at before they are passed over.
    data = np.concatenate([np.frombuffer(texts.buffers()[2] or b"", np.uint8), np.zeros(8, np.uint8)])
    with np.errstate(over="ignore"):
        hashed = _mix_text(data, starts, lengths, seed)
    return np.where(valid, hashed, seed)


def _mix_text(data: Any, starts: Any, lengths: Any, seed: Any) -> Any:
    out = seed.copy()
    words = lengths // 4
    for index in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > index)
        at = starts[rows] + 4 * index
        word = sum(data[at + i].astype(np.uint32) << np.uint32(8 * i) for i in range(4))
        out[rows] = _mix(out[rows], word)
    for index in range(3):
        rows = np.flatnonzero(lengths % 4 > index)
        byte = data[starts[rows] + 4 * words[rows] + index].view(np.int8).astype(np.int32).view(np.uint32)
        out[rows] = _mix(out[rows], byte)
    return _finish(out, lengths.astype(np.uint32))


def _rotate(values: Any, by: int) -> Any:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))


def _mix(state: Any, word: Any) -> Any:
    mixed = _rotate(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotate(state ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finish(state: Any, length: Any) -> Any:
    state = state ^ length
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))
