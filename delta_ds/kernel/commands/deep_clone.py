"""Deep CLONE: a table of its own, with copies of the data files of another one; done again, it copies what is new.

The description is that of a shallow clone (`clone`). Each copy says in its tags what it was made of, so that the next
clone of the same source knows it again. Files and deletion vectors that were changed in the clone meanwhile are
replaced: the clone has the rows of the source's version, no others.

Source: PROTOCOL.md, "Add File and Remove File" (`tags`), "Deletion Vectors"; docs of Databricks, "Clone".
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO

from delta_ds.conditions.commands import CLONE_INTO_ITSELF, CREATE_TABLE_WITH_NON_EMPTY_LOCATION
from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.commands.clone import (
    NOT_TAKEN,
    CloneResult,
    address_text,
    clone_metrics,
    description,
    parse_inputs,
    put_clustering,
)
from delta_ds.kernel.commands.clone_sources import SOURCE_ADDRESS_TAG, check_data_file, check_sources
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.files.read.reader import threads_for
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.files.write.write_spec import list_written_files
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, AddFile, DeletionVector, vector_id
from delta_ds.kernel.format.operations import CLONE
from delta_ds.kernel.format.properties import STRICT, PropertyRules
from delta_ds.kernel.format.values.deletion_vector import DeletionVectorDescriptor, read_positions, z85_encode
from delta_ds.kernel.log.commit import read_commits
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.storage.staging import StagedFiles
from delta_ds.kernel.storage.uri import has_scheme
from delta_ds.kernel.transaction.table_log import Timestamp, snapshot_at
from delta_ds.kernel.transaction.validation import check_may_remove
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.storage.uri import Address
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction

# In `tags` of an `add`: id of the source, path and vector there, and the vector here, as a JSON list.
COPY_TAG = "pydelta.copyOf"

# In `tags` of the commit: id of the source.
SOURCE_TAG = "pydelta.cloneOf"

_CHUNK_BYTES = 8 << 20
_COMMITS_AT_ONCE = 50
_OWN_FIELDS = ("baseRowId", "defaultRowCommitVersion")


def deep_clone(
    source: TableLog,
    target: TableLog,
    *,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str = "UTC",
    replace_existing: bool = False,
    properties: Mapping[str, str] | None = None,
    rules: PropertyRules = STRICT,
    files_from: Sequence[str] = (),
    source_name: str | None = None,
) -> CloneResult:
    """Make a table at another place, on any store, with copies of the files of a version of this one.

    Parameters
    ----------
    source, target
        The table, and where its clone shall be.
    version, timestamp, timezone
        Of the source, see `table_log.snapshot_at`; neither: its latest version.
    replace_existing
        Whether the clone may take the place of a table. Files that an earlier clone of the same source has brought,
        and that are unchanged on both sides, stay; all others of that table go.
    properties
        Table properties to set over those of the source.
    rules
        What the session says of them.
    files_from
        Folders whose Parquet files are copied too, where the source names some: addresses. Else only those in the
        source's folder, and in the folders of the tables that it is a clone of, see `clone_sources`.
    source_name
        By which a catalog knows the source, for the history; None: its path stands there.

    Returns
    -------
    CloneResult
        Of a clone that has nothing to do, the version that is there.

    Raises
    ------
    TableExistsError
        There is a table, or there are files, at the target and `replace_existing` is False.
    InvalidOptionError, UnsupportedFeatureError
        A property is unknown, wrong or cannot be set; the target is the source.
    AppendOnlyError
        The table in whose place it should come is append-only, and no clone of this source.
    UnsupportedOperationError
        A file of the source lies elsewhere; nothing was written.
    DataFileError, StorageError
        A file of the source is missing, has another size than the log says, or is no Parquet; a copy could not be
        written. What was copied is deleted.
    ConcurrentWriteException, ProtocolChangedException
        Another commit at the target came first.

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> orders, backup = DeltaLog(tempfile.mkdtemp()), DeltaLog(tempfile.mkdtemp() + "/backup")
    >>> orders.write(pa.table({"id": [1, 2]}))
    0
    >>> deep_clone(orders, backup).num_copied_files
    1
    >>> orders.write(pa.table({"id": [3]}))
    1
    >>> deep_clone(orders, backup, replace_existing=True).num_copied_files
    1
    """
    inputs = parse_inputs(properties or {}, rules)
    snapshot = snapshot_at(source, version, timestamp, timezone)
    if _overlap(source.storage.address, target.storage.address):
        raise CLONE_INTO_ITSELF(table=target.storage.url)
    txn = target.start_transaction(create=True)
    if not replace_existing and (txn.base is not None or list_written_files(target.storage, "")):
        what = "a table" if txn.base is not None else "files that belong to no table"
        url = target.storage.url
        raise CREATE_TABLE_WITH_NON_EMPTY_LOCATION(tableId=url, what=what, tableLocation=url)
    known = _Known(txn.base, snapshot.metadata.id)
    state = description(snapshot, txn.base, inputs, target.storage.url)
    if txn.base is not None and known.is_same_source:
        state = _as_before(state, txn.base.table_state)
    new = [body for body in _bodies(snapshot) if not known.keeps(body)]
    check_sources(snapshot, _files_of(new), files_from)
    with StagedFiles(target.storage) as staged:
        with Work(CLONE.name, target.storage.url) as work:
            adds = _Copies(snapshot, target.storage, staged).make(new, work)
        return _commit(txn, snapshot, state, known, adds, staged, source_name)


def _overlap(source: Address, target: Address) -> bool:
    """Whether a table lies at, or below, the other: VACUUM of the outer one would delete the inner one's files."""
    if (source.scheme, source.authority) != (target.scheme, target.authority):
        return False
    paths = [f"{os.path.realpath(a.path) if a.scheme == 'file' else a.path}/" for a in (source, target)]
    return paths[0].startswith(paths[1]) or paths[1].startswith(paths[0])


