"""The command `diff`: what differs between two tables, or two versions of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from delta_ds.cli import output
from delta_ds.cli.arguments import Json, StorageOption, Where, Zone, column_names, open_at
from delta_ds.cli.json_values import shown
from delta_ds.kernel.base.arrow_buffers import true_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot

# Between the parts of a key, and for a part that is null; no part has the former in it.
_BETWEEN, _NULL = "\0\2", "\0\3"


def diff(
    left: Annotated[
        str, typer.Argument(metavar="A", help="Folder or URL of a table; append @v5 for version 5.")
    ],
    right: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    key: Annotated[
        str | None,
        typer.Option(
            "--key", "-k", help="Compare rows by these key columns: id or a,b. Loads both tables into memory."
        ),
    ] = None,
    where: Where = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with status 1 if anything differs.")
    ] = False,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """Compare two tables or versions: columns, properties, protocol, files, and with --key rows."""
    (_, before), (_, after) = (open_at(path, option, zone=zone) for path in (left, right))
    found: dict[str, Any] = {
        "schema": _mapping_difference(_columns(before), _columns(after)),
        "properties": _mapping_difference(before.properties, after.properties),
        "protocol": _mapping_difference(_protocol(before), _protocol(after)),
        "files": _file_difference(before, after),
    }
    if key is not None:
        found["rows"] = row_difference(before, after, column_names(key, "--key"), where, zone)
    if json:
        output.print_json(found)
    else:
        _print(found)
    if exit_code and any(any(part.values()) for part in found.values()):
        raise typer.Exit(output.FOUND)


def _columns(snapshot: Snapshot) -> dict[str, str]:
    return {f.name: f"{f.type}{'' if f.nullable else ' not null'}" for f in snapshot.schema.fields}


def _protocol(snapshot: Snapshot) -> dict[str, Any]:
    protocol = snapshot.protocol
    versions = {"minReaderVersion": protocol.min_reader, "minWriterVersion": protocol.min_writer}
    return {**versions, **{f"feature {name}": "supported" for name in sorted(protocol.supported)}}


def _mapping_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "added": {name: after[name] for name in after if name not in before},
        "removed": {name: before[name] for name in before if name not in after},
        "changed": {
            name: {"from": before[name], "to": after[name]}
            for name in before
            if name in after and before[name] != after[name]
        },
    }


def _file_difference(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    old, new = before.live_files(), after.live_files()
    added = new.table.filter(pc.invert(pc.is_in(new.canonical_paths, pa.array(old.canonical_paths.unique()))))
    removed = old.table.filter(
        pc.invert(pc.is_in(old.canonical_paths, pa.array(new.canonical_paths.unique())))
    )
    return {"added": added["path"].to_pylist(), "removed": removed["path"].to_pylist()}


def row_difference(
    before: Snapshot, after: Snapshot, key: tuple[str, ...], where: str | None, zone: str
) -> dict[str, Any]:
    """Rows that one of two tables alone has, and those that differ, by a key that is unique in each.

    Raises
    ------
    typer.BadParameter
        There is no such column in both, or two rows of one table have the same key.
    """
    import pyarrow.compute as pc

    rows = [_keyed(snapshot, key, where, zone) for snapshot in (before, after)]
    old, new = (_key_texts(table, key) for table in rows)
    for keys, snapshot in ((old, before), (new, after)):
        if len(pc.unique(keys)) < len(keys):
            raise typer.BadParameter(
                f"{', '.join(key)} is not unique in {snapshot.storage.url} version {snapshot.version}",
                param_hint="--key",
            )
    added = rows[1].filter(pc.invert(pc.is_in(new, old)))
    removed = rows[0].filter(pc.invert(pc.is_in(old, new)))
    places = pc.index_in(new, old)
    both = pc.is_valid(places)
    current, earlier = rows[1].filter(both), rows[0].take(places.filter(both))
    return {
        "added": added.to_pylist(),
        "removed": removed.to_pylist(),
        "changed": _changed(earlier, current, key),
    }


def _keyed(snapshot: Snapshot, key: tuple[str, ...], where: str | None, zone: str) -> pa.Table:
    import pyarrow as pa

    from delta_ds.kernel.files.scan.scan import Scan

    missing = [name for name in key if name not in snapshot.schema.names]
    if missing:
        raise typer.BadParameter(
            f"{snapshot.storage.url} version {snapshot.version} has no column {missing[0]!r}",
            param_hint="--key",
        )
    rows = Scan(snapshot, where, timezone=zone).to_arrow()
    if any(pa.types.is_nested(rows.schema.field(name).type) for name in key):
        raise typer.BadParameter("nested columns cannot be keys", param_hint="--key")
    return rows


def _key_texts(rows: pa.Table, key: tuple[str, ...]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = []
    for name in key:
        column = rows[name].combine_chunks()
        text = column.cast(pa.binary() if pa.types.is_binary(column.type) else pa.string()).cast(pa.binary())
        parts.append(pc.fill_null(pc.replace_substring(text, b"\0", b"\0\1"), _NULL.encode()))
    return pc.binary_join_element_wise(*parts, _BETWEEN.encode())


def _changed(before: pa.Table, after: pa.Table, key: tuple[str, ...]) -> list[dict[str, Any]]:
    """Of rows side by side, the keys of those that differ, with the columns that do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    common = [name for name in before.column_names if name in after.column_names and name not in key]
    flags = {name: _differs(before[name], after[name]) for name in common}
    anywhere = pa.array([False] * before.num_rows, pa.bool_())
    for flag in flags.values():
        anywhere = pc.or_(anywhere, flag)
    numbers = true_rows(anywhere)
    old, new = before.take(numbers).to_pylist(), after.take(numbers).to_pylist()
    marks = {name: flag.take(numbers).to_pylist() for name, flag in flags.items()}
    return [
        {
            **{name: row[name] for name in key},
            "columns": {
                name: {"from": earlier[name], "to": row[name]} for name in common if marks[name][number]
            },
        }
        for number, (earlier, row) in enumerate(zip(old, new, strict=True))
    ]


