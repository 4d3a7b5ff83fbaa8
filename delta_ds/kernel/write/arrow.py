"""A whole write in one process, from Arrow: no Spark needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.options.write import parse_write_options
from delta_ds.kernel.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.schema.types import StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.write.finish import finish_write
from delta_ds.kernel.write.plan import plan_write
from delta_ds.kernel.write.task import write_rows

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader


def write_arrow(
    storage: Storage, rows: Rows, mode: str = "append", options: Mapping[str, Any] | None = None
) -> int | None:
    """Write rows and commit them.

    Parameters
    ----------
    storage
        The table's, or where it shall be.
    rows
        A table, a batch, or a reader, which is read only once the write is planned.
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
    if isinstance(rows, pa.Table):
        rows = rows.to_reader()
    batches = [rows] if isinstance(rows, pa.RecordBatch) else rows
    return write_batches(storage, schema_from_arrow(rows.schema), batches, mode, options)


def write_batches(
    storage: Storage,
    schema: StructType,
    batches: Iterable[pa.RecordBatch],
    mode: str = "append",
    options: Mapping[str, Any] | None = None,
) -> int | None:
    """Write rows whose Delta schema is known; otherwise as `write_arrow`.

    Parameters
    ----------
    schema
        Of the rows.
    batches
        The rows; looked at only once the write is planned.
    """
    if mode not in ("append", "overwrite"):
        raise InvalidOptionError(f"the mode of a write is append or overwrite, not {mode!r}")
    overwrite = mode == "overwrite"
    parsed = parse_write_options({**(options or {}), "path": storage.url}, overwrite=overwrite)
    plan = plan_write(storage, schema, parsed, overwrite=overwrite)
    return finish_write(plan, [write_rows(plan, batches)])
