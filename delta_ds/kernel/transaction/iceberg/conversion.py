"""Write the metadata of Iceberg for a version of a table, beside the log: UniForm.

`metadata/v<version>.metadata.json` describes the version of that number. It is put where there is none, so of two that
convert a version one wins, and both have said the same; nobody touches the file of another version. A conversion builds
on the newest file that is there, whoever wrote it, or describes all files anew; `version-hint.text` names it.

Source: Iceberg Table Spec, "Table Metadata"; docs of delta-spark, "Universal Format (UniForm)"; `IcebergConverter`.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.iceberg import UNIVERSAL_FORMAT_CONVERSION_FAILED
from delta_ds.kernel.format.iceberg_compatibility import check_installed
from delta_ds.kernel.format.properties import COLUMN_MAPPING_MAX_ID, DELETED_FILE_RETENTION
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import ICEBERG_METADATA
from delta_ds.kernel.transaction.iceberg.data_files import DataFiles
from delta_ds.kernel.transaction.iceberg.description import (
    iceberg_schema,
    location_of,
    name_mapping,
    partition_spec,
    resolved_location,
)
from delta_ds.kernel.transaction.iceberg.snapshots import LogChanges, changes_between
from delta_ds.kernel.transaction.iceberg.storage_io import (
    FOLDER,
    converted_versions,
    metadata_path,
    put_hint,
    read_metadata,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadataV2
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.iceberg.snapshots import Difference, SnapshotWriter
    from delta_ds.kernel.transaction.iceberg.storage_io import ManifestFolder

MAX_SNAPSHOTS = 100
_NAME_MAPPING = "schema.name-mapping.default"
_FILES_AT_ONCE = 10_000
_CLEAN_UP_EVERY = 25  # versions


def convert(storage: Storage, state: TableState, timestamp_ms: int) -> bool:
    """Describe a version of a table, unless it is described already, or a newer one is.

    Parameters
    ----------
    storage, state
        The table, at the version.
    timestamp_ms
        When the version was committed, ms since 1970.

    Returns
    -------
    bool
        Whether something was written.

    Raises
    ------
    UnsupportedOperationError
        Iceberg cannot express the version, or the folder belongs to another table; pyiceberg is missing.
    StorageError
        The storage refused, or the folder is a link.
    """
    check_installed(state.table)
    deleter.check_own(storage, ICEBERG_METADATA, [metadata_path(state.version)])
    conversion = _Conversion(storage, state, timestamp_ms)
    base = conversion.base()
    if base is not None and base.version >= state.version:
        put_hint(storage)
        return False
    written = conversion.write(base)
    put_hint(storage)
    if written and state.version % _CLEAN_UP_EVERY == 0:
        from delta_ds.kernel.transaction.iceberg.snapshots import clean_up

        clean_up(storage)
    return written


@dataclass(frozen=True, slots=True)
class _Base:
    """What a conversion builds on: the description of an earlier version."""

    version: int
    metadata: TableMetadataV2


class _Conversion:
    """One conversion."""

    def __init__(self, storage: Storage, state: TableState, timestamp_ms: int) -> None:
        from delta_ds.kernel.transaction.iceberg.storage_io import ManifestFolder

        self._storage = storage
        self._state = state
        self._timestamp = timestamp_ms
        self._location = location_of(storage)
        self._uuid = _uuid_of(state.metadata.id)
        self._folder: ManifestFolder = ManifestFolder(storage, self._location)
        self._files = DataFiles(storage, state, self._location)

    def base(self) -> _Base | None:
        """The newest description; None where there is none, or none that can be built on.

        Raises
        ------
        UnsupportedOperationError
            One of this version or a newer one is there, and it is of another table.
        """
        versions = converted_versions(self._storage)
        if not versions:
            return None
        version = versions[-1]
        metadata = read_metadata(self._storage, version)
        if (metadata.location, metadata.table_uuid) == (self._location, self._uuid):
            return _Base(version, metadata)
        if version >= self._state.version:
            raise self._failed(
                f"{metadata_path(version)} describes the table {metadata.table_uuid} at {metadata.location}: delete "
                f"the folder {FOLDER}, then generate('iceberg')"
            )
        return None

    def _failed(self, message: str) -> Exception:
        return UNIVERSAL_FORMAT_CONVERSION_FAILED(
            version=self._state.version, table=self._state.table, format="iceberg", message=message
        )

    def write(self, base: _Base | None) -> bool:
        """Describe the version; False where somebody else has done so meanwhile."""
        new = self._described(None if base is None else base.metadata)
        changes = None
        if base is not None and new.default_spec_id == base.metadata.default_spec_id:
            changes = changes_between(self._storage, base.version, self._state.version)
        if base is not None and changes is not None and not changes:
            return self._publish(new)
        try:
            described = self._followed(new, changes)
        except BaseException:
            self._forget()
            raise
        return self._publish(described)

    def _followed(self, new: TableMetadataV2, changes: LogChanges | None) -> TableMetadataV2:
        """The metadata with a snapshot: by what changed since the base where that is known, else of all files."""
        from delta_ds.kernel.transaction.iceberg.snapshots import UnknownFileError

        try:
            return self._with_snapshot(new, changes)
        except UnknownFileError:
            self._forget()
            return self._with_snapshot(new, None)

    def _forget(self) -> None:
        """Delete the manifests that were written: no description names them."""
        deleter.delete(self._storage, ICEBERG_METADATA, self._folder.written)
        self._folder.written.clear()

    # --- description

    def _described(self, before: TableMetadataV2 | None) -> TableMetadataV2:
        """The metadata with the schema, partition spec and properties of the version, and the snapshots of before."""
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.table.metadata import TableMetadataV2
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

        schemas = [] if before is None else list(before.schemas)
        schema = iceberg_schema(self._state.schema, max((s.schema_id for s in schemas), default=-1) + 1)
        named = set() if before is None else {s.schema_id for s in before.snapshots}
        schemas = [s for s in schemas if s.schema_id in named]
        same = next((s for s in schemas if s == schema), None)
        if same is None:
            schemas.append(schema)
        specs: list[PartitionSpec] = list(before.partition_specs) if before is not None else []
        known = {f.source_id: f.field_id for spec in specs for f in spec.fields}
        spec = partition_spec(self._state, max((s.spec_id for s in specs), default=-1) + 1, known)
        same_spec = next((s for s in specs if s.fields == spec.fields), None)
        if same_spec is None:
            specs.append(spec)
        ids = [f.field_id for s in specs for f in s.fields]
        return TableMetadataV2(
            **_dashed(
                location=self._location,
                table_uuid=self._uuid,
                last_updated_ms=max(self._timestamp, 0 if before is None else before.last_updated_ms),
                last_column_id=max(
                    COLUMN_MAPPING_MAX_ID.of(self._state.properties), *(s.highest_field_id for s in schemas)
                ),
                schemas=schemas,
                current_schema_id=(same or schema).schema_id,
                partition_specs=specs,
                default_spec_id=(same_spec or spec).spec_id,
                last_partition_id=max(ids, default=999),
                properties={
                    "delta-version": str(self._state.version),
                    "delta-timestamp": str(self._timestamp),
                    _NAME_MAPPING: name_mapping(
                        self._state,
                        None if before is None else before.properties.get(_NAME_MAPPING),
                    ),
                },
                sort_orders=[UNSORTED_SORT_ORDER],
                default_sort_order_id=UNSORTED_SORT_ORDER.order_id,
                **({} if before is None else _kept(before)),
            )
        )

    # --- snapshots

    def _with_snapshot(self, new: TableMetadataV2, changes: LogChanges | None) -> TableMetadataV2:
        from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
        from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

        from delta_ds.kernel.transaction.iceberg.snapshots import SnapshotWriter

        parent = new.current_snapshot()
        number = new.last_sequence_number + 1
        snapshot_id = self._snapshot_id()
        writer = SnapshotWriter(self._folder, new.specs(), new.spec(), new.schema(), snapshot_id, number)
        difference = self._difference(writer, parent, changes)
        replaces = changes is None and parent is not None
        moment = max(self._timestamp, 0 if parent is None else parent.timestamp_ms)
        listed = self._folder.manifest_list(
            difference.manifests, snapshot_id, None if parent is None else parent.snapshot_id, number
        )
        snapshot = Snapshot(
            **_dashed(
                snapshot_id=snapshot_id,
                parent_snapshot_id=None if parent is None else parent.snapshot_id,
                sequence_number=number,
                timestamp_ms=moment,
                manifest_list=listed,
                summary=self._summary(difference, None if replaces else parent, replaces),
                schema_id=new.current_schema_id,
            )
        )
        kept = self._retained(new.snapshots, moment)
        entry = SnapshotLogEntry(**_dashed(snapshot_id=snapshot_id, timestamp_ms=moment))
        ids = {s.snapshot_id for s in kept}
        return new.model_copy(
            update={
                "last_sequence_number": number,
                "last_updated_ms": max(new.last_updated_ms, moment),
                "current_snapshot_id": snapshot_id,
                "snapshots": [*kept, snapshot],
                "snapshot_log": [*(e for e in new.snapshot_log if e.snapshot_id in ids), entry],
                "refs": {
                    "main": SnapshotRef(**_dashed(snapshot_id=snapshot_id, type=SnapshotRefType.BRANCH))
                },
            }
        )

    def _snapshot_id(self) -> int:
        """The same for whoever converts the version."""
        digest = hashlib.sha256(f"{self._uuid}/{self._state.version}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    def _difference(
        self, writer: SnapshotWriter, parent: IcebergSnapshot | None, changes: LogChanges | None
    ) -> Difference:
        if changes is None:
            return writer.whole(self._all_files())
        before = [] if parent is None else self._folder.manifests(parent.manifest_list)
        files = self._files.of(list(changes.added.values()))
        repeated = {f.file_path for f in files} if changes.may_repeat else set()
        gone, passing = self._locations(changes.removed), self._locations(changes.passing)
        return writer.following(before, files, gone, passing, repeated)

    def _all_files(self) -> Iterator[DataFile]:
        from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
        from delta_ds.kernel.log.snapshot import open_snapshot

        for table in live_adds(open_snapshot(self._storage, self._state.version)):
            for at in range(0, table.num_rows, _FILES_AT_ONCE):
                yield from self._files.of(list(add_bodies(table.slice(at, _FILES_AT_ONCE))))

    def _locations(self, paths: set[str]) -> set[str]:
        return {resolved_location(self._storage, self._location, path) for path in paths}

    def _retained(self, snapshots: list[IcebergSnapshot], now_ms: int) -> list[IcebergSnapshot]:
        """Snapshots whose files VACUUM leaves, at most so many."""
        oldest = now_ms - DELETED_FILE_RETENTION.of(self._state.properties).total_seconds() * 1000
        return [s for s in snapshots[-(MAX_SNAPSHOTS - 1) :] if s.timestamp_ms >= oldest]

    def _summary(self, difference: Difference, parent: IcebergSnapshot | None, replaces: bool) -> Any:
        from pyiceberg.table.snapshots import Operation, Summary

        added, removed = difference.added, difference.removed
        before = {} if parent is None or parent.summary is None else parent.summary
        operation = Operation.OVERWRITE if replaces or (added.files and removed.files) else Operation.APPEND
        if removed.files and not added.files:
            operation = Operation.DELETE
        counts = {
            "added-data-files": added.files,
            "added-records": added.rows,
            "added-files-size": added.size,
            "deleted-data-files": removed.files,
            "deleted-records": removed.rows,
            "removed-files-size": removed.size,
        }
        totals = {
            "total-data-files": _total(before, "total-data-files") + added.files - removed.files,
            "total-records": _total(before, "total-records") + added.rows - removed.rows,
            "total-files-size": _total(before, "total-files-size") + added.size - removed.size,
            "total-delete-files": 0,
            "total-position-deletes": 0,
            "total-equality-deletes": 0,
        }
        texts = {name: str(count) for name, count in counts.items() if count}
        texts |= {name: str(total) for name, total in totals.items()}
        told = {"delta-version": str(self._state.version), "delta-timestamp": str(self._timestamp)}
        return Summary(operation, **texts, **told)

    # --- publication

    def _publish(self, metadata: TableMetadataV2) -> bool:
        path = metadata_path(self._state.version)
        data = metadata.model_dump_json().encode()
        try:
            # After any other error the manifests stay: the description may be there, or still arrive.
            self._storage.create(path, data)
        except FileExistsError:
            if self._storage.read(path) != data:  # an answer that got lost is no other writer
                self._forget()
                return False
        return True


def _kept(before: TableMetadataV2) -> dict[str, Any]:
    return {
        "last_sequence_number": before.last_sequence_number,
        "current_snapshot_id": before.current_snapshot_id,
        "snapshots": before.snapshots,
        "snapshot_log": before.snapshot_log,
        "refs": before.refs,
    }


def _dashed(**values: Any) -> dict[str, Any]:
    """Fields as the specification spells them."""
    return {name.replace("_", "-"): value for name, value in values.items()}


def _total(summary: Mapping[str, str], name: str) -> int:
    return int(summary[name] or 0) if summary else 0


def _uuid_of(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_URL, text)
