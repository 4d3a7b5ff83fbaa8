"""Whether a stream can continue after a schema change, and the error if not.

Source: delta-spark, `DeltaSource.checkReadIncompatibleSchemaChanges`.
"""

from __future__ import annotations

from delta_ds.conditions.streaming import (
    SCHEMA_CHANGED_IN_STREAM,
    SCHEMA_CHANGED_WITH_STARTING_OPTIONS,
    STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.actions import Metadata
from delta_ds.kernel.features import TYPE_WIDENING
from delta_ds.kernel.schema.version_changes import MappedChanges, incompatibility, mapped_changes
from delta_ds.kernel.streaming.offsets import different_table
from delta_ds.kernel.table_state import TableState


def check_schema(read_state: TableState, metadata: Metadata, version: int, *, has_start: bool) -> None:
    """Refuse the metadata of another version if its data cannot be read with the schema of the stream.

    Parameters
    ----------
    read_state
        What the stream reads with.
    metadata, version
        Of a commit on the way.
    has_start
        Whether the stream was told where to begin, for the advice.

    Raises
    ------
    SchemaError
        With the advice to restart where that helps: an added column is read after a restart.
    UnsupportedOperationError
        It is another table.
    """
    if metadata.id != read_state.metadata.id:
        raise different_table(read_state.table, metadata.id, read_state.metadata.id)
    backfilling = version < read_state.version
    old, new = (metadata, read_state.metadata) if backfilling else (read_state.metadata, metadata)
    changes = mapped_changes(old, new)
    if changes is None or changes.renamed or changes.dropped:
        raise _needs_schema_log(read_state, metadata, version, changes)
    problem = incompatibility(
        metadata.schema, read_state.schema, widening=backfilling and read_state.supports(TYPE_WIDENING)
    )
    if problem is None and metadata.partition_columns != read_state.metadata.partition_columns:
        problem = "the partition columns are others"
    if problem is not None:
        raise _changed_error(read_state, metadata, version, problem, has_start)


def readable_with(metadata: Metadata, later: TableState) -> bool:
    """Whether data of one version can be read with the schema of a later one."""
    changes = mapped_changes(metadata, later.metadata)
    if changes is None or changes.renamed or changes.dropped:
        return False
    return incompatibility(metadata.schema, later.schema, widening=later.supports(TYPE_WIDENING)) is None


def _needs_schema_log(
    read_state: TableState, metadata: Metadata, version: int, changes: MappedChanges | None
) -> SchemaError:
    what = changes.text if changes else "the column mapping or the partitioning changed"
    return STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG(
        version=version,
        stream_version=read_state.version,
        table=read_state.table,
        what=what,
        read_schema=read_state.schema,
        data_schema=metadata.schema,
    )


def _changed_error(
    read_state: TableState, metadata: Metadata, version: int, problem: str, has_start: bool
) -> SchemaError:
    advice = "Start the query again with a new readStream...load(), which takes the new schema"
    if version < read_state.version:
        advice = "The change cannot be read across: begin with a new checkpoint"
        if has_start:
            advice += f" and a startingVersion after {version}"
    changed = SCHEMA_CHANGED_WITH_STARTING_OPTIONS if has_start else SCHEMA_CHANGED_IN_STREAM
    return changed(
        version=version,
        table=read_state.table,
        problem=problem,
        advice=advice,
        read_schema=read_state.schema,
        data_schema=metadata.schema,
    )
