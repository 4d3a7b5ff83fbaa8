"""The API for Delta tables: questions, answers, and errors as conditions.

Questions that change nothing are asked again where a server is busy; what changes something is sent once, and who sends
it judges the answer.

Source: Unity Catalog, `api/delta.yaml` 1.0 and "Managed Tables Specification" 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from delta_ds.conditions.coordination import (
    COORDINATOR_TABLE_NOT_FOUND,
    COORDINATOR_UNAVAILABLE,
    UNITY_INVALID_NAME,
    UNITY_NAMESPACE_NOT_FOUND,
    UNITY_NOT_DELTA,
    UNITY_PERMISSION_DENIED,
    UNITY_TOKEN_REFUSED,
    UNITY_UNSUPPORTED_SERVER,
)
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.storage.store_errors import pause
from delta_ds.kernel.storage.store_options import SecretOptions, hidden
from delta_ds.kernel.storage.uri import parse_address
from delta_ds.kernel.transaction.unity.http import Answer, NoAnswer, NotReached, Server
from delta_ds.records import dataclass, field

# --- temporary credentials that the catalog gives out, as options of the stores that they are for

# Stores for which a catalog gives out credentials.
CLOUDS = frozenset({"s3", "gs", "abfs"})
_OPTIONS = {
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
    "azure.sas-token": "AZURE_STORAGE_SAS_TOKEN",
    "gcs.oauth-token": "GOOGLE_BEARER_TOKEN",
}


@dataclass(frozen=True)
class Vended:
    """Storage options that hold for a while.

    Attributes
    ----------
    options
        By the names of the clouds' tools; never shown.
    expires_ms
        When they end, in ms since 1970; None: never, or not told.
    """

    options: SecretOptions = field(default_factory=SecretOptions, repr=False)
    expires_ms: int | None = None


def needs_credentials(location: str) -> bool:
    """Whether the store of an address is one for which catalogs give out credentials."""
    return parse_address(location).scheme in CLOUDS


def vended(told: Sequence[Mapping[str, Any]], location: str) -> Vended:
    """The credential for an address, of those that a catalog gave: that with the longest prefix of it."""
    fitting = [one for one in told if _is_under(location, str(one.get("prefix") or ""))]
    if not fitting:
        return Vended()
    best = max(fitting, key=lambda one: len(str(one["prefix"]).rstrip("/")))
    given = best.get("config") or {}
    options = {_OPTIONS[name]: value for name, value in given.items() if name in _OPTIONS and value}
    return Vended(SecretOptions(options), best.get("expiration-time-ms") if options else None)


def _is_under(location: str, prefix: str) -> bool:
    if not prefix:
        return False
    inner, outer = parse_address(location), parse_address(prefix)
    if (inner.scheme, inner.authority) != (outer.scheme, outer.authority):
        return False
    return f"{inner.path.rstrip('/')}/".startswith(f"{outer.path.rstrip('/')}/")


# --- the API for Delta tables: questions, answers, and errors as conditions

_VERSIONS = "1.0"
_ATTEMPTS = 4
_BUSY = frozenset({429, 502, 503, 504})
_PAGE = "50"
_LONGEST_REASON = 1000
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")
# Servers, users and catalogs that have answered what versions they speak.
_settled: set[tuple[str, str, str]] = set()


@dataclass(frozen=True)
class Name:
    """The full name of a table."""

    catalog: str
    schema: str
    table: str

    @staticmethod
    def of(text: str) -> Name:
        """The parts of a full name, ``main.sales.`orders 2026` ``.

        Raises
        ------
        InvalidOptionError
            It has not three parts.
        """
        parts, at = [], 0
        while at < len(text) and (found := _PART.match(text, at)) is not None:
            parts.append(found[1].replace("``", "`") if found[1] is not None else found[2].strip())
            at = found.end()
            if at < len(text):
                if text[at] != "." or at + 1 == len(text):
                    break
                at += 1
        if at != len(text) or len(parts) != 3 or not all(parts):
            raise UNITY_INVALID_NAME(name=text)
        return Name(*parts)

    def __str__(self) -> str:
        return ".".join(
            part if re.fullmatch(r"\w+", part, re.ASCII) else f"`{part.replace('`', '``')}`"
            for part in (self.catalog, self.schema, self.table)
        )

    @property
    def tables(self) -> str:
        """Where the tables of the schema are, below the API for Delta tables."""
        return f"/delta/v1/catalogs/{_quoted(self.catalog)}/schemas/{_quoted(self.schema)}/tables"

    @property
    def path(self) -> str:
        """Where the table is."""
        return f"{self.tables}/{_quoted(self.table)}"

    @property
    def staging(self) -> str:
        """Where tables of the schema begin."""
        return self.tables.removesuffix("tables") + "staging-tables"


def _quoted(part: str) -> str:
    return quote(part, safe="")


class Api:
    """The API of one server for one user."""

    def __init__(self, server: Server, token: str) -> None:
        self._server = server
        self._token = token

    def describe(self) -> str:
        """Which one, for messages."""
        return f"Unity Catalog at {self._server.url}"

    # --- requests

    def get(self, path: str, query: Mapping[str, str] | None, verb: str, table: str) -> Mapping[str, Any]:
        """Ask for something, again where the server is busy.

        Parameters
        ----------
        verb, table
            What for, for messages.

        Raises
        ------
        NotADeltaTableError, StorageError
            See `failure`.
        """
        answer = self.try_get(path, query, verb, table)
        if answer.status != 200:
            raise self.failure(answer, verb, table)
        return answer.body

    def try_get(self, path: str, query: Mapping[str, str] | None, verb: str, table: str) -> Answer:
        """The same, whatever the answer is."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(attempt)
            try:
                answer = self._server.ask("GET", path, query)
            except (NotReached, NoAnswer) as error:
                problem: Answer | Exception = error
                continue
            if answer.status not in _BUSY:
                return answer
            problem = answer
        if isinstance(problem, Answer):
            return problem
        raise self.silence(problem, verb, table) from problem

    def send(self, method: str, path: str, body: Any, verb: str, table: str) -> Answer:
        """Send what changes something: once.

        Raises
        ------
        NoAnswer
            Sent, and no answer: it may have happened.
        StorageError
            Not sent.
        """
        try:
            return self._server.ask(method, path, None, body)
        except NotReached as error:
            raise self.silence(error, verb, table) from error

    def settle(self, catalog: str, verb: str, table: str) -> None:
        """Make sure that the server speaks this version of the API; asked once for each catalog.

        Raises
        ------
        StorageError
            It does not, or see `failure`.
        """
        key = (*self._server.key, catalog)
        if key in _settled:
            return
        answer = self.try_get(
            "/delta/v1/config", {"catalog": catalog, "protocol-versions": _VERSIONS}, verb, table
        )
        speaks = str(answer.body.get("protocol-version") or "").partition(".")[0]
        if answer.status == 200 and speaks != "1":
            raise self._unsupported(f"it speaks version {speaks or 'nothing known'}", verb, table)
        if answer.status != 200:
            if answer.status in (400, 404) and answer.error in ("", "InvalidParameterValueException"):
                raise self._unsupported(self.said(answer), verb, table)
            raise self.failure(answer, verb, table)
        _settled.add(key)

    def _unsupported(self, reason: str, verb: str, table: str) -> DeltaError:
        return UNITY_UNSUPPORTED_SERVER(verb=verb, table=table, coordinator=self.describe(), reason=reason)

    def pages(
        self, path: str, field: str, query: Mapping[str, str], verb: str
    ) -> Iterator[Mapping[str, Any]]:
        """What a list of the catalog's own API holds, page by page."""
        token = ""
        while True:
            asked = {**query, "max_results": _PAGE, **({"page_token": token} if token else {})}
            told = self.get(path, asked, verb, ".".join(query.values()) or "the catalog")
            yield from told.get(field) or ()
            token = told.get("next_page_token") or ""
            if not token:
                return

    # --- errors

    def said(self, answer: Answer) -> str:
        """What a server says went wrong, without the token that it may repeat."""
        return self._hidden(answer.reason)[:_LONGEST_REASON]

    def _hidden(self, text: str) -> str:
        return hidden(text, None, {}, self._token)

    def silence(self, error: Exception, verb: str, table: str) -> DeltaError:
        """The error where no answer came to what changes nothing."""
        reason = str(error) or type(error).__name__
        return COORDINATOR_UNAVAILABLE(verb=verb, table=table, coordinator=self.describe(), reason=reason)

    def failure(self, answer: Answer, verb: str, table: str) -> DeltaError:
        """The error of an answer that is none of success."""
        given = {"verb": verb, "table": table, "coordinator": self.describe(), "reason": self.said(answer)}
        if answer.status == 401:
            return UNITY_TOKEN_REFUSED(**given)
        if answer.status == 403:
            return UNITY_PERMISSION_DENIED(**given)
        if answer.error == "NoSuchTableException":
            return COORDINATOR_TABLE_NOT_FOUND(coordinator=self.describe(), table=table)
        if answer.error in ("NoSuchCatalogException", "NoSuchSchemaException"):
            return UNITY_NAMESPACE_NOT_FOUND(**given)
        if answer.error == "UnsupportedTableFormatException":
            return UNITY_NOT_DELTA(**given)
        if answer.status == 404 and not answer.error and "error_code" not in answer.body:
            return UNITY_UNSUPPORTED_SERVER(**given)
        return COORDINATOR_UNAVAILABLE(**given)
