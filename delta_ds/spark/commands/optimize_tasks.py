"""The tasks of OPTIMIZE on Spark: files to files in Python tasks, without the JVM.

What Spark carries are blobs: file names in, `add` actions out; where rows have to be exchanged between tasks, pieces
of Arrow data. So any type of column will do, in classic sessions and on Spark Connect.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds.kernel.commands.optimize import clustering_sort
from delta_ds.kernel.commands.optimize.command import rewrite_bin
from delta_ds.kernel.commands.optimize.planning import OptimizePlan
from delta_ds.kernel.commands.optimize.rewriting import Bin, RewritePlan
from delta_ds.kernel.format.actions import AddFile
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds.frames import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.commands.optimize.zorder_curve import ClusteringCurve
    from delta_ds.kernel.files.read.plan import FileSlice

_Batches = Iterable[pa.RecordBatch]

TASK_BYTES = 128 << 20
_FILE_COST = 1 << 20
_SAMPLE_TASKS = 16
_TYPES = {"int": pa.int32(), "binary": pa.binary(), "string": pa.string()}


def rewrite_small(spark: SparkSession, plan: OptimizePlan, numbers: Sequence[int]) -> list[AddFile]:
    """Rewrite bins, each within one task; small ones share a task.

    Parameters
    ----------
    numbers
        Which bins.

    Returns
    -------
    list of dict
        The bodies of the `add` actions.
    """
    groups = [
        [(number, pickle.dumps(plan.bins[number])) for number in group]
        for group in _group_bins(plan, numbers)
    ]
    found = _run(spark, groups, _rewrite_task(plan.rewrite, plan.curve), "adds string")
    return [add for row in found.collect() for add in wire.decode(row[0])]


def _group_bins(plan: OptimizePlan, numbers: Sequence[int]) -> list[list[int]]:
    """Bins in groups of about `TASK_BYTES`, the largest first."""

    def cost(number: int) -> int:
        return plan.bins[number].size + _FILE_COST * len(plan.bins[number].slices)

    groups: list[list[int]] = []
    room = 0
    for number in sorted(numbers, key=cost, reverse=True):
        if cost(number) > room:
            groups.append([])
            room = TASK_BYTES
        groups[-1].append(number)
        room -= cost(number)
    return groups


def _rewrite_task(
    rewrite: RewritePlan, curve: ClusteringCurve | None
) -> Callable[[Any], Iterator[tuple[Any, ...]]]:
    def work(group: list[tuple[int, bytes]]) -> Iterator[tuple[Any, ...]]:
        for number, files in group:
            yield (wire.encode(rewrite_bin(rewrite, curve, pickle.loads(files), number)),)

    return work


def arrange(spark: SparkSession, plan: OptimizePlan, number: int, cores: int) -> list[AddFile]:
    """Arrange the rows of a bin along a curve, by all tasks there are.

    Parameters
    ----------
    number
        Which bin.
    cores
        How many tasks can run at a time.

    Returns
    -------
    list of dict
        The bodies of the `add` actions.
    """
    from pyspark.sql import functions as F

    files, rewrite, curve = plan.bins[number], plan.rewrite, plan.curve
    assert curve is not None
    cuts = clustering_sort.cuts_of(curve, _sample(spark, rewrite, curve, files), files)
    groups = [pickle.dumps(group) for group in _split(files.slices, TASK_BYTES, cores)]
    pieces = _run(spark, groups, _spread_task(rewrite, cuts), "output int, piece int, blob binary")
    exchanged = pieces.repartitionById(cuts.outputs, F.col("output")).sortWithinPartitions("output", "piece")
    bare = Bin((), files.outputs, files.tags, files.clustering_provider)
    written = map_in_arrow(exchanged, _write_task(rewrite, cuts, bare), "adds string").collect()
    return [add for row in written for add in wire.decode(row[0])]


def _split(slices: Sequence[FileSlice], most_bytes: int, tasks: int) -> list[list[FileSlice]]:
    from delta_ds.kernel.files.read.plan import pack

    return pack(slices, most_bytes, tasks)


def _sample(spark: SparkSession, rewrite: RewritePlan, curve: ClusteringCurve, files: Bin) -> pa.Table:
    chosen = clustering_sort.sample_slices(files.slices)
    groups = [chosen[n::_SAMPLE_TASKS] for n in range(min(_SAMPLE_TASKS, len(chosen)))]
    rows = clustering_sort.SAMPLE_ROWS // len(groups)

    def work(group: list[FileSlice]) -> Iterator[tuple[Any, ...]]:
        yield (clustering_sort.rows_to_blob(clustering_sort.sample_rows(rewrite, curve, group, rows)),)

    found = _run(spark, groups, work, "sample binary").collect()
    return pa.concat_tables([clustering_sort.blob_to_rows(bytes(row[0])) for row in found])


def _spread_task(
    rewrite: RewritePlan, cuts: clustering_sort.Cuts
) -> Callable[[bytes], Iterator[tuple[Any, ...]]]:
    def work(group: bytes) -> Iterator[tuple[Any, ...]]:
        for piece, blob in clustering_sort.distribute(rewrite, cuts, pickle.loads(group)):
            yield cuts.output_of(piece), piece, blob

    return work


def _write_task(
    rewrite: RewritePlan, cuts: clustering_sort.Cuts, files: Bin
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    def rows_of(batches: _Batches) -> Iterator[tuple[int, int, bytes]]:
        for batch in batches:
            outputs, pieces = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            for row, (output, piece) in enumerate(zip(outputs, pieces, strict=True)):
                yield output, piece, batch.column(2)[row].as_py()

    def write(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for output, rows in groupby(rows_of(batches), key=lambda row: row[0]):
            blobs = ((piece, blob) for _, piece, blob in rows)
            adds = clustering_sort.write_pieces(rewrite, cuts, blobs, files, output)
            yield pa.RecordBatch.from_pydict({"adds": [wire.encode(adds)]})

    return write


def _run(
    spark: SparkSession,
    work: Sequence[Any],
    function: Callable[[Any], Iterator[tuple[Any, ...]]],
    schema: str,
) -> DataFrame:
    """The results of a function for each piece of work, each in a task of its own."""
    names = [column.split()[0] for column in schema.split(",")]
    types = [_TYPES[column.split()[1]] for column in schema.split(",")]

    def task(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for row in function(work[number]):
                    arrays = [pa.array([v], t) for v, t in zip(row, types, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, names=names)

    return map_in_arrow(spark.range(0, len(work), 1, len(work)), task, schema)