def _commit(
    txn: Transaction,
    source: Snapshot,
    state: TableState,
    known: _Known,
    adds: Sequence[AddFile],
    staged: StagedFiles,
    source_name: str | None,
) -> CloneResult:
    gone = known.gone()
    before = txn.base
    sizes = source.live_files().table["size"].to_pylist()
    removed = before.live_files().table["size"].take(integers(gone)).to_pylist() if before is not None else []
    result = CloneResult(
        sum(sizes), len(sizes), len(removed), len(adds), sum(removed), sum(add["size"] for add in adds), -1
    )
    changed = before is None or (state.protocol, state.metadata) != (before.protocol, before.metadata)
    clustered = before is not None and _clustering(before) != _clustering(source)
    if before is not None and not (changed or adds or gone or clustered):
        return replace(result, version=before.version)
    txn.read_whole_table()
    if changed:
        txn.set_metadata(state.metadata)
        if before is None or state.protocol != before.protocol:
            txn.set_protocol(state.protocol)
    if gone and before is not None:
        if not known.is_same_source:
            check_may_remove(before, CLONE.name)
        txn.remove_live(integers(gone))
    txn.add_all(adds)
    put_clustering(txn, source)
    where = f"delta.`{address_text(source.storage.address)}`"
    parameters = {"source": source_name or where, "sourceVersion": source.version, "isShallow": False}
    tags = {SOURCE_TAG: source.metadata.id}
    if source_name is not None:
        tags[SOURCE_ADDRESS_TAG] = where
    committed = txn.commit(CLONE, parameters, clone_metrics(result), tags=tags, staged=staged)
    return replace(result, version=committed)


def _clustering(snapshot: Snapshot) -> object:
    text = snapshot.domains.get(CLUSTERING_DOMAIN)
    return None if text is None else json.loads(text)


