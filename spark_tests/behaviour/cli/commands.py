"""Every command of `pydelta` with a command line that looks at a table, or looks after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from delta_ds.cli.app import make_app

# By the name of the command, from the folder of a table. `ui` serves until it is ended.
COMMAND_LINES: dict[str, Callable[[Path], list[str]]] = {
    "detail": lambda table: [str(table)],
    "history": lambda table: [str(table)],
    "properties": lambda table: [str(table)],
    "files": lambda table: [str(table)],
    "log": lambda table: [str(table)],
    "show": lambda table: [str(table)],
    "sql": lambda table: ["SELECT * FROM t", "--table", f"t={table}"],
    "schema": lambda table: [],
    "changes": lambda table: [str(table), "--from", "1"],
    "blame": lambda table: [str(table)],
    "diff": lambda table: [f"{table}@v1", f"{table}@v2", "--key", "id"],
    "health": lambda table: [str(table)],
    "fsck": lambda table: [str(table), "--contents"],
    "bench": lambda table: [str(table), "--rounds", "1", "--seconds", "0.1"],
    "maintain": lambda table: [str(table), "--vacuum"],
    "checkpoint": lambda table: [str(table)],
    "vacuum": lambda table: [str(table), "--retain-hours", "0", "--force"],
    "restore": lambda table: [str(table), "--version", "1"],
    "convert": lambda table: [str(table)],
    "ui": lambda table: [str(table), "--no-open"],
}


def command_line(name: str, table: Path) -> list[str]:
    """A command with its arguments."""
    return [name, *COMMAND_LINES[name](table)]


def all_commands() -> set[str]:
    """The names of the commands that the program has."""
    return {str(each.callback.__name__) for each in make_app().registered_commands if each.callback}
