"""Temporary credentials that the catalog gives out, as options of the stores that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.kernel.storage.uri import parse_address
from delta_ds.records import dataclass, field

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
