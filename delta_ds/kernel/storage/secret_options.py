"""Storage options (keys, tokens, endpoints) that are never shown.

They are pickled to executors, but kept out of `repr`, plans, log lines and errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SHOWN = "***"
_SHORTEST_SECRET = 3  # replacing shorter texts would garble a message and hide nothing

# Values a message may need in order to be understood; everything else counts as secret.
_HARMLESS = frozenset(
    {
        "account_name", "account_host", "addressing_style", "anon", "endpoint", "endpoint_url", "host",
        "location", "port", "project", "region", "region_name", "requester_pays", "use_ssl", "username",
        "user",
        "logstore", "ddbtablename", "ddbregion", "ddbendpoint", "ddbttlseconds", "ddbscheme", "ddbcreatetable",
        "allowunsafecommits",
    }
)  # fmt: skip


class SecretOptions(dict[str, Any]):
    """A dict whose `repr` and `str` name the keys only."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {_SHOWN!r}" for key in self) + "}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return SecretOptions, (dict(self),)


def redact(text: str, options: Mapping[str, Any], *more: str) -> str:
    """Replace every secret value of the options, and each of `more`, in a text by `***`."""
    secrets = {s for s in (*_secrets(options), *more) if len(s) >= _SHORTEST_SECRET}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _SHOWN)
    return text


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and key.lower() not in _HARMLESS:
            yield value
