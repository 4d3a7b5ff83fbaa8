"""Arguments that several commands take, and the tables that they name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.format.options.parsing import names
from delta_ds.kernel.format.options.read import split_path_suffix
from delta_ds.kernel.log.filenames import LOG_DIRECTORY
from delta_ds.kernel.transaction.table_log import snapshot_at
from delta_ds.redaction import safe_addresses

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot

Table = Annotated[
    str, typer.Argument(metavar="TABLE", help="Folder or URL of the table; append @v5 for version 5.")
]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="NAME=VALUE", help="Option of the store, such as aws_region=eu-west-1."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
Version = Annotated[int | None, typer.Option("--version", "-v", help="Read the table at this version.")]
Timestamp = Annotated[
    str | None,
    typer.Option("--timestamp", "-t", help="Read the table at this time: 2026-01-31, 2026-01-31 12:00:00."),
]
Zone = Annotated[
    str, typer.Option("--timezone", help="Time zone of timestamps without one, in input and output.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", "-w", metavar="PREDICATE", help="SQL predicate, such as \"country = 'DE'\"."),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="At most so many.")]


def named_values(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """What an option gives as NAME=VALUE.

    Raises
    ------
    typer.BadParameter
        One is not of this form.
    """
    found = {}
    for number, text in enumerate(given or (), 1):
        name, equals, value = text.partition("=")
        if not equals or not name:
            # Not shown: it may be the value without its name.
            raise typer.BadParameter(f"number {number} is not of the form NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def column_names(text: str, option: str) -> tuple[str, ...]:
    """Names of columns: a,b with odd ones in backticks.

    Raises
    ------
    typer.BadParameter
        It is no such list.
    """
    try:
        return names(text, timezone.utc)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def open_log(path: str, given: Sequence[str] | None) -> DeltaLog:
    """The log of a table that is named without a version.

    Raises
    ------
    DeltaError
        There is none to be had.
    """
    return DeltaLog(path, store_options(given))


def store_options(given: Sequence[str] | None) -> dict[str, str]:
    """What `--option` says to the store.

    Raises
    ------
    typer.BadParameter
        One is not of the form NAME=VALUE.
    """
    options = named_values(given, "--option")
    return {name.removeprefix("storage."): value for name, value in options.items()}


def open_at(
    path: str,
    given: Sequence[str] | None,
    version: int | None = None,
    timestamp: str | None = None,
    zone: str = "UTC",
) -> tuple[DeltaLog, Snapshot]:
    """A table at what the options of a command or the end of its path say.

    Raises
    ------
    DeltaError
        It cannot be read, or two versions are asked for.
    """
    log, asked, moment = which_version(path, given, version, timestamp, zone)
    return log, snapshot_at(log, asked, moment, zone)


def which_version(
    path: str,
    given: Sequence[str] | None,
    version: int | None = None,
    timestamp: str | None = None,
    zone: str = "UTC",
) -> tuple[DeltaLog, int | None, str | datetime | None]:
    """A table, and what the options of a command or the end of its path say of when: a version, a time, or neither.

    Raises
    ------
    DeltaError
        There is none to be had, or two versions are asked for.
    """
    log = open_log(path, given)
    plain, at, moment = split_path_suffix(path, zone)
    # A folder may really be named so.
    if plain == path or _has_log(log):
        return log, version, timestamp
    if version is not None or timestamp is not None:
        raise typer.BadParameter(f"{safe_addresses(path)!r} and an option both say when", param_hint="TABLE")
    return open_log(plain, given), at, moment


def _has_log(log: DeltaLog) -> bool:
    try:
        return bool(log.storage.list_from(LOG_DIRECTORY))
    except FileNotFoundError:
        return False
