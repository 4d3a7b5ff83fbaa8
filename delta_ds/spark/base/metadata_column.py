"""The `_metadata` column of reads that ask for it by the option `metadataColumns`."""

from __future__ import annotations

from collections.abc import Sequence

from delta_ds.kernel.format.schema.types import LONG, STRING, StructField, StructType

METADATA = "_metadata"
_FIELDS = (
    StructField("file_path", STRING, False),
    StructField("file_name", STRING, False),
    StructField("file_size", LONG, False),
    StructField("row_index", LONG, False),
    StructField("row_id", LONG),
    StructField("row_commit_version", LONG),
)


def metadata_field(names: Sequence[str]) -> tuple[StructField, ...]:
    """The column `_metadata` with these fields; nothing for no names."""
    if not names:
        return ()
    known = {field.name: field for field in _FIELDS}
    return (StructField(METADATA, StructType(tuple(known[name] for name in names)), False),)
