"""Actions of live files: their `add` as it was committed, or with more rows deleted; and their `remove`.

`Snapshot.live_files` leaves out what a scan never asks for; commands that commit files once more need it. Those that
remove files name them by row number, and the actions are made in Arrow columns.

Source: PROTOCOL.md, "Add File and Remove File"; protocol-checklist REC-*, REM-*, DV-R-04.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.kernel.base.arrow_buffers import field_of, texts
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.format.actions import AddFile, RemoveFile, counted_rows
from delta_ds.kernel.format.values.deletion_vector import as_action, merge_positions, write_vectors
from delta_ds.kernel.format.values.statistics_json import with_wide_bounds
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.storage.staging import StagedFiles


_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider",
)  # fmt: skip
_MAPS = frozenset(["partitionValues", "tags"])
_ROWS_AT_ONCE = 10_000


def live_adds(snapshot: Snapshot, paths: pa.Array | None = None) -> Iterator[pa.Table]:
    """The live files of a version, in pieces.

    Parameters
    ----------
    paths
        Only the files with these paths; None: all.

    Returns
    -------
    iterator of pyarrow.Table
        The fields of an `add` but `dataChange`: maps as Arrow maps, `stats` as JSON text also where a
        checkpoint has them as columns only.

    Raises
    ------
    LogError
        A file of the log is damaged, or gone, and no others serve.
    DataFileError
        A file without a size in the log is not there either.
    """
    import pyarrow.compute as pc

    from delta_ds.kernel.log.checkpoint_write.state import CheckpointState

    state = CheckpointState.of_version(snapshot.storage, snapshot.segment, time.time_ns() // 1_000_000)
    for rows in state.file_actions(parsed_statistics=False):
        if rows.kind == "add" and rows.table.num_rows:
            table = rows.table
            if paths is not None:
                table = table.filter(pc.is_in(table["path"], value_set=paths))
            table = with_statistics_text(table)
            yield table.select([name for name in _FIELDS if name in table.column_names])


def with_statistics_text(table: pa.Table) -> pa.Table:
    """Files with all statistics as text: those of a column `stats_parsed`, too, whatever columns these are of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "stats_parsed" not in table.column_names:
        return table
    stored, parsed = table["stats"], table["stats_parsed"].combine_chunks()
    table = table.drop_columns(["stats_parsed"])
    if not stored.null_count:
        return table
    from delta_ds.kernel.files.write.checkpoint_columns import statistics_text

    text = pc.coalesce(stored, pa.chunked_array([statistics_text(parsed).cast(stored.type)]))
    return table.set_column(table.column_names.index("stats"), "stats", text)


def add_bodies(table: pa.Table, *, data_change: bool = True) -> Iterator[AddFile]:
    """The bodies of `add` actions, fields without a value left out."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            yield _body(row, data_change)


def _body(row: Mapping[str, Any], data_change: bool) -> AddFile:
    body: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name in _MAPS:
            value = dict(value)
        elif name == "deletionVector":
            value = {key: part for key, part in value.items() if part is not None}
        body[name] = value
    body.setdefault("partitionValues", {})
    body["dataChange"] = data_change
    return cast("AddFile", body)


# --- files in which more rows are deleted

_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class MarkedFiles:
    """Files in which more rows are deleted.

    Attributes
    ----------
    adds
        By the key of the file, its `add` with the new vector.
    emptied
        The keys of files none of whose rows are left.
    """

    adds: dict[str, AddFile]
    emptied: list[str]


def mark_rows(
    storage: Storage, files: Mapping[str, AddFile], deleted: Mapping[str, Positions], staged: StagedFiles
) -> MarkedFiles:
    """Delete rows of files by deletion vectors, besides those that are deleted already.

    That a file has no rows left is never taken from its statistics alone: those of other writers may be wrong.

    Parameters
    ----------
    storage
        The table's.
    files
        The `add` of each file as it is.
    deleted
        By the same keys, uint64 positions of rows, in any order.
    staged
        Gets the files of the vectors.

    Raises
    ------
    DataFileError
        A vector, or a footer that has to be read, is missing or damaged.
    StorageError
        A file cannot be written.
    """
    from concurrent.futures import ThreadPoolExecutor

    rows: dict[str, int] = {}
    doubtful: list[str] = []
    for key, positions in deleted.items():
        counted = _counted_rows(files[key], positions)
        if counted is None:
            doubtful.append(key)
        else:
            rows[key] = counted
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        footers = pool.map(lambda key: footer_rows(storage, files[key]["path"]), doubtful)
        rows.update(zip(doubtful, footers, strict=True))
    vectors: dict[str, Positions] = {}
    emptied = []
    for key, positions in deleted.items():
        before = vector_descriptor(files[key].get("deletionVector"))
        union = merge_positions(storage, before, positions, rows[key])
        if len(union) >= rows[key]:
            emptied.append(key)
        else:
            vectors[key] = union
    paths: list[str] = []
    try:
        written = write_vectors(storage, vectors, paths)
    finally:
        staged.add(paths)
    adds: dict[str, AddFile] = {
        key: {
            **files[key],
            "deletionVector": as_action(vector),
            "stats": with_wide_bounds(files[key].get("stats"), rows[key]),
        }
        for key, vector in written.items()
    }
    return MarkedFiles(adds, emptied)


def _counted_rows(add: AddFile, deleted: Positions) -> int | None:
    """The rows of a file, deleted ones included, by its statistics; None unless they say that some are left."""
    counted = counted_rows(add.get("stats"))
    vector = vector_descriptor(add.get("deletionVector"))
    before = 0 if vector is None else vector.cardinality
    if counted is None or before is None:
        return None
    least = max(before + len(deleted), int(deleted.max(initial=0)) + 1)
    return counted if least < counted else None


def footer_rows(storage: Storage, path: str) -> int:
    """The rows of a data file, deleted ones included, by its footer.

    Parameters
    ----------
    path
        As in the log.

    Raises
    ------
    DataFileError
        The file is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    parameters = {"path": path, "table": storage.url}
    place = f"data file {path} of table {storage.url}"
    try:
        with storage.open(storage.resolve(path)) as file:
            return int(pq.read_metadata(file).num_rows)
    except FileNotFoundError as error:
        raise FAILED_READ_FILE_FILE_NOT_EXIST(parameters, place=place) from error
    except (pa.ArrowException, OSError) as error:
        raise FAILED_READ_FILE_NO_HINT(parameters, place=place, reason=error) from error


