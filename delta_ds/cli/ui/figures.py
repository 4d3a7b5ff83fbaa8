"""`FileFigures`: bytes, rows and partitions of all files of a version, by its log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.data.values.statistics import load_statistics
from delta_ds.kernel.scan.partitions import partition_tuples
from delta_ds.kernel.scan.skipping import row_numbers
from delta_ds.kernel.schema.types import STRING
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FileFigures:
    """The files of a version.

    Attributes
    ----------
    table
        A row a file, in log order: `path` string; `size`, `rows`, `deleted`, `modified`, `partition` int64: bytes, live
        rows (null: not known), rows that a deletion vector deletes, ms since 1970, the row number in `partitions`.
    partitions
        A row a distinct tuple of partition values: `values` struct of texts by logical name (absent for a table
        without partitions), and `files`, `bytes`, `rows`, `deleted` int64; `rows` null: not known of some file.
    """

    table: pa.Table
    partitions: pa.Table

    @classmethod
    def of(cls, snapshot: Snapshot) -> FileFigures:
        """Those of a snapshot, by its log alone; linear in files, without a Python object a file."""
        files = snapshot.live_files()
        stored = load_statistics(files, row_numbers(files.num_rows), []).num_records
        deleted = pc.struct_field(files.table["deletionVector"].combine_chunks(), "cardinality")
        deleted = pc.fill_null(deleted, 0)
        physical = zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True)
        wanted = {name: (column, STRING) for name, column in physical}
        tuples = partition_tuples(files, wanted, frozenset(), "UTC")
        table = pa.table(
            {
                "path": files.table["path"],
                "size": files.table["size"],
                "rows": pc.subtract(stored, deleted),
                "deleted": deleted,
                "modified": files.table["modificationTime"],
                "partition": tuples.code,
            }
        )
        return cls(table, _partitions(table, tuples.table if wanted else None))

    def totals(self) -> dict[str, Any]:
        """How many files, bytes and rows; rows None where the log does not count all."""
        return totals(self.table)


def _partitions(table: pa.Table, values: pa.Table | None) -> pa.Table:
    found = table.group_by("partition").aggregate(
        [("path", "count"), ("size", "sum"), ("deleted", "sum")]
        + [("rows", "sum", pc.ScalarAggregateOptions(skip_nulls=False))]
    )
    columns = {"files": "path_count", "bytes": "size_sum", "rows": "rows_sum", "deleted": "deleted_sum"}
    out = pa.table(
        {"partition": found["partition"], **{new: found[old] for new, old in columns.items()}}
    ).sort_by("partition")
    if values is None:
        return out
    texts = values.take(out["partition"])
    return out.append_column(
        "values", pa.StructArray.from_arrays([c.combine_chunks() for c in texts.columns], texts.column_names)
    )


def totals(table: pa.Table) -> dict[str, Any]:
    """How many files, bytes and rows some files have; rows None where the log does not count all."""
    unknown = table["rows"].null_count
    return {
        "files": table.num_rows,
        "bytes": pc.sum(table["size"]).as_py() or 0,
        "rows": None if unknown else pc.sum(table["rows"]).as_py() or 0,
        "deleted": pc.sum(table["deleted"]).as_py() or 0,
    }
