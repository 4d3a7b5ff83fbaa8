"""Commands of a session, done again after conflicts as often as its setting says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from delta_ds.kernel.commands.dml.commit import run_repeated
from delta_ds.spark.base.session_conf import RETRIES, RETRIES_CONF, whole_number
from delta_ds.spark.commands.dml_command import DmlExecution

if TYPE_CHECKING:
    from delta_ds.spark.commands.handle import Handle

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