def _differs(before: pa.ChunkedArray, after: pa.ChunkedArray) -> pa.Array:
    """Whether values differ; null is null, and not a number is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(before.type) or before.type != after.type:
        pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
        return pa.array([old != new for old, new in pairs], pa.bool_())
    old, new = before.combine_chunks(), after.combine_chunks()
    same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(pc.is_null(old), pc.is_null(new)))
    if pa.types.is_floating(old.type):
        both = pc.and_(pc.is_nan(old), pc.is_nan(new))
        same = pc.or_(same, pc.fill_null(both, False))
    return pc.invert(same)


def _print(found: dict[str, Any]) -> None:
    nothing = True
    for part, difference in found.items():
        for kind, items in difference.items():
            if not items:
                continue
            nothing = False
            output.print_line(f"{part}: {len(items)} {kind}", style="bold")
            for text in list(_lines(items))[: output.MOST_LINES]:
                output.print_line(f"  {text}")
            if len(items) > output.MOST_LINES:
                output.print_line(
                    f"  ... and {len(items) - output.MOST_LINES} more: --json names all", style="dim"
                )
    if nothing:
        output.print_line("nothing differs")


def _lines(items: Any) -> list[str]:
    if isinstance(items, dict):
        return [f"{name}: {_change(value)}" for name, value in items.items()]
    return [_row(item) if isinstance(item, dict) else str(item) for item in items]


def _change(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"from", "to"}:
        return f"{shown(value['from'])} -> {shown(value['to'])}"
    return shown(value)


def _row(row: dict[str, Any]) -> str:
    columns = row.get("columns")
    if not isinstance(columns, dict):
        return shown(row)
    key = ", ".join(f"{name}={shown(value)}" for name, value in row.items() if name != "columns")
    return f"{key}: " + ", ".join(f"{name} {_change(change)}" for name, change in columns.items())
