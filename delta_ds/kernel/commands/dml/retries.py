"""Whole commands run again where other commits contradicted them, as their user would.

Only what is a pure function of the table is repeated: what reads anything else might do something else the next time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from delta_ds.events.commands import COMMAND_REPEATED
from delta_ds.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)

_Answer = TypeVar("_Answer")

# Rows came, went or changed. Another schema or protocol is for the user to look at.
_REPEATED = (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


def run_repeated(
    attempt: Callable[[], _Answer],
    retries: int,
    *,
    table: str,
    operation: str,
    repeatable: Callable[[], bool] = lambda: True,
) -> _Answer:
    """Do something, and again after a pause where others have changed rows that it reads or changes.

    Parameters
    ----------
    attempt
        Begins anew on the newest version each time.
    retries
        How often it is done again at most.
    table, operation
        For the log.
    repeatable
        Whether the attempt that failed may be repeated.

    Raises
    ------
    DeltaConcurrentModificationException
        That of the last attempt.
    """
    attempts = 1 + retries
    for number in range(1, attempts + 1):
        pause = random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**number))
        try:
            return attempt()
        except _REPEATED as error:
            if number == attempts or not repeatable():
                raise
            COMMAND_REPEATED.log(
                table=table, operation=operation, attempt=number + 1, attempts=attempts, reason=error
            )
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")
