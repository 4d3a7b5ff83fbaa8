"""`blame`: the rows of a table, each with the commit that last wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.kernel.blame.commits import BLAME_FIELDS
from delta_ds.spark import log_calls
from delta_ds.spark.commands.blame_source import ASKED, FORMAT, Asked, register_source
from delta_ds.spark.commands.delete import resolve_condition
from delta_ds.spark.commands.dml_target import DmlTarget
from delta_ds.spark.commands.predicates import columns_of, predicate_of
from delta_ds.spark.connect_bridge import ask
from delta_ds.spark.engines.hadoop_settings import with_session_settings
from delta_ds.spark.engines.sealed import seal
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.schema import quoted
from delta_ds.spark.session_conf import time_zone

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.seam.engine import Resolved

_WHAT = "BLAME"


def run_blame(
    handle: Handle,
    condition: str | Column | None,
    columns: Sequence[str] | None,
    version: int | None,
    timestamp: str | datetime | None,
) -> DataFrame:
    """The rows that match a condition, with their commits; see `DeltaTable.blame`."""
    zone = time_zone(handle.spark)
    at, names = ask(handle.log, log_calls.blamed, columns, version, timestamp, zone)
    if condition is None:
        found = _frame(handle, Asked(at, None, tuple(names), zone))
        return found.alias(handle.alias) if handle.alias else found
    target = DmlTarget(handle, at)
    sample = target.frame(target.no_files)
    resolved = resolve_condition(target, sample, condition, _WHAT)
    read = _columns_read(target, resolved, names)
    found = _frame(handle, Asked(at, predicate_of(target, resolved), read, zone))
    found = target.engine.with_ids_of(found, sample)
    rows = (found.alias(handle.alias) if handle.alias else found).where(resolved.column)
    if len(read) > len(names):
        rows = rows.select(*(quoted(name) for name in (*names, *BLAME_FIELDS.names)))
    return rows


def _columns_read(target: DmlTarget, condition: Resolved, names: Sequence[str]) -> tuple[str, ...]:
    """The columns to show and those that a condition reads; all of them where that is not known."""
    known = columns_of(target, condition)
    if known is None:
        return (*names, *(name for name in target.schema.names if name not in names))
    lower = {name.lower() for name in known}
    return (*names, *(n for n in target.schema.names if n not in names and n.lower() in lower))


def _frame(handle: Handle, asked: Asked) -> DataFrame:
    register_source(handle.spark)
    options = seal(handle.spark, with_session_settings(handle.spark, handle.options), FORMAT)
    with delta_errors():
        return handle.spark.read.format(FORMAT).options(**options, **{ASKED: asked.packed()}).load()
