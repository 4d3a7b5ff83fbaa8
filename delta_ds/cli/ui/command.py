"""The command `ui`: a page of a table, served until Ctrl+C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from delta_ds.cli import output
from delta_ds.cli.arguments import Json, StorageOption, Table, Timestamp, Version, Zone, which_version
from delta_ds.kernel.transaction.table_log import snapshot_at

if TYPE_CHECKING:
    from delta_ds.cli.ui.server import PageServer


def ui(
    table: Table,
    version: Version = None,
    timestamp: Timestamp = None,
    host: Annotated[
        str, typer.Option("--host", help="Listen here; another than 127.0.0.1 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="0: any port that is free.")
    ] = 0,
    open_: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Whether a browser opens; by default where there is a screen."),
    ] = None,
    zone: Zone = "UTC",
    option: StorageOption = None,
    json: Json = False,
) -> None:
    """A page of a table in the browser: versions, files, statistics, what a filter reads. Nothing is changed."""
    from delta_ds.cli.ui.server import open_server
    from delta_ds.cli.ui.view import TableView

    log, at, moment = which_version(table, option, version, timestamp, zone)
    snapshot = snapshot_at(log, at, moment, zone)
    start = None if at is None and moment is None else snapshot.version
    try:
        server = open_server(TableView(log, zone, start), host, port)
    except OSError as error:
        raise typer.BadParameter(
            f"{host} port {port}: {error.strerror or error}", param_hint="--host, --port"
        ) from None
    with server, _ended_by_signals(server):
        _tell(server, host, json)
        if open_ or (open_ is None and _has_screen()):
            # Some browsers stay in the foreground, and the page is to be there meanwhile.
            threading.Thread(target=_open, args=(server,), daemon=True).start()
        server.serve_forever(poll_interval=0.2)


def _tell(server: PageServer, host: str, json: bool) -> None:
    if not server.is_local:
        output.print_warning(
            f"warning: whoever reaches {host} and knows the address sees the table; nothing is encrypted",
            style="yellow",
        )
    if json:
        output.print_json({"url": server.url})
    else:
        output.print_line(server.url, style="bold")
        output.print_line("Ctrl+C ends it", style="dim")


def _has_screen() -> bool:
    """Whether somebody sits here: a terminal, and something that shows windows."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def _open(server: PageServer) -> None:
    if not webbrowser.open(server.url_for_once()):
        output.print_warning("no browser is found here: open the address in one", style="yellow")


@contextmanager
def _ended_by_signals(server: PageServer) -> Iterator[None]:
    """Ctrl+C, or an end that is asked for politely, is how a page ends, and no failure."""

    def stop(*_: Any) -> None:
        # `shutdown` waits for the loop that this signal has interrupted.
        threading.Thread(target=server.shutdown).start()

    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, stop) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
