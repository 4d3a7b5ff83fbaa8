"""Write Arrow data in one process, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from delta_ds.conditions.record import OPTION_OF_THE_LOG
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.format.operations import WRITE
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.settings import REFUSE
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.transaction.write.finish import finish_write
from delta_ds.kernel.transaction.write.intent import WriteIntent, batch_intent, find_target
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.kernel.transaction.write.task import write_rows

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
        `append`, `overwrite`, `ignore`, `error` or `errorifexists`.
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
    total = getattr(rows, "num_rows", None)
    given = as_arrow(rows)
    batches = [given] if isinstance(given, pa.RecordBatch) else given
    schema = schema_from_arrow(given.schema)
    return write_batches(
        transaction, schema, batches, mode, options, total=total if isinstance(total, int) else None
    )


def as_arrow(rows: Rows) -> pa.RecordBatch | pa.RecordBatchReader:
    """Rows as they are given, as Arrow has them; nothing is read yet."""
    if isinstance(rows, (pa.RecordBatch, pa.RecordBatchReader)):
        return rows
    if type(rows).__module__.partition(".")[0] == "pandas":
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return rows.to_reader(_BATCH_ROWS)
    return pa.RecordBatchReader.from_stream(rows)


def arrow_intent(url: str, mode: str, options: Mapping[str, Any] | None) -> WriteIntent:
    """What a write of Arrow data to a table, by its address, is asked to do; arguments as for `write_arrow`.

    Raises
    ------
    InvalidOptionError
        An option is unknown or has a wrong value, or is one of the store.
    """
    for name in options or {}:
        if is_of_store(name) or name.lower() in ("path", "paths"):
            raise OPTION_OF_THE_LOG(option=name)
    return batch_intent({**(options or {}), "path": url}, mode, unknown=REFUSE)


def write_batches(
    transaction: Transaction,
    schema: StructType,
    batches: Iterable[pa.RecordBatch],
    mode: str = "append",
    options: Mapping[str, Any] | None = None,
    *,
    total: int | None = None,
) -> int | None:
    """Write rows whose Delta schema is known; otherwise as `write_arrow`.

    Parameters
    ----------
    schema
        Of the rows.
    batches
        The rows; looked at only once the write is planned.
    total
        How many there are; None where that is not known.
    """
    target = find_target(arrow_intent(transaction.storage.url, mode, options), transaction)
    if target.nothing_to_do:
        return None
    plan = plan_write(target, schema)
    with Work(WRITE.name, transaction.storage.url) as work:
        with work.phase("writing", total=total, unit="rows") as phase:
            written = write_rows(plan, phase.rows(batches))
        with work.phase("committing", unit="commits"):
            return finish_write(plan, [written], transaction)
