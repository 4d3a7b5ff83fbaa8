"""Commands that change a table, clean up after it, or tell how it does: `vacuum`, `restore`, `health`, `fsck`..."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from delta_ds.cli import output
from delta_ds.cli.arguments import Json, StorageOption, Table, Zone, open_log
from delta_ds.cli.output import progress_bar
from delta_ds.kernel.base.card import size_text
from delta_ds.kernel.format.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from delta_ds.kernel.commands.fsck_findings import Finding

_COLUMN_SEPARATOR = re.compile(r",(?![^(]*\))")
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_SQL_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "real": "float"}
_TYPES = frozenset(
    [
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "boolean",
        "binary",
        "date",
        "timestamp",
    ]
    + ["timestamp_ntz"]
)


def checkpoint(table: Table, option: StorageOption = None, json: Json = False) -> None:
    """Write a checkpoint of the newest version, so that the next reader has less to read."""
    with progress_bar(json):
        version = open_log(table, option).checkpoint()
    _tell({"version": version}, f"checkpoint of version {version}", json)


def vacuum(
    table: Table,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be deleted.")] = False,
    retain_hours: Annotated[
        float | None, typer.Option("--retain-hours", help="Retention to use instead of the table's property.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Allow less than the table's retention: readers may lose files."),
    ] = False,
    lite: Annotated[
        bool, typer.Option("--lite", help="Find files with the log, without listing folders.")
    ] = False,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Delete the files that no version within the retention needs."""
    from delta_ds.kernel.commands.vacuum.command import vacuum as run

    with progress_bar(json):
        done = run(
            open_log(table, option),
            retain_hours,
            dry_run=dry_run,
            mode="lite" if lite else "full",
            retention_check=not force,
        )
    paths = done.paths.to_pylist()
    if json:
        output.print_json(
            {
                "dryRun": done.dry_run,
                "version": done.version,
                "numFiles": done.num_files,
                "numBytes": done.num_bytes,
                "paths": paths,
                "folders": done.folders,
            }
        )
        return
    for path in paths[: output.MOST_LINES]:
        output.print_line(path)
    if len(paths) > output.MOST_LINES:
        output.print_line(f"... and {len(paths) - output.MOST_LINES} more: --json names all", style="dim")
    verb = "would be deleted" if dry_run else "deleted"
    output.print_line(f"{done.num_files} files ({size_text(done.num_bytes)}) {verb}")


def restore(
    table: Table,
    version: Annotated[int | None, typer.Option("--version", "-v", help="Back to this version.")] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", "-t", help="Restore the version of this time.")
    ] = None,
    zone: Zone = "UTC",
    ignore_missing_files: Annotated[
        bool, typer.Option("--ignore-missing-files", help="Restore the remaining files if some are missing.")
    ] = False,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Restore an earlier version, as a new commit."""
    from delta_ds.kernel.commands.restore import restore as run

    if (version is None) == (timestamp is None):
        raise typer.BadParameter("give --version or --timestamp")
    with progress_bar(json):
        done = run(
            open_log(table, option),
            version=version,
            timestamp=timestamp,
            timezone=zone,
            ignore_missing_files=ignore_missing_files,
        )
    if done is None:
        _tell({"version": None}, "nothing to do: the table is at this version", json)
        return
    body = {"version": done.version, **done.row()}
    _tell(body, f"restored as version {done.version}", json)


def convert(
    folder: Annotated[str, typer.Argument(help="A folder of Parquet files.")],
    partition_by: Annotated[
        str | None,
        typer.Option(
            "--partition-by", help="Partition columns with their types: 'year INT, country STRING'."
        ),
    ] = None,
    no_statistics: Annotated[
        bool, typer.Option("--no-statistics", help="Do not read the files' footers for statistics.")
    ] = False,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Convert a folder of Parquet files to a table, in place, as CONVERT TO DELTA."""
    from delta_ds.kernel.commands.convert_to_delta import convert_to_delta

    with progress_bar(json):
        done = convert_to_delta(
            open_log(folder, option),
            None if partition_by is None else _partition_schema(partition_by),
            collect_statistics=not no_statistics,
            timezone=zone,
        )
    if done is None:
        _tell({"version": None}, "nothing to do: it already is a table", json)
        return
    count = done.num_converted_files
    _tell({"version": done.version, "numFiles": count}, f"{count} files are a table now", json)


