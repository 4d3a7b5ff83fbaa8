"""Commands that show rows: `show`, `changes`, `blame`, and `sql`, a SELECT that DuckDB answers by this package."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

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
    column_names,
    named_values,
    open_at,
    open_log,
)
from delta_ds.cli.json_values import rows_of
from delta_ds.conditions.data import QUERY_FAILED
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.files.scan.scan import package_of

if TYPE_CHECKING:
    import duckdb
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
    _print_rows(scan.schema.names, scan.to_batches(), limit, json)


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
    _print_rows(feed.schema.names, feed.to_batches(), limit, json)


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


def _print_rows(names: list[str], batches: Iterator[pa.RecordBatch], limit: int, json: bool) -> None:
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
            rows += rows_of(batch)
            continue
        rows += rows_of(batch.slice(0, limit + 1 - len(rows)))
        if len(rows) > limit:
            break
    return rows[:limit], limit is not None and len(rows) > limit


# DuckDB opens nothing by itself: neither files nor extensions. What is asked for are tables.
_SETTINGS = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
}
# Behind it an error that came through Arrow has the Python that raised it.
_TRACEBACK = " Detail: Python exception:"


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="A SELECT of DuckDB's SQL. FROM 'PATH' is the table there; 'PATH@v5' its version 5."
        ),
    ],
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME=TABLE", help="The table that a name in the query stands for."),
    ] = None,
    limit: Limit = None,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """The rows of a SELECT over tables, by DuckDB; only the columns and files that it needs are read."""
    named = named_values(table, "--table")
    try:
        package = package_of("duckdb", "pydelta sql")
    except ImportError as error:
        raise typer.BadParameter(str(error), param_hint="sql") from None
    with package.connect(config=_SETTINGS) as connection, _errors(package):
        connection.execute("SET TimeZone = ?", [zone])
        statement = _only_select(connection, query)
        missing = _make_views(connection, query, named, option, zone)
        try:
            found = connection.sql(statement)
        except package.CatalogException:
            if missing:
                raise missing[0] from None
            raise
        _print(found, limit, json)


def _only_select(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The text of the one statement.

    Raises
    ------
    typer.BadParameter
        It is another one, none, or there are several.
    """
    statements = connection.extract_statements(query)
    kinds = [statement.type.name for statement in statements]
    if kinds == ["SELECT"]:
        text: str = statements[0].query
        return text
    told = f"{', '.join(kinds)}" if kinds else "empty"
    raise typer.BadParameter(
        f"one SELECT is answered, and this is {told}; nothing was done", param_hint="QUERY"
    )


def _make_views(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    named: dict[str, str],
    option: list[str] | None,
    zone: str,
) -> list[NotADeltaTableError]:
    """Make a view of each table that a query names; returns why others are none, such as names of its own."""
    names = _table_names(connection, query)
    unused = sorted(named.keys() - names)
    if unused:
        raise typer.BadParameter(f"the query names no {', '.join(unused)}", param_hint="--table")
    missing: list[NotADeltaTableError] = []
    for name in sorted(names):
        found = _opened(named.get(name, name), option, zone, needed=name in named)
        if isinstance(found, NotADeltaTableError):
            missing.append(found)
        else:
            connection.register(name, found.to_pyarrow_dataset(timezone=zone))
    return missing


def _table_names(connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """The names without a schema that a query has for tables, by DuckDB's own parser."""
    ((answer,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    tree = json_module.loads(answer)
    if tree.get("error"):
        raise typer.BadParameter(str(tree.get("error_message")), param_hint="QUERY")
    found, pending = set(), [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and not node.get("schema_name"):
                found.add(str(node["table_name"]))
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return found


def _opened(
    table: str, option: list[str] | None, zone: str, *, needed: bool
) -> Snapshot | NotADeltaTableError:
    try:
        return Snapshot(open_at(table, option, zone=zone)[1])
    except NotADeltaTableError as error:
        if needed:
            raise
        return error


def _print(found: duckdb.DuckDBPyRelation, limit: int | None, json: bool) -> None:
    import pyarrow as pa

    names = _unique(found.columns)
    most = limit if limit is not None else None if json else SHOWN_ROWS
    reader = pa.RecordBatchReader.from_stream(found)
    batches = (batch.rename_columns(names) for batch in reader)
    rows, more = first_rows(batches, most)
    if json:
        output.print_json(rows)
        return
    output.print_table(names, [[row[name] for name in names] for row in rows])
    tell_of_more(more, most)


def _unique(names: list[str]) -> list[str]:
    """Names of columns, each another one."""
    found: list[str] = []
    for name in names:
        number, own = 1, name
        while own in found:
            number, own = number + 1, f"{name}_{number}"
        found.append(own)
    return found


@contextmanager
def _errors(package: Any) -> Iterator[None]:
    """What DuckDB says of a query: of its text a wrong command line, of its rows a failure."""
    of_text = (package.ParserException, package.BinderException, package.CatalogException)
    try:
        yield
    except of_text as error:
        raise typer.BadParameter(str(error), param_hint="QUERY") from None
    except package.Error as error:
        raise QUERY_FAILED(reason=str(error).partition(_TRACEBACK)[0]) from error
