"""Commands that tell how a table does, and do what is due: `health`, `maintain`, `fsck`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from delta_ds.cli import output
from delta_ds.cli.arguments import Json, StorageOption, Table, open_log
from delta_ds.cli.output import progress_bar
from delta_ds.kernel.base.card import size_text

if TYPE_CHECKING:
    from delta_ds.kernel.commands.fsck.findings import Finding


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
    from delta_ds.kernel.commands.fsck.command import check

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
