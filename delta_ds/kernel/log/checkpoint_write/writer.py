"""Write a checkpoint, classic or V2, row group by row group.

Two forms, by the table's properties: one classic file, or (policy v2) a UUID-named file whose file actions are in
sidecars. What is in a file is decided in `state.py`, how it looks in `schema.py`. A file becomes visible whole or
not at all; `_last_checkpoint` comes last.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec"; protocol-checklist CKP-*, SCM-*.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from delta_ds.events.log import CHECKPOINT_WRITTEN, LAST_CHECKPOINT_NOT_WRITTEN
from delta_ds.exceptions import StorageError
from delta_ds.kernel.format.actions import Action, Sidecar
from delta_ds.kernel.format.features import V2_CHECKPOINT
from delta_ds.kernel.format.properties import (
    CHECKPOINT_WRITE_STATS_AS_JSON,
    CHECKPOINT_WRITE_STATS_AS_STRUCT,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.checkpoint_write.file import (
    Counts,
    FileForm,
    action_rows,
    open_file,
    single_table,
)
from delta_ds.kernel.log.checkpoint_write.schema import (
    TypedColumns,
    add_type,
    checkpoint_schema,
    sidecar_schema,
    spark_schema,
    spark_schema_text,
)
from delta_ds.kernel.log.checkpoint_write.state import CheckpointState, FileRows
from delta_ds.kernel.log.checksum import Summary
from delta_ds.kernel.log.filenames import LOG_DIRECTORY, SIDECAR_DIRECTORY, version_prefix, write_hint
from delta_ds.kernel.log.later_statistics import COUNTS_NAN, statistics_count_nan
from delta_ds.kernel.log.segment import LogSegment
from delta_ds.kernel.storage.deleter import SIDECARS
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.staging import StagedFiles
from delta_ds.records import dataclass

# File actions in one sidecar: enough for good files, few enough that readers can share the work.
_SIDECAR_ACTIONS = 200_000
# delta-spark repeats the manifest in `_last_checkpoint` up to this many actions and sidecars each.
_HINT_ENTRIES = 30
# A schema longer than this stays out of it.
_HINT_SCHEMA_LENGTH = 20_000

TypedColumnsOf = Callable[[TableState], TypedColumns]


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint that was written.

    Attributes
    ----------
    files
        Its files relative to the table, sidecars last.
    size
        Actions in it, those of the sidecars included.
    size_in_bytes
        Of all its files.
    hint
        The content of `_last_checkpoint` but for the checksum, and the time of a V2 checkpoint.
    summary
        What a checksum file says of the version.
    """

    version: int
    files: tuple[str, ...]
    size: int
    size_in_bytes: int
    num_adds: int
    hint: Mapping[str, Any]
    summary: Summary


def write_checkpoint(
    storage: Storage,
    segment: LogSegment,
    typed_columns: TypedColumnsOf,
    *,
    now_ms: int | None = None,
) -> CheckpointInfo:
    """Write a checkpoint of the segment's version as its properties say, then `_last_checkpoint`.

    Parameters
    ----------
    segment
        Of the version; its commit file exists.
    typed_columns
        Makes the typed columns of the version; may refuse it.
    now_ms
        The timestamp by which removed files and transactions expire, ms since 1970; None: now.

    Returns
    -------
    CheckpointInfo
        What was written.

    Raises
    ------
    LogError
        The log cannot be read; UnreadableCheckpointError if it is the checkpoint that the segment starts from.
    StorageError
        Writing failed; nothing of a checkpoint that may be visible is deleted.

    Source: PROTOCOL.md, "Checkpoints"; protocol-checklist CKP-W-05 to CKP-W-27.
    """
    state = CheckpointState(storage, segment, int(time.time() * 1000) if now_ms is None else now_ms)
    properties = state.table.properties
    form = FileForm(
        stats=CHECKPOINT_WRITE_STATS_AS_JSON.of(properties),
        struct=CHECKPOINT_WRITE_STATS_AS_STRUCT.of(properties),
        typed=typed_columns(state.table),
        footer=COUNTS_NAN if statistics_count_nan(storage, segment) else {},
    )
    if state.table.enabled(V2_CHECKPOINT):
        info = _write_v2(storage, state, form)
    else:
        info = _write_classic(storage, state, form)
    _write_hint(storage, info)
    CHECKPOINT_WRITTEN.log(
        table=storage.url,
        version=info.version,
        actions=info.size,
        bytes=info.size_in_bytes,
        files=len(info.files),
    )
    return info


def _write_hint(storage: Storage, info: CheckpointInfo) -> None:
    """Write `_last_checkpoint`; without it readers list more, and find the checkpoint all the same."""
    hint = dict(info.hint)
    try:
        if "v2Checkpoint" in hint:
            timestamp = storage.status(info.files[0]).modified_ms
            hint["v2Checkpoint"] = {**hint["v2Checkpoint"], "modificationTime": timestamp}
        write_hint(storage, hint)
    except (StorageError, FileNotFoundError) as error:
        LAST_CHECKPOINT_NOT_WRITTEN.log(table=storage.url, version=info.version, reason=error)


# ---------------------------------------------------------------- classic