def _as_before(state: TableState, before: TableState) -> TableState:
    """The description of a clone that is brought up to date: the same table, with names of its own for row ids."""
    own = {k: v for k, v in before.metadata.configuration.items() if k in NOT_TAKEN}
    metadata = replace(
        state.metadata,
        id=before.metadata.id,
        created_time=before.metadata.created_time,
        configuration={**state.metadata.configuration, **own},
    )
    return replace(state, metadata=metadata)


def _bodies(snapshot: Snapshot) -> Iterator[AddFile]:
    for table in live_adds(snapshot):
        yield from add_bodies(table)


# --- what is there


class _Known:
    """The files of the target that are copies of files of the source.

    Parameters
    ----------
    snapshot
        The target; None without a table.
    source_id
        The id of the source's metadata.

    Attributes
    ----------
    is_same_source
        Whether the target has any of them, or is a clone of the source that has had none since.
    """

    def __init__(self, snapshot: Snapshot | None, source_id: str) -> None:
        self._snapshot = snapshot
        self._paths: dict[tuple[str, str | None], str] = {}
        self._kept: set[str] = set()
        for body in _bodies(snapshot) if snapshot is not None else ():
            found = _copied_from(body)
            if found is not None and found.source_id == source_id:
                self._paths[found.path, found.vector] = body["path"]
        self.is_same_source = bool(self._paths) or (
            snapshot is not None and _last_source(snapshot) == source_id
        )

    def keeps(self, body: AddFile) -> bool:
        """Whether a file of the source need not be copied; it stays then."""
        path = self._paths.get((body["path"], vector_id(body.get("deletionVector"))))
        if path is not None:
            self._kept.add(path)
        return path is not None

    def gone(self) -> list[int]:
        """The row numbers of the target's files that do not stay."""
        if self._snapshot is None:
            return []
        paths = self._snapshot.live_files().table["path"].to_pylist()
        return [row for row, path in enumerate(paths) if path not in self._kept]


def _last_source(snapshot: Snapshot) -> str | None:
    """The id of the table that the newest CLONE in a log was of; None where there is none, or it does not say."""
    commits = list_log(snapshot.storage).commits
    versions = sorted((version for version in commits if version <= snapshot.version), reverse=True)
    for start in range(0, len(versions), _COMMITS_AT_ONCE):
        files = [commits[version] for version in versions[start : start + _COMMITS_AT_ONCE]]
        for commit in read_commits(snapshot.storage, files):
            if commit.info.get("operation") == CLONE.name:
                found = (commit.info.get("tags") or {}).get(SOURCE_TAG)
                return found if isinstance(found, str) else None
    return None


@dataclass(frozen=True, slots=True)
class _CopyOf:
    """What a copy was made of: the source's id, path and vector there."""

    source_id: str
    path: str
    vector: str | None


def _copied_from(body: AddFile) -> _CopyOf | None:
    """What a file is an unchanged copy of; None where it is none, or rows of it were deleted since.

    A shallow clone of a clone has the tags, and the files lie elsewhere.
    """
    text = (body.get("tags") or {}).get(COPY_TAG)
    if text is None or _lies_elsewhere(body["path"]) or _vector_lies_elsewhere(body):
        return None
    source_id, path, vector, own_vector = json.loads(text)
    if own_vector != vector_id(body.get("deletionVector")):
        return None
    return _CopyOf(source_id, path, vector)


def _lies_elsewhere(path: str) -> bool:
    return has_scheme(path) or path.startswith("/")


def _vector_lies_elsewhere(body: AddFile) -> bool:
    vector = body.get("deletionVector")
    return vector is not None and vector["storageType"] == "p"


# --- copies


def _files_of(bodies: Iterable[AddFile]) -> Iterator[str]:
    """The data files and deletion vectors of some files, as in actions."""
    for body in bodies:
        yield body["path"]
        vector = vector_descriptor(body.get("deletionVector"))
        if vector is not None and vector.path is not None:
            yield vector.path


