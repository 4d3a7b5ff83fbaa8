"""Bin packing: which files are rewritten, and which of them together, in Arrow columns.

Source: delta-spark, `OptimizeExecutor.filterCandidateFileList` and `groupFilesIntoBins`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, flags, integers, numbers
from delta_ds.kernel.commands.optimize.request import OptimizeSettings
from delta_ds.kernel.commands.optimize.zorder_curve import Numbers
from delta_ds.kernel.format.expressions.arrays import TRUE, scalar_of
from delta_ds.kernel.format.schema.types import DOUBLE
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.log.live_files import LiveFiles

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


def has_vector(table: pa.Table) -> Flags:
    """Which files have a deletion vector."""
    found: Flags = flags(table["deletionVector"].is_valid())
    return found


def compaction_candidates(files: LiveFiles, rows: Numbers, settings: OptimizeSettings) -> Numbers:
    """The files worth compacting: small ones, and those with many deleted rows or an unknown number of rows.

    Parameters
    ----------
    rows
        Row numbers into `files.table` to choose from.
    """
    table = files.table.take(integers(rows))
    chosen = numbers(table["size"]) < settings.min_file_size
    asked = has_vector(table) & ~chosen
    if asked.any():
        places = np.flatnonzero(asked)
        chosen[places] = _has_many_deletes(files, rows[places], settings.max_deleted_rows_ratio)
    return rows[chosen]


def _has_many_deletes(files: LiveFiles, rows: Numbers, most: float) -> Flags:
    taken = integers(rows)
    physical = load_statistics(files, taken, []).num_records
    deleted = pc.struct_field(files.table["deletionVector"].take(taken).combine_chunks(), "cardinality")
    share = pc.divide(deleted.cast(pa.float64()), physical.cast(pa.float64()))
    much: Flags = flags(pc.greater(share, scalar_of(most, DOUBLE)).fill_null(TRUE))
    return much


def partition_numbers(table: pa.Table, columns: tuple[str, ...]) -> Numbers:
    """A number for each file, the same for files of one partition, by its texts in the log.

    Parameters
    ----------
    columns
        Physical names of the partition columns.
    """
    codes = np.zeros(table.num_rows, np.int64)
    for name in columns:
        texts = field_of(table["partitionValues"], name).combine_chunks()
        encoded = texts.dictionary_encode(null_encoding="encode")
        own = numbers(encoded.indices.cast(pa.int64()))
        codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)[1].astype(
            np.int64
        )
    return codes


def pack_bins(sizes: Numbers, partitions: Numbers, most: int) -> list[Numbers]:
    """Pack the files of each partition into bins in order, a new bin where the next file would not fit.

    Parameters
    ----------
    sizes, partitions
        Bytes and partition of each file, in the order of packing.
    most
        Bytes of a bin; a file that is larger has one of its own.

    Returns
    -------
    list of numpy.ndarray
        The places of the files of each bin.
    """
    if not len(sizes):
        return []
    order = np.argsort(partitions, kind="stable")
    ends = np.flatnonzero(np.diff(partitions[order])) + 1
    total = np.concatenate([[0], np.cumsum(sizes[order])])
    bins = []
    for start, end in zip([0, *ends], [*ends, len(order)], strict=True):
        while start < end:
            stop = min(end, int(np.searchsorted(total, total[start] + most, side="right")) - 1)
            stop = max(stop, start + 1)
            bins.append(order[start:stop])
            start = stop
    return bins


def by_size(sizes: Numbers) -> Numbers:
    """The order in which small files come first."""
    return np.argsort(sizes, kind="stable").astype(np.int64)
