"""UPDATE in one process, without Spark: threads find the rows, compute their new values and rewrite the files.

Source: delta-spark, `UpdateCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.dml.assignments import Assignments
from delta_ds.kernel.commands.dml.candidates import candidate_files
from delta_ds.kernel.commands.dml.changed_rows import UPDATE as ROW_CHANGES
from delta_ds.kernel.commands.dml.delete import UpdateResult, counted
from delta_ds.kernel.commands.dml.in_process import CommandSettings, InProcessDml, run
from delta_ds.kernel.commands.dml.plan import generated_columns
from delta_ds.kernel.commands.dml.row_finder import RowFinder, bound_condition
from delta_ds.kernel.files.rows.expressions import at_timestamp
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.expressions.sql import parse_predicate

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.transaction.table_log import TableLog


def update(
    log: TableLog,
    updates: Mapping[str, str | Expression] | None = None,
    new_values: Mapping[str, Any] | None = None,
    predicate: str | Expression | None = None,
    *,
    timezone: str = "UTC",
    user_metadata: str | None = None,
    engine_info: str | None = None,
    txn: tuple[str, int] | None = None,
    retries: int = 0,
) -> UpdateResult:
    """Give columns new values in the rows for which a predicate is true, as one commit.

    Constraints, generated columns, deletion vectors, change files and row ids are honoured as by `DeltaTable.update`.

    Parameters
    ----------
    log
        The table.
    updates
        By column (`s.a` for a field of a struct) an expression in Spark SQL over the row as it was, or `DEFAULT`.
    new_values
        By column a value of Python.
    predicate
        In Spark SQL; None: all rows.
    timezone
        The session time zone in which all is meant.
    user_metadata
        Free text for the history.
    engine_info
        Who changes the table, for the history.
    txn
        Application and version that the command counts as: it is done once, however often it is tried.
    retries
        How often it is done again, on the newest version, after commits of others contradicted it.

    Raises
    ------
    InvalidOptionError
        No column is given a value, or a value is none for its column.
    PredicateError, UnsupportedFeatureError
        An expression cannot be read, or evaluated without Spark, or not on some row.
    SchemaError
        A column is not there or is given twice, or a value does not fit.
    InvariantViolationError
        A new row breaks a constraint, or a value does not fit into its column.
    AppendOnlyError
        Rows of the table must not be changed.
    DeltaConcurrentModificationException
        Another commit contradicts the update. Nothing was changed, nothing is left behind, as with all errors.

    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog(tempfile.mkdtemp())
    >>> log.write(pa.table({"id": [1, 2, 3]}))
    0
    >>> update(log, {"id": "id * 10"}, predicate="id > 1").rows
    2
    """
    settings = CommandSettings(timezone, user_metadata, engine_info, txn, retries)
    return update_rows(log, updates or {}, predicate, settings, new_values=new_values)


def update_rows(
    log: TableLog,
    updates: Mapping[str, str | Expression],
    predicate: str | Expression | None,
    settings: CommandSettings,
    text: str | None = None,
    *,
    new_values: Mapping[str, Any] | None = None,
) -> UpdateResult:
    """As `update`.

    Parameters
    ----------
    text
        The predicate as history tells it; None: as it is.
    """
    if not updates and not new_values:
        raise InvalidOptionError(
            f"update of {log.storage.url} needs updates={{'column': 'expression'}} or "
            "new_values={'column': value}; nothing was changed"
        )
    tree = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    shown = text or (None if predicate is None else str(predicate))
    work = partial(_update, updates=updates, new_values=new_values or {}, tree=tree, text=shown)
    return run(log, operations.UPDATE.name, settings, work, UpdateResult(None, 0))


def _update(
    change: InProcessDml,
    updates: Mapping[str, str | Expression],
    new_values: Mapping[str, Any],
    tree: Expression | None,
    text: str | None,
) -> UpdateResult:
    snapshot, timezone = change.snapshot, change.settings.timezone
    assignments = Assignments(snapshot.table_state, operations.UPDATE.name, timezone, change.now)
    values = assignments.plan(updates, new_values)
    given = set(values.names)
    change.plan_rows(computed=[name for name in generated_columns(snapshot) if name not in given])
    bound = None
    if tree is not None:
        tree = at_timestamp(tree, change.now)
        bound = bound_condition(
            tree,
            snapshot.schema,
            timezone,
            operation="an UPDATE of",
            table=snapshot.storage.url,
            undone="Nothing was changed",
        )
    files = candidate_files(snapshot, tree, timezone)
    finder = RowFinder.of(snapshot, bound, timezone, values)
    found = change.rewrite(finder.rewrite, files, [ROW_CHANGES])
    if not found.rows and not change.settings.txn:
        return UpdateResult(None, 0)
    committed = change.commit(
        tree,
        files=files,
        found=found,
        rows=change.scope(tree),
        parameters={"predicate": json.dumps([text] if text else [], ensure_ascii=False)},
        metrics={
            "numUpdatedRows": found.rows,
            "numCopiedRows": found.result.rows - found.rows,
            **change.times(),
        },
    )
    return counted(UpdateResult, committed, found.rows)
