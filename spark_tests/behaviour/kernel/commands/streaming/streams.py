"""Tables and readers of streams, for the tests of this folder."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.kernel.commands.streaming.offsets import ReadLimits, StreamOffset
from delta_ds.kernel.commands.streaming.source import StreamSource
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.options.stream_read import parse_stream_read_options
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import Action, TableBuilder, metadata_action

IDS = pa.schema([("id", pa.int64())])


def table(path: Path, schema: pa.Schema = IDS, **how: Any) -> TableBuilder:
    """An empty table."""
    builder = TableBuilder(path)
    builder.create(schema, **how)
    return builder


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def open_source(path: Path, **options: Any) -> StreamSource:
    storage = open_storage(path)
    return StreamSource.open(storage, parse_stream_read_options({"path": str(path), **options}))


def again(source: StreamSource) -> StreamSource:
    """The source as another process gets it."""
    copy: StreamSource = pickle.loads(pickle.dumps(source))
    return copy


def read(source: StreamSource, start: StreamOffset, end: StreamOffset) -> list[dict[str, Any]]:
    plan, slices = source.tasks(start, end)
    return [row for batch in read_slices(source.storage, plan, slices) for row in batch.to_pylist()]


def ids(source: StreamSource, start: StreamOffset, end: StreamOffset) -> list[int]:
    return [row["id"] for row in read(source, start, end)]


def batches(
    source: StreamSource, start: StreamOffset | None = None, limits: ReadLimits | None = None
) -> Iterator[tuple[StreamOffset, list[int]]]:
    """The batches up to the end of the table: the offset after each, and its ids in order."""
    at = source.initial_offset() if start is None else start
    while (end := source.latest_offset(at, limits)) != at:
        yield end, ids(source, at, end)
        at = end


def everything(source: StreamSource, limits: ReadLimits | None = None) -> list[list[int]]:
    return [found for _, found in batches(source, None, limits) if found]


def end_of(source: StreamSource) -> StreamOffset:
    """Read all there is; the offset after it."""
    at = source.initial_offset()
    for end, _ in batches(source):
        at = end
    return at


def new_metadata(
    path: Path,
    schema: pa.Schema | Any,
    partition_columns: Sequence[str] = (),
    properties: dict[str, str] | None = None,
) -> Action:
    """A `metaData` action of the same table."""
    action = metadata_action(schema, partition_columns, properties)
    action["metaData"]["id"] = open_snapshot(open_storage(path)).metadata.id
    return action
