"""The server of a table's page: who may ask, for what, and what every answer says to the browser.

An address has a random part, without which nothing is told: other users of the machine reach its ports too. The
header `Host` is looked at so that no page of the web can have a name of its own lead here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import secrets
import socket
import socketserver
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import unquote, urlsplit

from delta_ds.cli.json_values import error_body, plain
from delta_ds.cli.streams import tell_unexpected
from delta_ds.cli.ui.endpoints import answer
from delta_ds.cli.ui.view import TableView
from delta_ds.exceptions import (
    DataFileError,
    DeltaError,
    LogError,
    StorageError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from delta_ds.records import dataclass

_TOKEN_BYTES = 24
_IDLE_SECONDS = 30
_PAGE = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_JSON = "application/json; charset=utf-8"
# Nothing from anywhere else, no script in the page itself, and no text that becomes elements.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is sent: the status, the type of the content, the content, and headers of this answer alone."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: Mapping[str, str]


class PageServer(ThreadingHTTPServer):
    """Serves the page of one table until `shutdown`; made by `open_server`.

    Attributes
    ----------
    url
        Where the page is, with the random part.
    """

    daemon_threads = True
    # Elsewhere than on Windows this only means a port that was closed just now.
    allow_reuse_address = os.name != "nt"

    def __init__(self, view: TableView, address: Any, family: socket.AddressFamily, host: str) -> None:
        self.address_family = family
        self.view = view
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.pages = _static_files()
        self._keys: set[str] = set()
        super().__init__(address, _Handler)
        self.names = _own_names(host, self.is_local)
        # An address of all networks is none that a browser can open.
        host = socket.gethostname() if self._ip.is_unspecified else host
        self._base = f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"
        self.url = f"{self._base}{self.token}/"

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach it."""
        return self._ip.is_loopback

    @property
    def _ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(str(self.server_address[0]).partition("%")[0])

    def url_for_once(self) -> str:
        """An address that leads to the page once: everybody on a machine sees what programs are started with."""
        key = secrets.token_urlsafe(_TOKEN_BYTES)
        self._keys.add(key)
        return f"{self._base}{key}"

    def take_key(self, key: str) -> bool:
        """Whether this is the random part of an address of `url_for_once` that nobody has used yet."""
        try:
            self._keys.remove(key)
        except KeyError:
            return False
        return True

    def server_bind(self) -> None:
        # That of HTTPServer asks the network for a name that nobody needs here.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Browsers drop connections as they like.
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def open_server(view: TableView, host: str, port: int) -> PageServer:
    """A server that listens; `serve_forever` answers.

    Parameters
    ----------
    host
        A name or address of this machine.
    port
        0: any that is free.

    Raises
    ------
    OSError
        The host is not this machine's, or the port is taken.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    return PageServer(view, address, socket.AddressFamily(family), host)


def _own_names(host: str, local: bool) -> frozenset[str]:
    names = {"localhost", host.lower()}
    if not local:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def _static_files() -> dict[str, _Answer]:
    """The files of the page by name: nothing else of the disk is ever opened."""
    folder = files("delta_ds.cli.ui") / "static"
    return {
        file.name: _Answer(HTTPStatus.OK, _TYPES[os.path.splitext(file.name)[1]], file.read_bytes(), {})
        for file in folder.iterdir()
        if os.path.splitext(file.name)[1] in _TYPES
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "pydelta"
    sys_version = ""
    timeout = _IDLE_SECONDS
    server: PageServer

    def do_GET(self) -> None:
        self._send(self._find())

    def do_HEAD(self) -> None:
        self._send(self._find())

    def _find(self) -> _Answer:
        if not self._is_for_us(self.headers.get("Host")):
            return _refusal(
                HTTPStatus.FORBIDDEN,
                "the header Host names another machine; open the address that pydelta ui has printed",
            )
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            return _refusal(HTTPStatus.BAD_REQUEST, "requests have no content here")
        try:
            target = urlsplit(self.path)
        except ValueError:
            target = None
        if target is None or target.scheme or target.netloc or not target.path.startswith("/"):
            return _refusal(HTTPStatus.BAD_REQUEST, "the request names no path")
        token, slash, name = unquote(target.path[1:]).partition("/")
        if not slash and self.command == "GET" and self.server.take_key(token):
            return _Answer(HTTPStatus.SEE_OTHER, _JSON, b"", {"Location": f"/{self.server.token}/"})
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return _refusal(
                HTTPStatus.FORBIDDEN,
                "the address lacks its random part; open the one that pydelta ui has printed",
            )
        if not slash:
            return _Answer(HTTPStatus.PERMANENT_REDIRECT, _JSON, b"", {"Location": f"/{token}/"})
        if not name.startswith("api/"):
            found = self.server.pages.get(name or _PAGE)
            return found or _refusal(HTTPStatus.NOT_FOUND, f"there is no {name!r}")
        return _ask(self.server.view, name.removeprefix("api/"), target.query)

    def _is_for_us(self, host: str | None) -> bool:
        """Whether a browser means this server: by an address, which nobody can give to another, or a name of ours."""
        name = ""
        try:
            name = (urlsplit(f"//{host}").hostname or "") if host and _is_plain(host) else ""
            ipaddress.ip_address(name)
        except ValueError:
            return name in self.server.names
        return True

    def _send(self, found: _Answer) -> None:
        self.send_response(found.status)
        for name, value in {**_HEADERS, **found.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses: malformed requests, and methods that there are none of."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            text = "the page is read-only: GET and HEAD alone"
            self._send(_refusal(HTTPStatus.METHOD_NOT_ALLOWED, text, {"Allow": "GET, HEAD"}))
            return
        status = HTTPStatus(code)
        self._send(_refusal(status, message or status.phrase))

    def log_message(self, format: str, *args: Any) -> None:
        # The address of a request holds the random part.
        pass


def _is_plain(host: str) -> bool:
    return not any(letter in host for letter in "/?#@\\")


def _ask(view: TableView, name: str, query: str) -> _Answer:
    try:
        return _json(HTTPStatus.OK, answer(view, name, query))
    except DeltaError as error:
        return _json(_status(error), error_body(error))
    except LookupError as error:
        if type(error) is not LookupError:
            return _unexpected(error)
        return _refusal(HTTPStatus.NOT_FOUND, str(error))
    except Exception as error:
        return _unexpected(error)


def _unexpected(error: Exception) -> _Answer:
    # It may hold what belongs to the terminal alone.
    tell_unexpected(error)
    text = f"{type(error).__name__}, which is a defect; the terminal of pydelta ui has the details"
    return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, text)


def _status(error: DeltaError) -> HTTPStatus:
    if isinstance(error, (FileNotFoundError, VersionNotFoundError, TimestampOutOfRangeError)):
        return HTTPStatus.NOT_FOUND
    broken = isinstance(error, (LogError, DataFileError, StorageError))
    return HTTPStatus.INTERNAL_SERVER_ERROR if broken else HTTPStatus.BAD_REQUEST


def _json(status: HTTPStatus, value: Any, headers: Mapping[str, str] | None = None) -> _Answer:
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    # Names of files and columns may hold halves of characters, which no encoding has.
    return _Answer(status, _JSON, text.encode("utf-8", "replace"), headers or {})


def _refusal(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> _Answer:
    body: dict[str, Any] = {"error": status.phrase, "condition": None, "message": text, "parameters": {}}
    return _json(status, body, headers)