def _partition_schema(text: str) -> StructType:
    fields = []
    for column in _COLUMN_SEPARATOR.split(text):
        name, _, kind = column.strip().partition(" ")
        data_type = _type(kind.strip().lower())
        if not name or data_type is None:
            raise typer.BadParameter(
                f"{column.strip()!r} is not a name and a type such as INT, STRING, DATE, DECIMAL(10,2)",
                param_hint="--partition-by",
            )
        fields.append(StructField(name.strip("`"), data_type))
    return StructType(tuple(fields))


def _type(name: str) -> DataType | None:
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return DecimalType(int(decimal[1]), int(decimal[2] or 0))
    name = _SQL_NAMES.get(name, name)
    return PrimitiveType(name) if name in _TYPES else None


def _tell(body: dict[str, Any], text: str, json: bool) -> None:
    if json:
        output.print_json(body)
    else:
        output.print_line(text)


def health(
    table: Table,
    log_only: Annotated[
        bool, typer.Option("--log-only", help="Do not list the table's folder for files that are missing.")
    ] = False,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Report small files, deleted rows, unneeded and missing files of a table, and the commands that are due."""
    from dataclasses import asdict

    from delta_ds.kernel.commands.health import health as look

    with progress_bar(json):
        state = look(open_log(table, option), files=not log_only)
    found = asdict(state)
    if json:
        output.print_json(found)
    else:
        found["size_in_bytes"] = size_text(state.size_in_bytes)
        output.print_record(
            {name.replace("_", " "): v for name, v in found.items() if name != "due" and v is not None}
        )
        output.print_line()
        for each in state.due:
            output.print_line(f"due: {each.command}: {each.reason}", style="bold yellow")
        if not state.due:
            output.print_line(state.nothing_due)
    if state.missing_files:
        raise typer.Exit(output.FOUND)


def maintain(
    table: Table,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Also delete files, with the table's own retention.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be done, and why.")
    ] = False,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Run what is due: compaction, purge of deleted rows, statistics, VACUUM, checkpoint; status 1 after a conflict."""
    from delta_ds.kernel.commands.maintain import maintain as run

    with progress_bar(json):
        done = run(open_log(table, option), vacuum=vacuum, dry_run=dry_run)
    if json:
        output.print_json({"table": done.table, "dryRun": done.dry_run, "steps": done.rows})
    else:
        for line in str(done).split("\n"):
            output.print_line(line)
    if done.conflicts:
        raise typer.Exit(output.FOUND)


def fsck(
    table: Table,
    contents: Annotated[
        bool,
        typer.Option("--contents", help="Also read every row of the table, and check every checkpoint."),
    ] = False,
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Look for damage: missing files, gaps in the log, wrong checkpoints; exit status 1 if there is any."""
    from delta_ds.kernel.commands.fsck import check

    with progress_bar(json):
        found = list(check(open_log(table, option), contents=contents))
    damage = sum(finding.kind.damage for finding in found)
    if json:
        output.print_json(
            {
                "damage": damage,
                "findings": [
                    {
                        "kind": finding.kind.name,
                        "damage": finding.kind.damage,
                        "path": finding.path,
                        "detail": finding.detail,
                        "advice": finding.kind.advice,
                    }
                    for finding in found
                ],
            }
        )
    else:
        _print(found, damage)
    if damage:
        raise typer.Exit(output.FOUND)


def _print(found: list[Finding], damage: int) -> None:
    for kind in dict.fromkeys(finding.kind for finding in found):
        of_kind = [finding for finding in found if finding.kind is kind]
        style = "bold red" if kind.damage else "bold yellow"
        output.print_line(f"{kind.name}: {len(of_kind)}", style=style)
        for finding in of_kind[: output.MOST_LINES]:
            output.print_line(f"  {finding.path or 'table'}: {finding.detail}")
        if len(of_kind) > output.MOST_LINES:
            output.print_line(
                f"  ... and {len(of_kind) - output.MOST_LINES} more: --json names all", style="dim"
            )
        output.print_line(f"  {kind.advice}", style="dim")
    output.print_line(f"{damage} findings of damage" if damage else "no damage found")
