"""Requests to a catalog's server: one connection and one request each, never repeated here, and never for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from delta_ds.conditions.coordination import UNITY_INVALID_ADDRESS, UNITY_INVALID_TOKEN
from delta_ds.events.log import TOKEN_SENT_IN_CLEAR
from delta_ds.kernel.storage.store_errors import raise_alone
from delta_ds.kernel.storage.store_options import hidden
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from http.client import HTTPConnection

API = "/api/2.1/unity-catalog"
CONNECT_S = 20.0
ANSWER_S = 60.0  # for each piece of an answer
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What may stand in a header; whatever else is refused, as the error of the client would show it.
_TOKEN = re.compile(r"[\x21-\x7e]*(?: [\x21-\x7e]+)*")
_told: set[str] = set()


class NotReached(Exception):
    """No request was sent: nothing has happened there."""


class NoAnswer(Exception):
    """A request was sent, and its answer did not come or not whole: it may have been done."""


@dataclass(frozen=True)
class Answer:
    """What a server said.

    Attributes
    ----------
    status
        Of HTTP.
    body
        The JSON object; empty where the answer is none.
    text
        The answer as it came.
    """

    status: int
    body: Mapping[str, Any]
    text: str

    @property
    def error(self) -> str:
        """The type of the error, as the API for Delta tables names it; empty where it says none."""
        found = self.body.get("error")
        return str(found.get("type") or "") if isinstance(found, Mapping) else ""

    @property
    def reason(self) -> str:
        """What went wrong, in the server's words: they may hold secrets."""
        found = self.body.get("error")
        said = found.get("message") if isinstance(found, Mapping) else self.body.get("message")
        text = str(said or " ".join(self.text.split()))
        return f"{self.status} {self.error or self.body.get('error_code') or ''}".strip() + f": {text}"


class Server:
    """A server by its address and the token that it knows its user by.

    Parameters
    ----------
    url
        Such as `https://catalog.example.com` or `http://localhost:8080`; the path of the API may be there or not.
    token
        Sent as a bearer's; empty for none. Never shown.

    Raises
    ------
    InvalidOptionError
        The address is none of `http` or `https`, or has a user, a query or a fragment; or the token is none.
    """

    def __init__(self, url: str, token: str = "") -> None:
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError:
            raise UNITY_INVALID_ADDRESS(value=_shown(url)) from None
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.username is not None
            or parts.query
            or parts.fragment
        ):
            raise UNITY_INVALID_ADDRESS(value=_shown(url))
        if not _TOKEN.fullmatch(token):
            raise UNITY_INVALID_TOKEN()
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, port or (443 if self._tls else 80)
        self._base = parts.path.rstrip("/").removesuffix(API) + API
        self._token = token
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(API)}"
        if token and not self._tls and self._host not in _LOOPBACK and self.url not in _told:
            _told.add(self.url)
            TOKEN_SENT_IN_CLEAR.log(url=self.url)

    @property
    def key(self) -> tuple[str, str]:
        """What tells servers and their users apart."""
        return self.url, self._token

    def ask(self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None) -> Answer:
        """Send one request.

        Parameters
        ----------
        path
            Below that of the API, such as `/tables`.

        Raises
        ------
        NotReached
            There is no connection, or no secure one.
        NoAnswer
            It broke, or time was up, after the request was begun.
        """
        from http.client import HTTPException

        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Accept": "application/json", "Connection": "close", "User-Agent": "delta-ds"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        target = self._base + path + (f"?{urlencode(query)}" if query else "")
        connection, prefix = self._connected()
        try:
            connection.request(method, prefix + target, data, headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, HTTPException) as error:
            raise_alone(NoAnswer(self._told_by(error)))
        finally:
            connection.close()
        try:
            said = json.loads(text) if text else {}
        except ValueError:
            said = {}
        return Answer(answer.status, said if isinstance(said, dict) else {}, text)

    def _connected(self) -> tuple[HTTPConnection, str]:
        """A connection, through the proxy of the environment where there is one; and what stands before paths."""
        from http.client import HTTPConnection, HTTPException, HTTPSConnection
        from urllib.request import getproxies, proxy_bypass

        scheme = "https" if self._tls else "http"
        proxy = None if proxy_bypass(self._host) else getproxies().get(scheme)
        via = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else None
        host, port = (via.hostname or "", via.port or 80) if via is not None else (self._host, self._port)
        connection: HTTPConnection
        try:
            if self._tls:
                import ssl

                connection = HTTPSConnection(
                    host, port, timeout=CONNECT_S, context=ssl.create_default_context()
                )
                if via is not None:
                    connection.set_tunnel(self._host, self._port)
            else:
                connection = HTTPConnection(host, port, timeout=CONNECT_S)
            connection.connect()
            connection.sock.settimeout(ANSWER_S)
        except (OSError, HTTPException) as error:
            raise_alone(NotReached(self._told_by(error)))
        plain = via is not None and not self._tls
        return connection, f"http://{self._host}:{self._port}" if plain else ""

    def _told_by(self, error: Exception) -> str:
        text = str(getattr(error, "strerror", None) or error)
        return hidden(
            f"{type(error).__name__}: {text}" if text else type(error).__name__, None, {}, self._token
        )


def _shown(url: str) -> str:
    """What may be shown of an address that is none: no user, no query, no fragment."""
    head, separator, rest = re.split(r"[?#]", url, maxsplit=1)[0].rpartition("://")
    return head + separator + rest.rpartition("@")[2]
