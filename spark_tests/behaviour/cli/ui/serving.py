"""A server of a table's page in a thread, and a client that sends whatever a test wants."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from delta_ds import DeltaLog
from delta_ds.cli.ui.server import PageServer, open_server
from delta_ds.cli.ui.view import TableView


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Page:
    """A page that is served."""

    server: PageServer

    def send(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Reply:
        """A request for a path as it is written, random part and all."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": f"127.0.0.1:{self.server.server_port}", **(headers or {})}
            if body is not None:
                given["Content-Length"] = str(len(body))
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def get(self, name: str, **headers: str) -> Reply:
        """A file or an answer of the page."""
        return self.send(f"/{self.server.token}/{name}", headers=headers)

    def ask(self, name: str, status: int = 200, **parameters: Any) -> Any:
        """An answer, which must have this status."""
        reply = self.get(f"api/{name}?{urlencode(parameters)}")
        assert reply.status == status, reply.body
        return reply.json


@contextmanager
def serving(server: PageServer) -> Iterator[None]:
    """A server that answers, in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def served(table: Path | str, zone: str = "UTC", start: int | None = None) -> Iterator[Page]:
    """The page of a table."""
    view = TableView(DeltaLog(str(table)), zone, start)
    with open_server(view, "127.0.0.1", 0) as server, serving(server):
        yield Page(server)


@contextmanager
def running(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, and the address that it prints first."""
    given = [*arguments] if environment is not None else [*arguments, "--no-open"]
    program = subprocess.Popen(
        [sys.executable, "-m", "delta_ds", "ui", *given],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    try:
        assert program.stdout is not None and program.stderr is not None
        yield program, program.stdout.readline().strip()
    finally:
        program.kill()
        program.communicate()
