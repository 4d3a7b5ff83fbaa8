"""Assign rows to partitions, without a Python object per row.

Distinct values of a batch are written as text once; partitions are told apart by these texts, as the log tells
them apart, so that all NaN are one partition and -0.0 and 0.0 two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_ds.kernel.files.write.columns import FileColumns
from delta_ds.kernel.files.write.partition_files import Partition
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.format.expressions.arrays import scalar_of
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import INTEGER, StructField
from delta_ds.kernel.format.values.partition_values import (
    directory_text,
    distinct_form,
    log_text,
    partition_folder,
)

Numbers = np.ndarray[Any, Any]
_SPARSE = 4  # more possible combinations per row than this are sorted instead of counted


class PartitionIndex:
    """Numbers the partitions of a task in the order in which they are first seen.

    Attributes
    ----------
    partitions
        By number.
    """

    def __init__(self, plan: WriteSpec, columns: FileColumns) -> None:
        fields = [plan.schema.fields[i] for i in columns.partitions]
        self._columns = [_Column(field, i, plan) for field, i in zip(fields, columns.partitions, strict=True)]
        self._numbers: dict[tuple[int, ...], int] = {}
        self._by_text: dict[tuple[str | None, ...], int] = {}
        self.partitions: list[Partition] = []

    def numbers(self, batch: pa.RecordBatch) -> Numbers:
        """The number of the partition of each row, as int32."""
        coded = [column.codes(batch) for column in self._columns]
        keys, inverse = _combinations([codes for codes, _ in coded], [len(ids) for _, ids in coded])
        by_id = np.stack([ids[keys[:, i]] for i, (_, ids) in enumerate(coded)], axis=1)
        number_of = self._numbers.get
        tuples = list(map(tuple, by_id.tolist()))
        numbers = [number_of(ids) for ids in tuples]
        if None in numbers:
            numbers = [self._number(ids) for ids in tuples]
        return np.asarray(numbers, np.int32)[inverse]

    def _number(self, ids: tuple[int, ...]) -> int:
        number = self._numbers.get(ids)
        if number is None:
            number = self._numbers[ids] = self._new(ids)
        return number

    def _new(self, ids: tuple[int, ...]) -> int:
        texts = [column.texts[i] for column, i in zip(self._columns, ids, strict=True)]
        key = tuple(text for text, _ in texts)
        if key not in self._by_text:
            self._by_text[key] = len(self.partitions)
            named = list(zip((column.name for column in self._columns), texts, strict=True))
            values = {name: text for name, (text, _) in named}
            self.partitions.append(
                Partition(values, partition_folder((name, local) for name, (_, local) in named))
            )
        return self._by_text[key]


def _combinations(codes: Sequence[Numbers], sizes: Sequence[int]) -> tuple[Numbers, Numbers]:
    """The distinct combinations of codes, a row each, and for each row of the batch which it is.

    `sizes` has for each column how many codes there are.
    """
    possible = math.prod(sizes)
    if possible >= 1 << 62:
        rows, inverse = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        return rows, inverse.reshape(-1)
    combined = codes[0]
    for more, size in zip(codes[1:], sizes[1:], strict=True):
        combined = combined * size + more
    distinct, inverse = _distinct(combined, possible)
    return np.stack(np.unravel_index(distinct, sizes), axis=1), inverse


def _distinct(combined: Numbers, possible: int) -> tuple[Numbers, Numbers]:
    """The distinct codes, ascending, and for each row the number of its code among them."""
    if possible > _SPARSE * max(len(combined), 1024):
        return np.unique(combined, return_inverse=True)
    present = np.zeros(possible, np.bool_)
    present[combined] = True
    values = np.flatnonzero(present)
    rank = np.empty(possible, np.int64)
    rank[values] = np.arange(len(values))
    return values, rank[combined]


class _Column:
    """One partition column; its distinct values have ids, by which `texts` has the two texts of each."""

    def __init__(self, field: StructField, index: int, plan: WriteSpec) -> None:
        self.name = physical_name(field, plan.mapping_mode)
        self.texts: list[tuple[str | None, str | None]] = [(None, None)]  # id 0 is null
        self._type = field.type
        self._index = index
        self._ids: dict[Any, int] = {None: 0}
        self._log_text = log_text(field.type)
        self._directory_text = directory_text(field.type, plan.timezone)

    def codes(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """A code per row, from 0 and specific to this batch, and the id that each code stands for."""
        values = distinct_form(batch.column(self._index), self._type)
        if pa.types.is_null(values.type):
            return np.zeros(len(values), np.int64), np.zeros(1, np.int64)
        encoded = values.dictionary_encode()
        distinct = [*encoded.dictionary.to_pylist(), None]
        ids = list(map(self._ids.get, distinct))
        if None in ids:
            ids = [self._id(value) for value in distinct]
        codes = encoded.indices
        if codes.null_count:
            codes = codes.fill_null(scalar_of(len(distinct) - 1, INTEGER))
        numbers = np.frombuffer(codes.buffers()[1], np.int32)[codes.offset : codes.offset + len(codes)]
        return numbers.astype(np.int64), np.asarray(ids, np.int64)

    def _id(self, value: Any) -> int:
        number = self._ids.get(value)
        if number is None:
            text = self._log_text(value)
            local = text if self._directory_text is None else self._directory_text(value)
            number = self._ids[value] = len(self.texts)
            self.texts.append((text, local))
        return number
