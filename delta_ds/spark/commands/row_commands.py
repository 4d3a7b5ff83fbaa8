"""Where commands that change rows run: at the server of a client, or here, again after conflicts as often as is set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.kernel.commands.dml.commit import run_repeated
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.spark.base.session_conf import RETRIES, RETRIES_CONF, whole_number
from delta_ds.spark.commands.dml_command import DmlExecution
from delta_ds.spark.commands.dml_target import is_explained
from delta_ds.spark.commands.kernel_command import KernelCommand
from delta_ds.spark.engines.connect.connect_bridge import ServerLog
from delta_ds.spark.engines.connect.expressions import (
    FramesOfTable,
    plans_of,
    plans_of_columns,
    renamed,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.commands.merge.clauses import Do, When
    from delta_ds.spark.commands.handle import Handle

# The qualifier of columns of a client's frames of the table.
OF_TABLE = f"{HIDDEN}table"


def run_at_server(
    handle: Handle,
    operation: str,
    condition: object,
    *,
    assignments: Mapping[Any, object] | None = None,
    clauses: Iterable[tuple[When, Do, object, Mapping[Any, object] | None]] = (),
    evolve: bool = False,
    txn: tuple[str, int] | None = None,
    source: DataFrame | None = None,
) -> tuple[int | None, ...] | None:
    """What the server counted; None: it does not run this command for clients, so the client does.

    Parameters
    ----------
    handle
        The table.
    operation
        `DELETE`, `UPDATE` or `MERGE`.
    condition, assignments, evolve, txn, source
        As of the functions that run these.
    clauses
        For which rows, what, the condition and what columns get.

    Raises
    ------
    DeltaError
        As of these functions.
    """
    log = handle.log
    if not isinstance(log, ServerLog) or is_explained():
        return None
    clauses = list(clauses)
    if not log.answers_calls:
        in_kernel = KernelCommand(handle, log, operation, txn)
        if operation == MERGE.name:
            assert source is not None  # which a MERGE has
            return None if evolve else in_kernel.merge(source, condition, clauses)
        return in_kernel.change(condition, assignments)
    told = _Told()
    command: dict[str, Any] = {
        "operation": operation,
        "table": dict(handle.options),
        "alias": handle.alias,
        "condition": told.expression(condition),
        "assignments": told.assignments(assignments),
        "clauses": [
            (when, do, told.expression(taken), told.assignments(values))
            for when, do, taken, values in clauses
        ],
        "evolve": evolve,
        "txn": txn,
    }
    given = FramesOfTable(handle.spark, handle.given)
    columns = [given.columns(column, source) for column in told.columns]
    named = plans_of_columns(handle.spark, columns)
    if told.names_columns or named is None:
        return None
    if named:
        of_source = plans_of([] if source is None else [source])
        of_table = named & given.plans
        # What both sides are made of, and what neither is, Spark itself says to the client.
        if of_table & of_source or named - of_table - of_source:
            return None
        columns = renamed(columns, of_table, OF_TABLE)
    counts: tuple[int | None, ...] = log.change_rows(command, columns, source)
    return counts


class _Told:
    """Expressions as they travel: text as it is, anything else by its number.

    Attributes
    ----------
    columns
        The expressions with a number.
    names_columns
        Whether what gets a value is named by a `Column`.
    """

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.names_columns = False

    def expression(self, given: object) -> str | int | None:
        """None: there is none."""
        return given if given is None or isinstance(given, str) else self._value(given)

    def assignments(self, given: Mapping[Any, object] | None) -> list[tuple[str, str | int]] | None:
        """By what gets a value; None: there are none."""
        if given is None:
            return None
        self.names_columns |= not all(isinstance(name, str) for name in given)
        return [
            (str(name), value if isinstance(value, str) else self._value(value))
            for name, value in given.items()
        ]

    def _value(self, given: object) -> int:
        from pyspark.sql import Column
        from pyspark.sql import functions as F

        self.columns.append(given if isinstance(given, Column) else F.lit(given))
        return len(self.columns) - 1


class Received:
    """The expressions of a command on the server.

    Parameters
    ----------
    columns
        Those with a number.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def expression(self, told: str | int | None) -> Any:
        """See `_Told.expression`."""
        return self._columns[told] if isinstance(told, int) else told

    def assignments(self, told: Sequence[tuple[str, str | int]] | None) -> dict[str, Any] | None:
        """See `_Told.assignments`."""
        return None if told is None else {name: self.expression(value) for name, value in told}


_Answer = TypeVar("_Answer")


def run_command(
    handle: Handle,
    operation: str,
    work: Callable[[DmlExecution], _Answer],
    done: _Answer,
    *,
    removes: bool = True,
    txn: tuple[str, int] | None = None,
) -> _Answer:
    """Run a command, and again on the newest version where others have changed rows that it reads or changes.

    Parameters
    ----------
    handle, operation, removes, txn
        See `DmlExecution`.
    work
        Does it. Tells by `DmlExecution.repeatable` whether it may be done again.
    done
        The answer where the session's transaction is in the table already.

    Raises
    ------
    DeltaConcurrentModificationException
        The command may not be repeated, or has been as often as `spark.pydelta.retries` says. Nothing was written.
    """
    last: list[DmlExecution] = []

    def attempt() -> _Answer:
        last[:] = [DmlExecution(handle, operation, removes=removes, txn=txn)]
        with last[0] as change:
            return done if change.done else work(change)

    return run_repeated(
        attempt,
        whole_number(handle.spark, RETRIES_CONF, RETRIES),
        table=handle.where,
        operation=operation,
        repeatable=lambda: last[0].repeatable,
    )
