"""The program `pydelta`: its commands, and what becomes of errors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from delta_ds._version import __version__
from delta_ds.cli import differences, health, maintenance, output, rows, tables
from delta_ds.cli.bench import command as bench
from delta_ds.cli.ui import command as ui
from delta_ds.exceptions import DeltaError

_HELP = "Delta tables from the command line, without Spark. TABLE is a folder or a URL; TABLE@v5 is its version 5."
_MORE = (
    "Two more need pyspark: run (a program, with Delta in its sessions) and connect-server; see run --help."
)
_LOOK = (
    tables.detail, tables.history, tables.properties, tables.files, tables.log, rows.show, rows.changes, rows.blame,
    differences.diff, health.health, health.fsck, ui.ui, bench.bench,
)  # fmt: skip
_CARE = (
    health.maintain,
    maintenance.checkpoint,
    maintenance.vacuum,
    maintenance.restore,
    maintenance.convert,
)


def make_app() -> typer.Typer:
    """The program with all of its commands."""
    app = typer.Typer(
        name="pydelta", help=_HELP, epilog=_MORE, no_args_is_help=True, pretty_exceptions_enable=False
    )
    app.callback()(_root)
    for panel, commands in (("Look at a table", _LOOK), ("Look after a table", _CARE)):
        for command in commands:
            app.command(rich_help_panel=panel)(_interruptible(command))
    return app


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """A command that Ctrl+C ends with a status of its own; typer's is that of findings."""

    @functools.wraps(command)
    def called(**arguments: Any) -> None:
        try:
            command(**arguments)
        except KeyboardInterrupt:
            output.errors.print("interrupted")
            raise typer.Exit(output.INTERRUPTED) from None

    return called


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"delta_ds {__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="The version of this package."),
    ] = False,
) -> None:
    """Delta tables from the command line."""


def main(arguments: Sequence[str]) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Without the name of the program.

    Returns
    -------
    int
        0; 1 where something that was looked for is there; 2 where the command line is wrong; 3 where it failed; 130
        where it was interrupted.
    """
    try:
        make_app()(args=list(arguments), prog_name="pydelta")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except DeltaError as error:
        output.print_error(error, "--json" in arguments)
        return output.FAILED
    return 0
