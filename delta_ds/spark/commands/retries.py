"""Whole commands run again where other commits contradicted them, as their user would.

Only what is a pure function of the table is repeated: what reads anything else might do something else the next time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from delta_ds.events.commands import COMMAND_REPEATED
from delta_ds.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from delta_ds.spark.base.session_conf import RETRIES, RETRIES_CONF, whole_number
from delta_ds.spark.commands.dml_command import DmlExecution

if TYPE_CHECKING:
    from delta_ds.spark.commands.handle import Handle

_Answer = TypeVar("_Answer")

# Rows came, went or changed. Another schema or protocol is for the user to look at.
_REPEATED = (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


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
    attempts = 1 + whole_number(handle.spark, RETRIES_CONF, RETRIES)
    for attempt in range(1, attempts + 1):
        change = DmlExecution(handle, operation, removes=removes, txn=txn)
        try:
            with change:
                return done if change.done else work(change)
        except _REPEATED as error:
            if attempt == attempts or not change.repeatable:
                raise
            pause = random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt))
            COMMAND_REPEATED.log(
                table=handle.where, operation=operation, attempt=attempt + 1, attempts=attempts, reason=error
            )
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")
