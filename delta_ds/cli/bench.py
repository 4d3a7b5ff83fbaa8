"""The command `bench`, and how its answer is shown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from delta_ds._version import __version__
from delta_ds.cli import output
from delta_ds.cli.arguments import Json, StorageOption, Where, Zone, store_options
from delta_ds.cli.output import progress_bar
from delta_ds.kernel.base.card import size_text
from delta_ds.kernel.log.filenames import LOG_DIRECTORY
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import BENCH_FILES
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.store_options import uses_dynamodb

if TYPE_CHECKING:
    from delta_ds.api.delta_log import DeltaLog
    from delta_ds.cli.bench_measures import Measurement

# --- a folder of its own for what is written, below one that the user gives; it goes when the work is done, or fails

PREFIX = "pydelta-bench-"


@contextmanager
def scratch_folder(place: str, options: dict[str, str], table: Storage | None) -> Iterator[str]:
    """The address of a new folder.

    Parameters
    ----------
    place
        Where it is made: a folder that is there, or a URL.
    table
        The table that is measured; None: none.

    Raises
    ------
    typer.BadParameter
        The place is not a folder, or belongs to a table.
    StorageError
        Something in the folder could not be deleted afterwards.
    """
    parent = open_storage(place, options)
    _check_place(parent, table)
    name = f"{PREFIX}{os.urandom(8).hex()}"
    try:
        yield f"{place.rstrip('/')}/{name}"
    finally:
        deleter.delete_below(parent, BENCH_FILES, name)


def _check_place(place: Storage, table: Storage | None) -> None:
    if place.address.scheme == "file" and not os.path.isdir(place.address.path):
        raise typer.BadParameter(f"{place.url} is not a folder", param_hint="--scratch")
    owner = table.url if table is not None and _lies_in(place, table) else _table_around(place)
    if owner is not None:
        raise typer.BadParameter(
            f"{place.url} belongs to the table {owner}, which nothing is written to: give another folder",
            param_hint="--scratch",
        )


def _lies_in(place: Storage, table: Storage) -> bool:
    inner, outer = (f"{storage.url.rstrip('/')}/" for storage in (place, table))
    return inner.startswith(outer)


def _table_around(place: Storage) -> str | None:
    if place.exists(LOG_DIRECTORY):
        return place.url
    if place.address.scheme == "file":
        folder = os.path.realpath(place.address.path)
        while folder != os.path.dirname(folder):
            if os.path.isdir(os.path.join(folder, LOG_DIRECTORY)):
                return folder
            folder = os.path.dirname(folder)
    return None


# --- the command `bench`, and how its answer is shown


def bench(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="The table to read. Without it, a table is created in --scratch."
        ),
    ] = None,
    where: Where = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch",
            help="Folder or URL on the store to measure, for files that are written; all of them are deleted "
            "afterwards.",
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=100, help="Rows of the table that is created.")
    ] = 1_000_000,
    commits: Annotated[
        int, typer.Option("--commits", min=1, help="Number of commits, one after the other.")
    ] = 50,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="How often the table is loaded, planned and read.")
    ] = 3,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Stop one read of rows after this many seconds.")
    ] = 20.0,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """How fast this machine loads, plans, reads and commits on a store, and what takes the time."""
    from delta_ds.cli import bench_measures as measures

    if table is None and scratch is None:
        raise typer.BadParameter("give a TABLE to read, or --scratch FOLDER to write to, or both")
    options = store_options(option)
    if scratch is not None and uses_dynamodb(options):
        raise typer.BadParameter(
            "commits of logStore=dynamodb leave entries in its table: bench makes none there",
            param_hint="--scratch",
        )
    log = None if table is None else measures.open_table(table, options)
    found: list[Measurement] = []
    facts: dict[str, Any] = {}
    with progress_bar(json) as tell:
        if log is not None:
            facts = _facts(log, log.storage.url)
            found += measures.reads(log, where, zone, rounds, seconds, tell)
        if scratch is not None:
            with scratch_folder(scratch, options, None if log is None else log.storage) as folder:
                if log is None:
                    made = measures.open_table(f"{folder}/table", options)
                    found.append(measures.make_table(made, rows, tell))
                    facts = _facts(made, None)
                    found += measures.reads(
                        made, where or measures.predicate_of(rows), zone, rounds, seconds, tell
                    )
                found.append(
                    measures.commits(measures.open_table(f"{folder}/commits", options), commits, tell)
                )
                created = measures.open_table(f"{folder}/objects", options).storage
                found += measures.creations(created, commits, tell)
    _tell(facts, found, scratch, json)


def _facts(log: DeltaLog, table: str | None) -> dict[str, Any]:
    snapshot = log.snapshot()
    live = snapshot.detail()
    return {
        "table": table,
        "version": snapshot.version,
        "numFiles": live["numFiles"],
        "sizeInBytes": live["sizeInBytes"],
    }


def _tell(facts: dict[str, Any], found: list[Measurement], scratch: str | None, json: bool) -> None:
    machine = {"python": platform.python_version(), "processors": os.cpu_count(), "delta_ds": __version__}
    if json:
        output.print_json({**facts, **machine, "measurements": [each.record() for each in found]})
        return
    name = facts["table"] or "a table made for this"
    output.print_line(
        f"{name}, version {facts['version']}: {facts['numFiles']} files, {size_text(facts['sizeInBytes'])}; "
        f"delta_ds {__version__}, Python {machine['python']}, {machine['processors']} processors",
    )
    columns = ("", "rounds", "p50", "p95", "max", "rows/s", "MiB/s", "most time in")
    output.print_table(columns, [_row(each) for each in found], right=columns[1:-1])
    for each in found:
        output.print_line(f"{each.name}: {each.what}{_calls(each)}", style="dim")
    if scratch is None:
        output.print_line("nothing was written: --scratch FOLDER measures commits too", style="dim")


def _row(each: Measurement) -> tuple[str, ...]:
    record = each.record()
    times = [_duration(record["seconds"][name]) for name in ("p50", "p95", "max")]
    rows, size = record.get("rowsPerSecond"), record.get("bytesPerSecond")
    return (
        each.name,
        str(record["rounds"]),
        *times,
        "" if rows is None else f"{rows:,}",
        "" if size is None else f"{size / (1 << 20):.1f}",
        record["dominatedBy"],
    )


def _calls(each: Measurement) -> str:
    calls = each.record()["calls"]
    parts = [f"{name} {call['count']:g} ({_duration(call['seconds'])})" for name, call in calls.items()]
    return f"; calls a round: {', '.join(parts)}" if parts else ""


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