# Lines are made for so many files at once, which bounds the memory and stays below Arrow's 2 GB of one string array.
_FILES_AT_ONCE = 100_000
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


@dataclass(frozen=True)
class LiveRemoves:
    """Some or all live files of a snapshot, to be removed.

    Attributes
    ----------
    rows
        int64 row numbers into `snapshot.live_files().table`; None for all files.
    deletion_timestamp
        Milliseconds since 1970.
    """

    snapshot: Snapshot
    rows: pa.Array | None
    data_change: bool
    deletion_timestamp: int

    def __bool__(self) -> bool:
        return bool(self.table.num_rows)

    @cached_property
    def table(self) -> pa.Table:
        """The rows of `LiveFiles.table` that are removed."""
        table = self.snapshot.live_files().table
        return table if self.rows is None else table.take(self.rows)

    @property
    def canonical_paths(self) -> pa.ChunkedArray:
        """The files, in the order of `table`; see `uri.canonical_path`."""
        paths = self.snapshot.live_files().canonical_paths
        return paths if self.rows is None else paths.take(self.rows)

    @property
    def size(self) -> int:
        """Bytes of the files that are removed."""
        import pyarrow.compute as pc

        return int(pc.sum(self.table["size"]).as_py() or 0)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.snapshot.physical_partition_columns

    def lines(self) -> Iterator[bytes]:
        """The `remove` actions as lines of a commit, each with its line feed, in pieces of many lines."""
        for start in range(0, self.table.num_rows, _FILES_AT_ONCE):
            for batch in self.table.slice(start, _FILES_AT_ONCE).combine_chunks().to_batches():
                yield self._lines(batch)

    def _lines(self, batch: pa.RecordBatch) -> bytes:
        import pyarrow as pa
        import pyarrow.compute as pc

        change = "true" if self.data_change else "false"
        parts = [
            _text('{"remove":{"path":'),
            _quoted(batch["path"]),
            _text(
                f',"deletionTimestamp":{self.deletion_timestamp},"dataChange":{change},'
                '"extendedFileMetadata":true,"partitionValues":{'
            ),
        ]
        for number, name in enumerate(self.partition_columns):
            parts += [_text(("," if number else "") + json.dumps(name, ensure_ascii=False) + ":")]
            parts += [_partition_texts(batch, name)]
        parts += [_text('},"size":'), batch["size"].cast(pa.string())]
        for name in ("deletionVector", "baseRowId", "defaultRowCommitVersion"):
            if batch[name].null_count < len(batch):
                value = _vectors(batch[name]) if name == "deletionVector" else batch[name].cast(pa.string())
                parts.append(pc.binary_join_element_wise(_text(f',"{name}":'), value, _text("")))
        parts.append(_text("}}\n"))
        whole = pc.binary_join_element_wise(*parts, _text(""), null_handling="replace", null_replacement="")
        return _letters(whole)

    def bodies(self) -> Iterator[RemoveFile]:
        """The `remove` actions one by one, as they are committed."""
        for piece in self.lines():
            for line in piece.splitlines():
                yield json.loads(line)["remove"]


def _text(value: str) -> pa.StringScalar:
    return texts([value])[0]


def _quoted(values: pa.Array) -> pa.Array:
    """Texts as JSON strings; null stays null."""
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(values, _NEEDS_ESCAPE), min_count=0).as_py():
        return pc.binary_join_element_wise(_text('"'), values, _text('"'), _text(""))
    encoded = values.dictionary_encode()
    quoted = [json.dumps(value, ensure_ascii=False) for value in encoded.dictionary.to_pylist()]
    return texts(quoted).take(encoded.indices)


def _partition_texts(batch: pa.RecordBatch, name: str) -> pa.Array:
    import pyarrow as pa

    if "partitionValues" not in batch.schema.names:
        return _repeated("null", len(batch))
    values = batch["partitionValues"]
    if values.type.get_field_index(name) < 0:
        return _repeated("null", len(batch))
    found = field_of(values, name).cast(pa.string())
    return _quoted(found).fill_null(_text("null"))


def _repeated(value: str, length: int) -> pa.Array:
    import pyarrow as pa

    return pa.repeat(_text(value), length)


def _vectors(values: pa.Array) -> pa.Array:
    """Deletion vectors as JSON objects; null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def member(name: str) -> pa.Array:
        return field_of(values, name).cast(pa.string())

    def optional(name: str) -> pa.Array:
        text = pc.binary_join_element_wise(_text(f',"{name}":'), member(name), _text(""))
        return text.fill_null(_text(""))

    return pc.binary_join_element_wise(
        _text('{"storageType":'), _quoted(member("storageType")),
        _text(',"pathOrInlineDv":'), _quoted(member("pathOrInlineDv")), optional("offset"),
        _text(',"sizeInBytes":'), member("sizeInBytes"), optional("cardinality"), _text("}"), _text(""),
    )  # fmt: skip


def _letters(values: pa.Array) -> bytes:
    """The bytes of all texts, one after the other."""
    import numpy as np

    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset :][: len(values) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
