"""DELETE, UPDATE and MERGE of a client, run by the kernel in a process of a server of others.

Such a server runs nothing of this package but its data source. A command whose expressions the kernel reads is sent
there as a whole, and is done where the log and the files are; the rows of a MERGE come with the job that sends it. What
the kernel cannot do it refuses before anything is written, and the client lets queries of Spark find the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.dml import COMMAND_NEEDS_SPARK
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.dml.delete import delete_rows
from delta_ds.kernel.commands.dml.in_process import CommandSettings
from delta_ds.kernel.commands.dml.update import update_rows
from delta_ds.kernel.commands.merge.clauses import MergeRequest, read_source
from delta_ds.kernel.commands.merge.command import merge
from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of, is_enabled
from delta_ds.kernel.format.operations import DELETE, MERGE, UPDATE
from delta_ds.kernel.format.schema.types import StructType, without_metadata

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression


def delete_in_kernel(
    log: DeltaLog, predicate: Expression | None, settings: CommandSettings, text: str | None
) -> None:
    """See `kernel.commands.dml.delete.delete_rows`."""
    _check(log, settings, DELETE.name)
    delete_rows(log, predicate, settings, text)


def update_in_kernel(
    log: DeltaLog,
    updates: Mapping[str, str | Expression],
    predicate: Expression | None,
    settings: CommandSettings,
    text: str | None,
) -> None:
    """See `kernel.commands.dml.update.update_rows`."""
    _check(log, settings, UPDATE.name)
    update_rows(log, updates, predicate, settings, text)


def merge_in_kernel(log: DeltaLog, rows: pa.Table, request: MergeRequest, schema: StructType) -> None:
    """See `kernel.commands.merge.command.merge`.

    Parameters
    ----------
    rows
        The source.
    schema
        Its columns, as Spark has them.
    """
    _check(log, request.settings, MERGE.name)
    try:
        source = read_source(rows, request.settings.timezone)
    except (ValueError, TypeError, NotImplementedError, DeltaError) as error:
        raise _needs_spark(
            log, MERGE.name, f"types of the source, which Arrow does not take: {error}"
        ) from error
    given, found = (
        [(field.name, without_metadata(field.type)) for field in each] for each in (schema, source.schema)
    )
    if given != found:
        raise _needs_spark(log, MERGE.name, "types of the source, which Arrow holds in another form")
    merge(log, source, request)


def _check(log: DeltaLog, settings: CommandSettings, operation: str) -> None:
    facts = settings.facts
    compaction = auto_compaction_of({} if facts is None else facts.settings)
    if is_enabled(log.open_snapshot(settings.version).metadata.configuration, compaction):
        raise _needs_spark(log, operation, "files are compacted after it")


def _needs_spark(log: DeltaLog, operation: str, reason: str) -> DeltaError:
    return COMMAND_NEEDS_SPARK(operation=operation, table=log.storage.url, reason=reason)
