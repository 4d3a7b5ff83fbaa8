"""Waiting for a store that accepts a request and never answers it: for a while, never for ever.

| client | by itself | here |
| --- | --- | --- |
| s3fs | 5 s to connect, 15 s for each piece of an answer | the same |
| adlfs | 20 s to connect, 60 s for each piece of an answer | the same |
| gcsfs | for ever | 20 s to connect, 60 s for each piece of an answer, an hour in all |
| fsspec's WebHDFS | for ever | 20 s to connect, 60 s for each piece of an answer |

Options of the clients go before them. Reads that time out are repeated by the clients, a few times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_ds.kernel.storage.fsspec_types import Filesystem

_CONNECT, _ANSWER, _WHOLE = 20.0, 60.0, 3600.0  # seconds


def defaults(scheme: str) -> dict[str, Any]:
    """Options for a filesystem that waits for ever without them."""
    if scheme != "gs":
        return {}
    try:
        import aiohttp
    except ImportError:  # nor is gcsfs there, which says so better
        return {}
    return {"requests_timeout": aiohttp.ClientTimeout(total=_WHOLE, sock_connect=_CONNECT, sock_read=_ANSWER)}


def limit(scheme: str, filesystem: Filesystem) -> None:
    """Limit a filesystem that takes no such option."""
    if scheme != "webhdfs":
        return
    from requests.adapters import HTTPAdapter

    class Limited(HTTPAdapter):
        def send(self, request: Any, *given: Any, **named: Any) -> Any:
            named["timeout"] = named.get("timeout") or (_CONNECT, _ANSWER)
            return super().send(request, *given, **named)

    for prefix in ("http://", "https://"):
        filesystem.session.mount(prefix, Limited())