def _write_classic(storage: Storage, state: CheckpointState, form: FileForm) -> CheckpointInfo:
    schema = checkpoint_schema(form.add, v2=False)
    single = state.single_actions()
    path = f"{LOG_DIRECTORY}/{version_prefix(state.version)}.checkpoint.parquet"
    counts = Counts()
    with open_file(storage, path, schema, form.footer) as file:
        file.append_table(single_table(single, schema))
        for rows in _ahead(state.file_actions(parsed_statistics=form.struct)):
            file.append(rows.kind, action_rows(rows, form, counts))
    size = len(single) + counts.files
    hint = {
        "version": state.version, "size": size, "sizeInBytes": file.size, "numOfAddFiles": counts.adds,
        **_hint_schema(schema),
    }  # fmt: skip
    return CheckpointInfo(
        state.version, (path,), size, file.size, counts.adds, hint, _summary(single, counts)
    )


def _ahead(rows: Iterator[FileRows]) -> Iterator[FileRows]:
    """The same rows, read one step ahead of the caller."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, rows, None)
        while (current := coming.result()) is not None:
            coming = reader.submit(next, rows, None)
            yield current


# ---------------------------------------------------------------- v2


def _write_v2(storage: Storage, state: CheckpointState, form: FileForm) -> CheckpointInfo:
    counts = Counts()
    # What cannot be deleted of what nothing names, log clean-up deletes a day later.
    with StagedFiles(storage, owned=SIDECARS) as staged:
        sidecars = _write_sidecars(storage, state, form, counts, staged)
        return _write_manifest(storage, state, form, counts, sidecars, staged)


def _write_sidecars(
    storage: Storage, state: CheckpointState, form: FileForm, counts: Counts, staged: StagedFiles
) -> list[Sidecar]:
    sidecars: list[Sidecar] = []
    schema = sidecar_schema(form.add)
    stream = _ahead(state.file_actions(parsed_statistics=form.struct))
    rows = next(stream, None)
    while rows is not None:
        name = f"{uuid.uuid4()}.parquet"
        path = f"{SIDECAR_DIRECTORY}/{name}"
        full = counts.files + _SIDECAR_ACTIONS
        staged.add([path])
        with open_file(storage, path, schema, form.footer) as file:
            while rows is not None and counts.files < full:
                file.append(rows.kind, action_rows(rows, form, counts))
                rows = next(stream, None)
        status = storage.status(path)
        sidecars.append(
            {"path": name, "sizeInBytes": status.size, "modificationTime": status.modified_ms},
        )
    return sidecars


def _write_manifest(
    storage: Storage,
    state: CheckpointState,
    form: FileForm,
    counts: Counts,
    sidecars: Sequence[Sidecar],
    staged: StagedFiles,
) -> CheckpointInfo:
    in_sidecars = sum(sidecar["sizeInBytes"] for sidecar in sidecars)
    tags = {
        "sidecarNumActions": str(counts.files),
        "sidecarSizeInBytes": str(in_sidecars),
        "numOfAddFiles": str(counts.adds),
        "sidecarFileSchema": spark_schema_text(sidecar_schema(form.add)),
    }
    single: list[Action] = [
        *state.single_actions(),
        {"checkpointMetadata": {"version": state.version, "tags": tags}},
    ]
    schema = checkpoint_schema(add_type(stats=True), v2=True)
    name = f"{version_prefix(state.version)}.checkpoint.{uuid.uuid4()}.parquet"
    path = f"{LOG_DIRECTORY}/{name}"
    listed: list[Action] = [{"sidecar": sidecar} for sidecar in sidecars]
    table = single_table([*single, *listed], schema)
    with staged.publishing(), open_file(storage, path, schema, form.footer) as file:
        file.append_table(table)
    size = len(single) + len(sidecars) + counts.files
    v2: dict[str, Any] = {"path": name, "sizeInBytes": file.size}
    if len(single) <= _HINT_ENTRIES:
        v2["nonFileActions"] = single
    if len(sidecars) <= _HINT_ENTRIES:
        v2["sidecarFiles"] = list(sidecars)
    total = file.size + in_sidecars
    hint = {
        "version": state.version, "size": size, "sizeInBytes": total, "numOfAddFiles": counts.adds,
        **_hint_schema(schema), "v2Checkpoint": v2,
    }  # fmt: skip
    files = (path, *(f"{SIDECAR_DIRECTORY}/{sidecar['path']}" for sidecar in sidecars))
    summary = _summary(single, counts)
    return CheckpointInfo(state.version, files, size, total, counts.adds, hint, summary)


def _summary(single: Sequence[Action], counts: Counts) -> Summary:
    txns = {a["txn"]["appId"]: a["txn"] for a in single if "txn" in a}
    domains = {a["domainMetadata"]["domain"]: a["domainMetadata"] for a in single if "domainMetadata" in a}
    return Summary(counts.adds, counts.live_bytes, txns, domains)


def _hint_schema(schema: pa.Schema) -> dict[str, Any]:
    """`checkpointSchema`, left out where it is long, as delta-spark does."""
    if len(spark_schema_text(schema)) > _HINT_SCHEMA_LENGTH:
        return {}
    return {"checkpointSchema": spark_schema(schema)}
