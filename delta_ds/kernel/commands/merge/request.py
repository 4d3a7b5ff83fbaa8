"""What a MERGE is asked to do, the rows of its source, and what it did.

Source: delta-spark, `MergeIntoCommand`; delta-rs, `MergeMetrics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_ds.kernel.commands.dml.commit import Committed
from delta_ds.kernel.commands.dml.in_process import CommandSettings
from delta_ds.kernel.commands.merge.clauses import Clause
from delta_ds.kernel.files.rows.casts import Casting, compile_column
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import StructType, arrow_type
from delta_ds.kernel.transaction.write.arrow import Rows, as_arrow
from delta_ds.kernel.transaction.write.schema_enforcement import data_schema
from delta_ds.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a MERGE did.

    Attributes
    ----------
    version
        What was committed; None where nothing changed, unless the command counts as a transaction: that is recorded.
    num_source_rows
        Rows of the source.
    num_target_rows_inserted, num_target_rows_updated, num_target_rows_deleted
        Rows that clauses made, changed and removed.
    num_target_rows_copied
        Rows that were written again as they are, as their files were replaced.
    num_output_rows
        All rows that were written.
    num_target_files_scanned, num_target_files_skipped_during_scan
        Files of the table that were looked into, and those that cannot hold a row that matters.
    num_target_files_added, num_target_files_removed
        Files of the commit.
    scan_time_ms, rewrite_time_ms, execution_time_ms
        What it took to find the rows and to write files, and all of it. Threads do the two at the same time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> merger = DeltaLog("/data/orders").merge(pa.table({"id": [1, 3]}), "target.id = source.id")
    >>> result = merger.when_matched_delete().execute()
    >>> result.version, result.num_target_rows_deleted
    (2, 2)
    """

    version: int | None
    num_source_rows: int = 0
    num_target_rows_inserted: int = 0
    num_target_rows_updated: int = 0
    num_target_rows_deleted: int = 0
    num_target_rows_copied: int = 0
    num_output_rows: int = 0
    num_target_files_scanned: int = 0
    num_target_files_skipped_during_scan: int = 0
    num_target_files_added: int = 0
    num_target_files_removed: int = 0
    scan_time_ms: int = 0
    rewrite_time_ms: int = 0
    execution_time_ms: int = 0


def counted(result: MergeResult, committed: Committed) -> MergeResult:
    """A result with what the history says of the commit."""
    metrics: Mapping[str, Any] = committed.metrics
    found = {name: metrics.get(metric, 0) for name, metric in _METRICS.items()}
    return replace(result, version=committed.version, **found)


_METRICS = {
    "num_target_rows_inserted": "numTargetRowsInserted",
    "num_target_rows_updated": "numTargetRowsUpdated",
    "num_target_rows_deleted": "numTargetRowsDeleted",
    "num_target_rows_copied": "numTargetRowsCopied",
    "num_output_rows": "numOutputRows",
    "num_target_files_added": "numTargetFilesAdded",
    "num_target_files_removed": "numTargetFilesRemoved",
    "scan_time_ms": "scanTimeMs",
    "rewrite_time_ms": "rewriteTimeMs",
    "execution_time_ms": "executionTimeMs",
}


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What a MERGE is asked to do.

    Attributes
    ----------
    predicate
        The search condition, in Spark SQL.
    clauses
        In the order they were given.
    source_alias, target_alias
        By which columns may be qualified.
    merge_schema
        Whether the table takes columns of the source that it does not have.
    settings
        What is said beside that.
    """

    predicate: str
    clauses: Sequence[Clause] = ()
    source_alias: str = "source"
    target_alias: str = "target"
    merge_schema: bool = False
    settings: CommandSettings = field(default_factory=CommandSettings)


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The rows of a source.

    Attributes
    ----------
    schema
        Its columns.
    rows
        All of them, of `arrow_type` of the schema's types; columns are of one chunk where one can hold them.
    """

    schema: StructType
    rows: pa.Table


def read_source(rows: Rows, timezone: str) -> MergeSource:
    """Read a source to its end.

    Raises
    ------
    SchemaError
        A column has a type that no table has.
    """
    table = rows if isinstance(rows, pa.Table) else _read(rows)
    schema = data_schema(schema_from_arrow(table.schema))
    casting = Casting(timezone)
    columns = []
    for target, column in zip(schema, table.columns, strict=True):
        converter = compile_column(column.type, target, casting, target.name)
        kind = arrow_type(target.type)
        chunks = column.chunks if converter is None else [converter(chunk) for chunk in column.chunks]
        columns.append(pa.chunked_array(chunks, kind))
    return MergeSource(schema, pa.table(columns, names=schema.names).combine_chunks())


def _read(rows: Rows) -> pa.Table:
    found = as_arrow(rows)
    return pa.Table.from_batches([found]) if isinstance(found, pa.RecordBatch) else found.read_all()
