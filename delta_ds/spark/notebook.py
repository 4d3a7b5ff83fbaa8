"""`%load_ext delta_ds`: the magic `%%delta`, which runs a cell as SQL in the active session and shows its rows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.card import MOST_ROWS, Card, Shown, table_of
from delta_ds.spark.register import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAGIC = "delta"
_USAGE = "%%delta [--limit N] [--into NAME], and a statement below; or %delta STATEMENT"
# Those that the magic has registered.
_registered: WeakSet[SparkSession] = WeakSet()


class Shell(Protocol):
    """What of IPython's shell is used."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        """Make a function a magic."""


class Rows(Shown):
    """The first rows of a statement, as a notebook shows them; `frame` is the DataFrame with all of them."""

    def __init__(self, frame: DataFrame, most: int) -> None:
        self.frame = frame
        self.columns = frame.columns
        found = frame.limit(most + 1).collect() if self.columns else []
        self.rows = [tuple(row) for row in found[:most]]
        self.has_more = len(found) > most

    def _card(self) -> Card:
        shown = min(len(self.rows), MOST_ROWS)
        if not self.columns:
            return Card("Done")
        more = self.has_more or len(self.rows) > shown
        title = f"The first {shown:,} rows" if more else f"{shown:,} row{'' if shown == 1 else 's'}"
        # Every column, also where all of these rows have null in it.
        table = table_of(
            self.columns, self.rows, lambda row: ["null" if value is None else value for value in row]
        )
        return Card(title, (), (table,))

    def __repr__(self) -> str:
        return self._card().text()


def load(shell: Shell) -> None:
    """Give IPython the magic.

    Parameters
    ----------
    shell
        Of IPython, as it hands itself to an extension.
    """

    def run(line: str, cell: str | None = None) -> Rows:
        limit, into = MOST_ROWS, None
        text = line
        if cell is not None:
            limit, into = _arguments(line)
            text = cell
        found = Rows(_session().sql(_statement(text)), limit)
        if into is not None:
            shell.user_ns[into] = found.frame
        return found

    run.__doc__ = f"Run SQL in the active Spark session, with Delta registered: {_USAGE}."
    shell.register_magic_function(run, magic_kind="line_cell", magic_name=MAGIC)


def _statement(text: str) -> str:
    found = text.strip().removesuffix(";").rstrip()
    if not found:
        raise InvalidOptionError(f"there is no statement: {_USAGE}")
    return found


def _arguments(line: str) -> tuple[int, str | None]:
    """How many rows are shown, and the name that gets the DataFrame.

    Raises
    ------
    InvalidOptionError
        The line says something else.
    """
    limit, into = MOST_ROWS, None
    words = shlex.split(line)
    while words:
        name, value, words = words[0], words[1] if len(words) > 1 else "", words[2:]
        if name in ("--limit", "-n") and value.isdecimal():
            limit = int(value)
        elif name == "--into" and value.isidentifier():
            into = value
        else:
            raise _unknown(name, value)
    return limit, into


def _unknown(name: str, value: str) -> InvalidOptionError:
    import difflib

    known: Sequence[str] = ("--limit", "--into")
    near = [] if name in known else difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return InvalidOptionError(
        f"{' '.join(filter(None, (name, value)))!r} is not understood{hint} Usage: {_USAGE}"
    )


def _session() -> SparkSession:
    """The session of this notebook, with Delta in it.

    Raises
    ------
    InvalidOptionError
        There is none.
    """
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        raise InvalidOptionError(
            "%%delta runs in the active Spark session, and there is none: make one by SparkSession.builder"
        )
    if found not in _registered:
        register(found)
        _registered.add(found)
    return found
