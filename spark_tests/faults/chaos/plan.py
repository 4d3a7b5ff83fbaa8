"""Which request meets which trouble, by a seed; and what a store says when it refuses."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field

# What happens to a request on its way.
DELAYED = "delayed"  # arrives late, within the client's patience
HUNG = "hung"  # is accepted, never forwarded and never answered
LATE = "late"  # arrives after the client has lost its patience
CUT_BEFORE = "cut before"  # the connection ends before anything is forwarded
CUT_REQUEST = "cut in the request"  # half of it is forwarded
CUT_ANSWER = "cut in the answer"  # it is done, and half of the answer comes back
LOST = "answer lost"  # it is done, and nothing comes back
LOST_REFUSED = "answer lost, repetition refused"  # and the next ones of the same kind are refused
DOUBLED = "duplicated"  # it is done twice, and the second answer comes back
REFUSED = ("500", "503", "429", "409", "412")  # it is not done, and the store says so
EXPIRED = "403 expired"  # for a while nobody is let in
KINDS = (
    DELAYED, HUNG, LATE, CUT_BEFORE, CUT_REQUEST, CUT_ANSWER, LOST, LOST_REFUSED, DOUBLED, *REFUSED, EXPIRED,
)  # fmt: skip

_COMMIT = re.compile(r"_delta_log(/|%2F)\d{20}\.json", re.IGNORECASE)
_NAME = re.compile(r'"name": ?"([^"]+)"')
_NAME_WITHIN = 600  # bytes
_WRITES = frozenset({"PUT", "POST", "DELETE", "PATCH"})
# How often each kind is chosen, where one is.
_WEIGHTS = {
    DELAYED: 12, HUNG: 1, LATE: 2, CUT_BEFORE: 6, CUT_REQUEST: 5, CUT_ANSWER: 6, LOST: 8, LOST_REFUSED: 8,
    DOUBLED: 8, "500": 5, "503": 8, "429": 4, "409": 3, "412": 3,
}  # fmt: skip
# What only a write can be told, or suffer from.
_ONLY_WRITES = frozenset({"409", "412", LOST_REFUSED, LATE})

_REASONS = {403: "Forbidden", 409: "Conflict", 412: "Precondition Failed", 429: "Too Many Requests",
            500: "Internal Server Error", 503: "Service Unavailable"}  # fmt: skip
_CODES = {
    "s3": {403: "ExpiredToken", 409: "ConditionalRequestConflict", 412: "PreconditionFailed", 429: "SlowDown",
           500: "InternalError", 503: "SlowDown"},
    "abfs": {403: "AuthenticationFailed", 409: "BlobAlreadyExists", 412: "ConditionNotMet", 429: "ServerBusy",
             500: "InternalError", 503: "ServerBusy"},
}  # fmt: skip


@dataclass
class Plan:
    """Trouble by chance; the same for the same seed and the same order of requests.

    Attributes
    ----------
    seed
        Of the choices.
    rate
        Which share of all requests meets trouble.
    commit_rate
        The same of those that write a commit.
    counts
        How often each kind was met.
    """

    seed: int
    rate: float = 0.03
    commit_rate: float = 0.2
    counts: Counter[str] = field(default_factory=Counter)
    _refusals: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def choose(self, method: str, target: str, body: bytes = b"") -> str | None:
        """The trouble of a request; None: none.

        Parameters
        ----------
        body
            Where uploads are posted, the name of the object stands in it.
        """
        what = target + (body[:_NAME_WITHIN].decode("latin-1") if method == "POST" else "")
        key = method, what.partition("?")[0] if method != "POST" else _named(what)
        waiting = self._refusals.get(key)
        if waiting:
            kind = waiting.pop()
            self.counts[kind] += 1
            return kind
        writes = method in _WRITES
        rate = self.commit_rate if self.is_commit(method, target, body) else self.rate
        if self._random.random() >= rate:
            return None
        kinds = [kind for kind in _WEIGHTS if writes or kind not in _ONLY_WRITES]
        (kind,) = self._random.choices(kinds, [_WEIGHTS[kind] for kind in kinds])
        if kind == LOST_REFUSED:
            self._refusals[key] = [
                self._random.choice(("503", "412")) for _ in range(self._random.choice((1, 1, 3, 8)))
            ]
        self.counts[kind] += 1
        return kind

    def is_commit(self, method: str, target: str, body: bytes) -> bool:
        """Whether a request writes a commit."""
        what = target + (body[:_NAME_WITHIN].decode("latin-1") if method == "POST" else "")
        return method in _WRITES and _COMMIT.search(what) is not None

    def between(self, least: float, most: float) -> float:
        """A time in seconds."""
        return self._random.uniform(least, most)


def _named(what: str) -> str:
    found = _NAME.search(what)
    return found[1] if found else what


def refusal(flavour: str, status: int) -> bytes:
    """A whole answer of a store that refuses."""
    headers = [f"HTTP/1.1 {status} {_REASONS[status]}"]
    if flavour == "webhdfs":
        error = {
            "exception": "AccessControlException" if status == 403 else "IOException",
            "message": "on purpose",
        }
        body, kind = json.dumps({"RemoteException": error}).encode(), "application/json"
    elif flavour == "gs":
        reason = "authError" if status == 403 else "backendError"
        message = f"{status} on purpose"
        details = {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}
        body, kind = json.dumps({"error": details}).encode(), "application/json"
    else:
        code = _CODES[flavour][status]
        body = (
            f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>on purpose</Message></Error>".encode()
        )
        kind = "application/xml"
        if flavour == "abfs":
            headers.append(f"x-ms-error-code: {code}")
    headers += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join(headers).encode() + b"\r\n\r\n" + body
