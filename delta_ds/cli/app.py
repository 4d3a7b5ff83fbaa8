"""The program `pydelta`: its commands, and how errors are shown."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from delta_ds._version import __version__
from delta_ds.cli import bench, differences, json_schemas, maintenance, output, rows, streams, tables
from delta_ds.cli.ui import command as ui
from delta_ds.events.formatter import undirected_lines
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.card import visible
from delta_ds.redaction import redacted, without

_HELP = "Delta tables from the command line, without Spark. TABLE is a folder or a URL; TABLE@v5 is its version 5."
_MORE = (
    "More need pyspark: run (a program, with Delta in its sessions), serve (for BI tools and Spark Connect), "
    "connect-server; see run --help."
)
_LOOK = (
    tables.detail, tables.history, tables.properties, tables.files, tables.log, rows.show, rows.sql, rows.changes,
    rows.blame, differences.diff, maintenance.health, maintenance.fsck, ui.ui, bench.bench, json_schemas.schema,
)  # fmt: skip
_CARE = (
    maintenance.maintain,
    maintenance.checkpoint,
    maintenance.vacuum,
    maintenance.restore,
    maintenance.convert,
)
# What typer shows of a wrong command line; it is exported by no name of its own.
_WRONG = cast(
    "type[typer.BadParameter]",
    next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"),
)


class _Command(TyperCommand):
    """A command whose help goes to the output stream as its answers do, and whose refusals show no secret argument."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with streams.writing():
            return super().make_context(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _without_secrets(args):
            allowed, ctx.allow_extra_args = ctx.allow_extra_args, True
            left = super().parse_args(ctx, args)
            ctx.allow_extra_args = allowed
            if left and not ctx.resilient_parsing:
                # Such as a value that a blank, in place of `=`, parts from the name of its option.
                count = "an argument" if len(left) == 1 else f"{len(left)} arguments"
                ctx.fail(f"Got {count} more than the command accepts; not shown, because they may be secret")
        return left


class _Program(TyperGroup):
    """The program; what it says of a wrong command line may name a table, or hold a login."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _spelled_out(), streams.writing():
            return super().make_context(*arguments, **options)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        with _spelled_out():
            return super().invoke(*arguments, **options)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with _without_secrets(args):
            return super().resolve_command(ctx, args)


@contextmanager
def _spelled_out() -> Iterator[None]:
    try:
        yield
    except _WRONG as error:
        error.message = visible(error.message)
        raise


@contextmanager
def _without_secrets(arguments: Sequence[str]) -> Iterator[None]:
    pairs = zip(("", *arguments), arguments, strict=False)
    values = [text.partition("=")[2] for before, text in pairs if before in ("-o", "--option")]
    try:
        yield
    except _WRONG as error:
        error.message = redacted(without(error.message, values))
        raise


def make_app() -> typer.Typer:
    """The program with all of its commands."""
    app = typer.Typer(
        name="pydelta",
        cls=_Program,
        help=_HELP,
        epilog=_MORE,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for panel, commands in (("Look at a table", _LOOK), ("Maintain a table", _CARE)):
        for command in commands:
            app.command(cls=_Command, rich_help_panel=panel)(_interruptible(command))
    return app


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """A command that Ctrl+C ends with a status of its own; typer's is that of findings."""

    @functools.wraps(command)
    def called(**arguments: Any) -> None:
        try:
            command(**arguments)
        except KeyboardInterrupt:
            output.print_warning("interrupted")
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
        One of `output.STATUSES`.
    """
    try:
        streams.prepare()
        with undirected_lines(visible), streams.writing():
            return _run(arguments)
    except streams.OutputError as error:
        streams.abandon()
        if error.reader_gone:
            return output.UNREAD
        streams.tell(f"error: {error}")
        return output.FAILED


def _run(arguments: Sequence[str]) -> int:
    try:
        make_app()(args=list(arguments), prog_name="pydelta")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except DeltaError as error:
        output.print_error(error, "--json" in arguments)
        return output.FAILED
    except streams.OutputError:
        raise
    except Exception as error:
        streams.tell_unexpected(error)
        return output.FAILED
    return 0
