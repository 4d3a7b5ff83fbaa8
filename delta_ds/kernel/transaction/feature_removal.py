"""Whether a version of a table still holds traces of a feature that is to be dropped.

Source: PROTOCOL.md, "Table Features"; protocol-checklist TF-W-06; conflict-matrix section 3, check 1d.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from delta_ds.kernel.format import features
from delta_ds.kernel.format.actions import Protocol
from delta_ds.kernel.format.features import (
    CHECKPOINT_PROTECTION,
    COLUMN_MAPPING,
    DELETION_VECTORS,
    DOMAIN_METADATA,
    IN_COMMIT_TIMESTAMP,
    TYPE_WIDENING,
    TYPE_WIDENING_PREVIEW,
    V2_CHECKPOINT,
)
from delta_ds.kernel.format.properties import (
    CHECKPOINT_PROTECTION_BEFORE_VERSION,
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
)
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, PHYSICAL_NAME, TYPE_CHANGES
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructType

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot


def removed_features(before: Protocol, after: Protocol) -> list[str]:
    """The features that one protocol supports and the next one does not, legacy versions expanded."""
    return sorted(before.supported - after.supported)


def trace_of(feature: str, snapshot: Snapshot) -> str | None:
    """The trace of a feature in a version, in words; None if the feature can be dropped."""
    configuration = snapshot.metadata.configuration
    if feature in features.required_features(configuration, snapshot.schema):
        return "its properties or its schema ask for it"
    look = _TRACES.get(feature)
    return look(snapshot) if look is not None else None


def _deletion_vectors(snapshot: Snapshot) -> str | None:
    vectors = snapshot.live_files().table["deletionVector"]
    return "files have deletion vectors" if vectors.null_count < len(vectors) else None


def _column_mapping(snapshot: Snapshot) -> str | None:
    found = _has_key(snapshot.schema, (FIELD_ID, PHYSICAL_NAME))
    return "columns have physical names or ids" if found else None


def _type_changes(snapshot: Snapshot) -> str | None:
    found = _has_key(snapshot.schema, (TYPE_CHANGES,))
    return "columns record type changes" if found else None


def _checkpoint(snapshot: Snapshot) -> str | None:
    checkpoint = snapshot.segment.checkpoint
    unique = checkpoint is not None and bool(checkpoint.files[0].unique)
    return "its newest checkpoint is a V2 checkpoint" if unique else None


def _timestamps(snapshot: Snapshot) -> str | None:
    keys = (ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name)
    found = [key for key in keys if key in snapshot.metadata.configuration]
    return f"property {found[0]} is set" if found else None


def _protection(snapshot: Snapshot) -> str | None:
    key = CHECKPOINT_PROTECTION_BEFORE_VERSION.name
    return f"property {key} is set" if key in snapshot.metadata.configuration else None


def _domains(snapshot: Snapshot) -> str | None:
    found = sorted(snapshot.domains)
    return f"metadata domain {found[0]} is set" if found else None


_TRACES: dict[str, Callable[[Snapshot], str | None]] = {
    DELETION_VECTORS.name: _deletion_vectors,
    COLUMN_MAPPING.name: _column_mapping,
    TYPE_WIDENING.name: _type_changes,
    TYPE_WIDENING_PREVIEW.name: _type_changes,
    V2_CHECKPOINT.name: _checkpoint,
    IN_COMMIT_TIMESTAMP.name: _timestamps,
    CHECKPOINT_PROTECTION.name: _protection,
    DOMAIN_METADATA.name: _domains,
}


def _has_key(data_type: DataType, keys: tuple[str, ...]) -> bool:
    if isinstance(data_type, StructType):
        return any(
            any(key in field.metadata for key in keys) or _has_key(field.type, keys) for field in data_type
        )
    if isinstance(data_type, ArrayType):
        return _has_key(data_type.element, keys)
    if isinstance(data_type, MapType):
        return _has_key(data_type.key, keys) or _has_key(data_type.value, keys)
    return False
