"""Optimized writes: join small files of one partition, written by different tasks, before the commit.

delta-spark shuffles the rows before it writes them; a data source cannot, as Spark has split them when it is
asked. The outcome is the same: few files of good size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from delta_ds.kernel.actions import AddFile
from delta_ds.kernel.data.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.data.read.reader import read_slices
from delta_ds.kernel.data.write.writer import FileWriter
from delta_ds.kernel.properties import OPTIMIZE_WRITE
from delta_ds.kernel.storage.staging import StagedFiles, discard
from delta_ds.kernel.write.plan import WritePlan

_TARGET_BYTES = 128 << 20


def join_small_files(plan: WritePlan, adds: Sequence[AddFile], staged: StagedFiles) -> list[AddFile]:
    """The files of a write, joined where the write or the table asks for it.

    Parameters
    ----------
    plan
        The write.
    adds
        What its tasks wrote: the bodies of `add` actions. Files that are joined are deleted.
    staged
        Their owner, and that of the new ones.

    Returns
    -------
    list of dict
        The bodies of the files to commit.
    """
    wanted = plan.options.optimize_write
    if wanted is None:
        wanted = OPTIMIZE_WRITE.of(plan.state.properties)
    if not wanted:
        return list(adds)
    out: list[AddFile] = []
    for group in _groups(adds, plan.files.target_file_size or _TARGET_BYTES):
        out += group if len(group) == 1 else _join(plan, group, staged)
    return out


def _groups(adds: Sequence[AddFile], target: int) -> Iterator[list[AddFile]]:
    """Files of one partition, so many at a time as fit into one file of the target size."""
    by_partition: dict[tuple[Any, ...], list[AddFile]] = {}
    for add in adds:
        by_partition.setdefault(tuple(sorted(add["partitionValues"].items())), []).append(add)
    for files in by_partition.values():
        group: list[AddFile] = []
        size = 0
        for add in sorted(files, key=lambda body: int(body["size"])):
            if group and size + add["size"] > target:
                yield group
                group, size = [], 0
            group.append(add)
            size += add["size"]
        yield group


def _join(plan: WritePlan, group: Sequence[AddFile], staged: StagedFiles) -> list[AddFile]:
    names = plan.state.physical_partition_columns
    reading = ReadPlan.of(plan.state, timezone=plan.files.timezone)
    slices = [
        FileSlice(add["path"], add["size"], partition_values=tuple(add["partitionValues"][n] for n in names))
        for add in group
    ]
    writer = FileWriter(plan.storage, plan.files_of_whole_rows)
    try:
        for batch in read_slices(plan.storage, reading, slices):
            writer.write(batch)
        joined = writer.close()
        staged.add(add["path"] for add in joined)
    except BaseException:
        writer.abort()
        raise
    discard(plan.storage, [add["path"] for add in group])
    return joined
