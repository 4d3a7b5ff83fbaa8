"""Commands that describe a table: `detail`, `properties`, `history`, `files`, `log`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from delta_ds.api.snapshot import Snapshot
from delta_ds.cli import output
from delta_ds.cli.arguments import (
    Json,
    Limit,
    StorageOption,
    Table,
    Timestamp,
    Version,
    Where,
    Zone,
    named_values,
    open_at,
    open_log,
)
from delta_ds.kernel.base.card import size_text
from delta_ds.kernel.format.actions import counted_rows
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.log.history import datetime_of, effect_of, made_by

_DETAIL_TIMES = ("createdAt", "lastModified")
_SHORT_LINE = 80
_FILE_COLUMNS = ("path", "size", "partitionValues", "numRecords")


def detail(
    table: Table,
    version: Version = None,
    timestamp: Timestamp = None,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Describe a table, as DESCRIBE DETAIL: id, location, columns, files, bytes, properties, protocol, features."""
    _, snapshot = open_at(table, option, version, timestamp)
    found: dict[str, Any] = {"version": snapshot.version, **Snapshot(snapshot).detail()}
    for name in _DETAIL_TIMES:
        found[name] = _moment(found[name])
    found["columns"] = columns_of(snapshot.schema)
    if json:
        output.print_json(found)
        return
    columns = found.pop("columns")
    found["sizeInBytes"] = f"{found['sizeInBytes']} ({size_text(found['sizeInBytes'])})"
    output.print_record(found)
    output.print_line()
    output.print_table(("column", "type", "nullable", "comment"), [tuple(each.values()) for each in columns])


def properties(
    table: Table,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a property, as ALTER TABLE ... SET TBLPROPERTIES does."
        ),
    ] = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", metavar="NAME", help="Take one away.")] = None,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Show the properties of a table; --set and --unset change them first."""
    from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties

    log = open_log(table, option)
    new = named_values(set_, "--set")
    if new:
        set_properties(log, new)
    if unset:
        unset_properties(log, unset)
    found = log.snapshot().properties
    if json:
        output.print_json(found)
    else:
        output.print_table(("property", "value"), sorted(found.items()))


def history(
    table: Table,
    limit: Limit = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="Print all parameters, metrics, engine and user, in lines of any length."
        ),
    ] = False,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """List the commits, newest first, as DESCRIBE HISTORY."""
    entries = open_log(table, option).history(limit)
    if json:
        output.print_json(entries)
    elif wide:
        _print_wide(entries)
    else:
        _print_short(entries)


def _print_short(entries: Sequence[Mapping[str, Any]]) -> None:
    """A line a commit, in the width that every terminal has."""
    rows = [
        (
            str(entry["version"]),
            f"{entry['timestamp']:%Y-%m-%d %H:%M:%S}",
            output.cut(entry["operation"] or "", 20),
        )
        for entry in entries
    ]
    heads = ("version", "timestamp", "operation")
    taken = sum(
        max([len(head), *(output.cells_of(row[n]) for row in rows)]) + 2 for n, head in enumerate(heads)
    )
    told = [output.cut(effect_of(entry) or _parameters(entry), _SHORT_LINE - taken) for entry in entries]
    lines = [(*row, text) for row, text in zip(rows, told, strict=True)]
    output.print_table((*heads, "what it did"), lines, right=("version",))


def _print_wide(entries: Sequence[Mapping[str, Any]]) -> None:
    makers = [made_by(entry) for entry in entries]
    told = any(makers)
    heads = ("version", "timestamp", "operation", "parameters", "metrics", "engine")
    output.print_table(
        (*heads, *(["made by"] if told else [])),
        [
            (
                entry["version"],
                f"{entry['timestamp']:%Y-%m-%d %H:%M:%S}",
                entry["operation"],
                _parameters(entry),
                _pairs({name: n for name, n in (entry["operationMetrics"] or {}).items() if n != "0"}),
                entry["engineInfo"],
                *([maker] if told else []),
            )
            for entry, maker in zip(entries, makers, strict=True)
        ],
        right=("version",),
    )


def _parameters(entry: Mapping[str, Any]) -> str:
    return _pairs(entry["operationParameters"])


def files(
    table: Table,
    where: Where = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="List all files, with the reason why each is read or skipped.")
    ] = False,
    version: Version = None,
    timestamp: Timestamp = None,
    limit: Limit = None,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """List the data files of a table, or those that a predicate reads."""
    from delta_ds.kernel.files.scan.scan import Scan

    _, snapshot = open_at(table, option, version, timestamp, zone)
    scan = Scan(snapshot, where, timezone=zone)
    if explain:
        rows = scan.explain().slice(0, limit).to_pylist()
    else:
        rows = scan.files().slice(0, limit).to_pylist()
        partitions = list(zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True))
        for row in rows:
            values = row.get("partitionValues") or {}
            row["partitionValues"] = {name: values.get(physical) for name, physical in partitions}
            row["numRecords"] = counted_rows(row["stats"])
    if json:
        output.print_json(rows)
        return
    names = ("path", "kept", "rule") if explain else _FILE_COLUMNS
    output.print_table(names, [[row[name] for name in names] for row in rows], right=("size", "numRecords"))
    output.print_line(f"{scan.num_files} of {snapshot.live_files().num_rows} files are read")


def log(
    table: Table,
    version: Version = None,
    limit: Limit = None,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Print the actions of one version, by default the newest."""
    from itertools import islice

    from delta_ds.kernel.log.commit import read_commits
    from delta_ds.kernel.log.json_actions import iterate_actions

    found, snapshot = open_at(table, option, version)
    (commit,) = read_commits(found.storage, [snapshot.segment.last_commit])
    actions = [action for _, action in islice(iterate_actions(commit.data, commit.where), limit)]
    if json:
        output.print_json(actions)
        return
    output.print_line(f"version {snapshot.version}", style="bold")
    rows = [(kind, body) for action in actions for kind, body in action.items()]
    output.print_table(("action", "content"), rows)


def columns_of(schema: StructType) -> list[dict[str, Any]]:
    """Name, type, nullability and comment of each column."""
    return [
        {
            "name": field.name,
            "type": str(field.type),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
        }
        for field in schema.fields
    ]


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime_of(milliseconds)


def _pairs(values: Any) -> str:
    return ", ".join(
        f"{name}={value}" for name, value in (values or {}).items() if value not in (None, "", "[]")
    )
