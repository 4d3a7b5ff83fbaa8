"""Commands that show rows: `show`, `changes`, `blame`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from delta_ds.cli import output
from delta_ds.cli.arguments import (
    Json,
    StorageOption,
    Table,
    Timestamp,
    Version,
    Where,
    Zone,
    column_names,
    open_at,
    open_log,
)

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 20

Rows = Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")]
Columns = Annotated[
    str | None, typer.Option("--columns", "-c", help="Only these columns, in this order: a,b")
]


def show(
    table: Table,
    where: Where = None,
    columns: Columns = None,
    limit: Rows = SHOWN_ROWS,
    version: Version = None,
    timestamp: Timestamp = None,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Print the first rows of a table, or the first that match a predicate."""
    from delta_ds.kernel.files.scan.scan import Scan

    _, snapshot = open_at(table, option, version, timestamp, zone)
    scan = Scan(
        snapshot, where, None if columns is None else column_names(columns, "--columns"), timezone=zone
    )
    _print(scan.schema.names, scan.to_batches(), limit, json)


def changes(
    table: Table,
    start: Annotated[int | None, typer.Option("--from", help="The first version.")] = None,
    end: Annotated[int | None, typer.Option("--to", help="Last version; by default the newest.")] = None,
    net: Annotated[
        bool, typer.Option("--net", help="Reduce the changes of each key to their net effect.")
    ] = False,
    latest: Annotated[bool, typer.Option("--latest", help="Print only the last change of each key.")] = False,
    key: Annotated[str | None, typer.Option("--key", help="Key columns: a,b")] = None,
    limit: Rows = SHOWN_ROWS,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Print the change data feed of some versions; without --from, of the newest."""
    if net and latest:
        raise typer.BadParameter("--net and --latest exclude each other; give one of them")
    keys = None if key is None else column_names(key, "--key")
    kind = "net" if net else "latest" if latest else None
    log = open_log(table, option)
    if start is None:
        start = log.snapshot().version if end is None else end
    feed = log.changes(start, end, timezone=zone, net=kind, keys=keys)
    _print(feed.schema.names, feed.to_batches(), limit, json)


# What people see of the commits; programs get all of it.
_SHOWN_FACTS = {
    "_commit_version": "version",
    "_commit_timestamp": "timestamp",
    "_commit_operation": "operation",
    "_commit_user_name": "user",
    "_commit_user_metadata": "user metadata",
}


def blame(
    table: Table,
    where: Where = None,
    columns: Columns = None,
    limit: Rows = SHOWN_ROWS,
    version: Version = None,
    timestamp: Timestamp = None,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Print rows, each with the commit that last wrote it; the table must track rows."""
    from delta_ds.kernel.commands.blame import Blame

    _, snapshot = open_at(table, option, version, timestamp, zone)
    found = Blame(
        snapshot, where, None if columns is None else column_names(columns, "--columns"), timezone=zone
    )
    rows, more = first_rows(found.to_batches(), limit)
    if json:
        output.print_json(rows)
        return
    own = found.scan.schema.names
    for row in rows:
        moment = row["_commit_timestamp"]
        row["_commit_timestamp"] = None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
    shown = [[row[name] for name in (*own, *_SHOWN_FACTS)] for row in rows]
    output.print_table((*own, *_SHOWN_FACTS.values()), shown, right=("version",))
    tell_of_more(more, limit)


def _print(names: list[str], batches: Iterator[pa.RecordBatch], limit: int, json: bool) -> None:
    rows, more = first_rows(batches, limit)
    if json:
        output.print_json(rows)
        return
    output.print_table(names, [list(row.values()) for row in rows])
    tell_of_more(more, limit)


def tell_of_more(more: bool, limit: int | None) -> None:
    """Say that there are more rows than were shown."""
    if more:
        output.print_line(f"... only the first {limit} rows: --limit shows more", style="dim")


def first_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> tuple[list[dict[str, Any]], bool]:
    """The first rows, and whether there are more; all without a limit."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        if limit is None:
            rows += batch.to_pylist()
            continue
        rows += batch.slice(0, limit + 1 - len(rows)).to_pylist()
        if len(rows) > limit:
            break
    return rows[:limit], limit is not None and len(rows) > limit