@dataclass(frozen=True, slots=True)
class _VectorFile:
    """A file of deletion vectors: its name in the target, and the vectors of the source that are in it."""

    name: uuid.UUID
    vectors: list[DeletionVectorDescriptor]

    @property
    def there(self) -> str:
        return f"deletion_vector_{self.name}.bin"


class _Copies:
    """Copies of files into the target.

    Parameters
    ----------
    source
        Where they come from.
    storage
        The target's.
    staged
        Becomes the owner of what is written.
    """

    def __init__(self, source: Snapshot, storage: Storage, staged: StagedFiles) -> None:
        self._source, self._storage = source, storage
        self._staged = staged
        self._vectors: dict[str, _VectorFile] = {}

    def make(self, bodies: Sequence[AddFile], work: Work) -> list[AddFile]:
        """Copy files with their deletion vectors; their `add` actions at the target."""
        copies = [self._copy_of(body) for body in bodies]
        files = [
            (body["path"], copy["path"], body["size"]) for body, copy in zip(bodies, copies, strict=True)
        ]
        everything = [*files, *((path, file.there, None) for path, file in self._vectors.items())]
        self._staged.add([there for _, there, _ in everything])
        with (
            work.phase("copying", total=len(everything)) as phase,
            ThreadPoolExecutor(threads_for(self._storage)) as pool,
        ):
            done = [pool.submit(self._copy, *each) for each in everything]
            try:
                for future in phase.each(done):
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)
        self._storage.fsync([self._storage.resolve(there) for _, there, _ in everything])
        return copies

    def _copy_of(self, body: AddFile) -> AddFile:
        vector = self._vector_here(body.get("deletionVector"))
        said = [
            self._source.metadata.id,
            body["path"],
            vector_id(body.get("deletionVector")),
            vector_id(vector),
        ]
        copy: AddFile = {**body, "path": self._free_path(body["path"]), "dataChange": True}
        copy["tags"] = {**(body.get("tags") or {}), COPY_TAG: json.dumps(said, ensure_ascii=False)}
        if vector is not None:
            copy["deletionVector"] = vector
        for name in _OWN_FIELDS:
            copy.pop(name, None)  # type: ignore[misc]
        return copy

    def _free_path(self, path: str) -> str:
        """A name that nobody else has, in the folder of the file in its own table.

        Clones that run at once must not share a name: the one that fails deletes what it has copied.
        """
        folder = "" if _lies_elsewhere(path) else path.rpartition("/")[0]
        name = f"part-{uuid.uuid4()}.parquet"
        return f"{folder}/{name}" if folder else name

    def _vector_here(self, vector: DeletionVector | None) -> DeletionVector | None:
        """The descriptor of a deletion vector in a copy of its file, which several files may share."""
        descriptor = vector_descriptor(vector)
        if vector is None or descriptor is None or descriptor.path is None:
            return vector
        file = self._vectors.setdefault(descriptor.path, _VectorFile(uuid.uuid4(), []))
        file.vectors.append(descriptor)
        return {**vector, "storageType": "u", "pathOrInlineDv": z85_encode(file.name.bytes)}

    def _opened(self, path: str) -> BinaryIO | pa.NativeFile:
        storage = self._source.storage
        try:
            return storage.open(storage.resolve(path))
        except FileNotFoundError as error:
            place = f"file {path} of version {self._source.version} of {storage.url}"
            parameters = {"path": path, "table": storage.url, "version": self._source.version}
            raise FAILED_READ_FILE_FILE_NOT_EXIST(parameters, place=place) from error

    def _copy(self, path: str, there: str, size: int | None) -> None:
        with self._opened(path) as data:
            if size is None:
                for vector in self._vectors[path].vectors:
                    read_positions(self._source.storage, vector)
            else:
                check_data_file(self._source, path, size, data)
            data.seek(0)
            with self._storage.open_output(self._storage.resolve(there)) as output:
                while chunk := data.read(_CHUNK_BYTES):
                    output.write(chunk)
