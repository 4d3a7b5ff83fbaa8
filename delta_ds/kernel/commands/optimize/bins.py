"""Which files are rewritten, and which of them together, in Arrow columns: bins of files, and Z-cubes.

Z-cubes are files clustered together; full ones are left alone, which makes clustering incremental. A cube is known by
the tags of its files. Files without tags are new; a cube that has not reached its size is clustered again, together
with what is new; a single cube with nothing new is good as it is.

Source: delta-spark, `OptimizeExecutor.filterCandidateFileList` and `groupFilesIntoBins`,
`ClusteringStrategy.applyMinZCube`, `ZCube`; PROTOCOL.md, "Clustered Table" (CLU-W-03, CLU-W-04).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, flags, integers, numbers, texts
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.commands.optimize.request import OptimizeSettings
from delta_ds.kernel.commands.optimize.zorder_curve import Numbers
from delta_ds.kernel.files.write.live_actions import live_adds
from delta_ds.kernel.format.expressions.arrays import TRUE, scalar_of
from delta_ds.kernel.format.schema.types import DOUBLE, LONG, STRING
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.records import dataclass

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


PROVIDER = "liquid"
_ID, _COLUMNS = "ZCUBE_ID", "ZCUBE_ZORDER_BY"


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


@dataclass(frozen=True, slots=True)
class ZCubes:
    """The cubes of the live files, in the order of the files.

    Attributes
    ----------
    ids
        The cube of a file as a number in the order of cube ids; -1 for none.
    same_columns
        Whether the file was clustered by the columns that are wanted now.
    ours
        Whether nobody but this kind of clustering has arranged the file.
    """

    ids: Numbers
    same_columns: Flags
    ours: Flags


@dataclass(frozen=True, slots=True)
class ZCubeStats:
    """Cubes and files that a clustering found and chose: counts, and bytes; as delta-spark reports them."""

    cube_files: tuple[int, int] = (0, 0)
    other_files: tuple[int, int] = (0, 0)
    cubes: int = 0
    merged: tuple[int, int] = (0, 0)


def columns_text(columns: Sequence[str]) -> str:
    """Clustering columns as a tag has them."""
    return json.dumps(list(columns), separators=(",", ":"), ensure_ascii=False)


def new_tags(columns: Sequence[str]) -> dict[str, str]:
    """The tags of a new cube."""
    return {_ID: str(uuid.uuid4()), _COLUMNS: columns_text(columns)}


def kept_tags(snapshot: Snapshot, paths: Sequence[str]) -> list[tuple[dict[str, str], str | None]]:
    """The tags and the clustering provider of some live files, for rewrites that keep the order of rows."""
    found: dict[str, tuple[dict[str, str], str | None]] = {}
    wanted = texts(list(paths))
    for table in live_adds(snapshot):
        chosen = table.filter(pc.is_in(table["path"], value_set=wanted))
        providers = _column(chosen, "clusteringProvider")
        tags = _tags(chosen)
        for path, pairs, provider in zip(
            chosen["path"].to_pylist(), tags.to_pylist(), providers.to_pylist(), strict=True
        ):
            found[path] = dict(pairs or ()), provider
    return [found.get(path, ({}, None)) for path in paths]


def zcubes_of(snapshot: Snapshot, columns: Sequence[str]) -> ZCubes:
    """The Z-cubes of a clustered table, by the tags of its live files.

    Parameters
    ----------
    columns
        The clustering columns, as tags name them.
    """
    parts: list[pa.Table] = []
    for table in live_adds(snapshot):
        tags = _tags(table)
        has_both = pc.and_(_tag(tags, _ID).is_valid(), _tag(tags, _COLUMNS).is_valid())
        columns_found = {
            "path": table["path"].cast(pa.string()),
            "id": pc.if_else(has_both, _tag(tags, _ID), scalar_of(None, STRING)),
            "columns": _tag(tags, _COLUMNS),
            "provider": _column(table, "clusteringProvider"),
        }
        parts.append(pa.table(columns_found))
    live = snapshot.live_files().table
    if not parts:
        return ZCubes(
            np.full(live.num_rows, -1, np.int64), np.ones(live.num_rows, bool), np.ones(live.num_rows, bool)
        )
    found = pa.concat_tables(parts).combine_chunks()
    order = pc.index_in(live["path"], value_set=found["path"].combine_chunks()).combine_chunks()
    found = found.take(order)
    encoded = found["id"].combine_chunks().dictionary_encode()
    rank = (
        pc.rank(encoded.dictionary, tiebreaker="first").cast(pa.int64())
        if len(encoded.dictionary)
        else (integers([]))
    )
    ids = rank.take(encoded.indices).fill_null(scalar_of(-1, LONG))
    wanted = columns_text(columns)
    same = pc.equal(_compact(found["columns"].combine_chunks()), scalar_of(wanted, STRING)).fill_null(TRUE)
    ours = pc.equal(found["provider"].combine_chunks(), scalar_of(PROVIDER, STRING)).fill_null(TRUE)
    id_numbers = numbers(ids)
    return ZCubes(id_numbers, flags(same) | (id_numbers < 0), flags(ours))


def _compact(values: pa.StringArray) -> pa.StringArray:
    """JSON lists of names in one spelling."""
    encoded = values.dictionary_encode()
    if not len(encoded.dictionary):
        return values
    return texts([columns_text(parse_json(text)) for text in encoded.dictionary.to_pylist()]).take(
        encoded.indices
    )


def _tags(table: pa.Table) -> pa.Array:
    kind = pa.map_(pa.string(), pa.string())
    if "tags" not in table.column_names:
        return pa.nulls(table.num_rows, kind)
    column = table["tags"].combine_chunks()
    return column.cast(kind)


def _tag(tags: pa.Array, name: str) -> pa.Array:
    if not len(tags):
        return texts([])
    return pc.map_lookup(tags, scalar_of(name, STRING), "first").cast(pa.string())


def _column(table: pa.Table, name: str) -> pa.Array:
    if name not in table.column_names:
        return pa.nulls(table.num_rows, pa.string())
    return table[name].combine_chunks().cast(pa.string())


def choose_files(cubes: ZCubes, sizes: Numbers, min_cube_size: int, full: bool) -> tuple[Numbers, ZCubeStats]:
    """The files to cluster, those of no cube first, then cube by cube.

    Parameters
    ----------
    sizes
        Bytes of each file.
    min_cube_size
        Cubes of so many bytes are complete.
    full
        Whether files clustered by other columns, or by others, are clustered too.

    Returns
    -------
    tuple
        The numbers of the files, and what was found.
    """
    order = np.argsort(cubes.ids, kind="stable").astype(np.int64)
    fits = (cubes.same_columns & cubes.ours)[order]
    ids, ordered_sizes = cubes.ids[order], sizes[order]
    candidates = order[fits]
    small = candidates[~_in_complete_zcube(cubes.ids[candidates], sizes[candidates], min_cube_size)]
    if full and not fits.all():
        taken = np.concatenate([small, order[~fits]])
    else:
        in_cubes = np.unique(cubes.ids[small])
        taken = small if len(in_cubes) > 1 or -1 in in_cubes else small[:0]
    matching = (ids >= 0) & (full | cubes.same_columns[order])
    stats = ZCubeStats(
        cube_files=_files_and_bytes(ordered_sizes[matching]),
        other_files=_files_and_bytes(ordered_sizes[~matching]),
        cubes=len(np.unique(ids[matching])),
        merged=_files_and_bytes(sizes[taken]),
    )
    return taken, stats


def _in_complete_zcube(ids: Numbers, sizes: Numbers, least: int) -> Flags:
    distinct, places = np.unique(ids, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, places, sizes)
    return (totals[places] >= least) & (ids >= 0)


def _files_and_bytes(sizes: Numbers) -> tuple[int, int]:
    return len(sizes), int(sizes.sum())
