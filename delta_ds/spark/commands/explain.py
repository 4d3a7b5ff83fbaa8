"""EXPLAIN of DELETE, UPDATE and MERGE: who finds the rows of a command, in which files, and why.

A command that is explained takes its course to the place where it would look for its rows, and ends there. It has read
the log by then, and no row; nothing was written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from delta_ds.redaction import redacted

if TYPE_CHECKING:
    from delta_ds.kernel.commands.dml.candidates import CandidateFiles
    from delta_ds.spark.commands.dml_target import DmlTarget

# What is known of the command that is explained, by name; None: no command is.
_told: ContextVar[dict[str, str] | None] = ContextVar("told", default=None)


class _Ended(Exception):
    """Ends a command that is explained."""


def explained(command: Callable[[], object]) -> str:
    """What a command would do.

    Parameters
    ----------
    command
        Runs it, in this thread.

    Returns
    -------
    str
        `Name: value` with commas between, as Spark writes it of a scan: `Table`, `Version`, `Files` (those that may
        hold such rows, and how many there are), `Rows` (how they are found) and `Reason` (why Arrow cannot).

    Raises
    ------
    DeltaError
        As the command, before it looks for its rows.
    """
    told: dict[str, str] = {}
    before = _told.set(told)
    try:
        command()
        told["Rows"] = "none"
    except _Ended:
        pass  # told by who ended it
    finally:
        _told.reset(before)
    return redacted(", ".join(f"{name}: {text}" for name, text in told.items()))


def begin_explained(target: DmlTarget) -> None:
    """Tell which version of which table a command changes, if it is explained."""
    told = _told.get()
    if told is not None:
        told |= {"Table": target.handle.where, "Version": str(target.version)}


def end_if_explained(
    target: DmlTarget, rows: str, files: CandidateFiles | None = None, reason: str = ""
) -> None:
    """End the command here, if it is explained.

    Parameters
    ----------
    rows
        How it finds its rows.
    files
        Where it looks for them; None: that is not known yet.
    reason
        Why Arrow cannot find them.
    """
    told = _told.get()
    if told is None:
        return
    if files is not None:
        told["Files"] = f"{len(files)} of {len(target.all_files)}"
    told["Rows"] = rows
    if reason:
        told["Reason"] = reason
    raise _Ended
