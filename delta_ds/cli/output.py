"""What commands print: text for people, or one JSON value for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from delta_ds.cli.json_values import error_body, plain, shown
from delta_ds.exceptions import DeltaError

# Exit statuses beside 0: what was looked for is there, the command line is wrong, the command failed, Ctrl+C.
FOUND, USAGE, FAILED, INTERRUPTED = 1, 2, 3, 130
# Lines that stand for themselves before the rest is only counted.
MOST_LINES = 20

# What is no terminal takes lines of any length.
_WIDE = 10_000
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = ()) -> None:
    """Print rows below their columns' names.

    Parameters
    ----------
    right
        Columns of numbers.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))
    console.print(table)


def print_record(record: Mapping[str, Any]) -> None:
    """Print a value below its name, line by line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in record.items():
        table.add_row(name, Text(shown(value)))
    console.print(table)


def print_error(error: DeltaError, as_json: bool) -> None:
    """Print what failed, on the error stream."""
    if as_json:
        sys.stderr.write(json.dumps(plain(error_body(error)), ensure_ascii=False) + "\n")
        return
    errors.print(Text.assemble(("error: ", "bold red"), f"[{error.condition}] {error.text}"))
