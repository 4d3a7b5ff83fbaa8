"""Write Arrow data in one process, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.options.session_facts import REFUSE
from delta_ds.kernel.options.write import parse_write_options
from delta_ds.kernel.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.schema.types import StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.write.finish import finish_write
from delta_ds.kernel.write.plan import newest_snapshot, plan_write
from delta_ds.kernel.write.task import write_rows

_BATCH_ROWS = 1 << 16


class ArrowStream(Protocol):
    """Whatever hands over rows by Arrow's PyCapsule interface: DataFrames of pandas and polars, relations of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream


def write_arrow(
    transaction: Transaction, rows: Rows, mode: str = "append", options: Mapping[str, Any] | None = None
) -> int | None:
    """Write rows and commit them.

    Parameters
    ----------
    transaction
        On the version to start from, or for a new table.
    rows
        A table, a batch, or a reader, which is read only once the write is planned; or an `ArrowStream`. The index of
        a pandas DataFrame is no column.
    mode
        `append` or `overwrite`.
    options
        As for `df.write`, but for the path; see `WRITE_OPTIONS`.

    Returns
    -------
    int or None
        The version; None where there was nothing to commit.

    Raises
    ------
    DeltaError
        As `plan_write`, `write_rows` and `finish_write`; nothing was written, unless it is an
        `UncertainWriteError`.
    """
    given = _arrow(rows)
    batches = [given] if isinstance(given, pa.RecordBatch) else given
    schema = schema_from_arrow(given.schema)
    return write_batches(transaction.storage, schema, batches, mode, options, transaction)


def _arrow(rows: Rows) -> pa.RecordBatch | pa.RecordBatchReader:
    if isinstance(rows, (pa.RecordBatch, pa.RecordBatchReader)):
        return rows
    if type(rows).__module__.partition(".")[0] == "pandas":
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return rows.to_reader(_BATCH_ROWS)
    return pa.RecordBatchReader.from_stream(rows)


def write_batches(
    storage: Storage,
    schema: StructType,
    batches: Iterable[pa.RecordBatch],
    mode: str = "append",
    options: Mapping[str, Any] | None = None,
    transaction: Transaction | None = None,
) -> int | None:
    """Write rows whose Delta schema is known; otherwise as `write_arrow`.

    Parameters
    ----------
    schema
        Of the rows.
    batches
        The rows; looked at only once the write is planned.
    transaction
        On the version to start from, where one is open already; else the newest is looked up.
    """
    if mode not in ("append", "overwrite"):
        raise InvalidOptionError(f"the mode of a write is append or overwrite, not {mode!r}")
    overwrite = mode == "overwrite"
    if transaction is None:
        transaction = Transaction(storage, newest_snapshot(storage))
    parsed = parse_write_options(
        {**(options or {}), "path": storage.url}, overwrite=overwrite, unknown=REFUSE
    )
    plan = plan_write(storage, transaction.base, schema, parsed, overwrite=overwrite)
    return finish_write(plan, [write_rows(plan, batches)], transaction)
