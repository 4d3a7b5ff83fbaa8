"""Credentials of Azure and Google that are objects, made of what settings say in the process that uses them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from delta_ds.kernel.storage.store_options import AZURE_CLI, BEARER_TOKEN, MANAGED_IDENTITY

_AS_IT_IS = 3600  # how long a token counts as good that does not say; the store refuses it when it is not


def azure_credential(given: Mapping[str, Any]) -> Any:
    """The credential that adlfs takes."""
    if given["kind"] == BEARER_TOKEN:
        return _StaticToken(given["token"])
    from azure.identity import aio  # type: ignore[import-not-found,import-untyped,unused-ignore]

    client = {"client_id": given["client_id"]} if "client_id" in given else {}
    authority = {"authority": given["authority"]} if "authority" in given else {}
    if given["kind"] == AZURE_CLI:
        return aio.AzureCliCredential(**({"tenant_id": given["tenant_id"]} if "tenant_id" in given else {}))
    if given["kind"] == MANAGED_IDENTITY:
        return aio.ManagedIdentityCredential(**client)
    tenant = {"tenant_id": given["tenant_id"]} if "tenant_id" in given else {}
    file = {"token_file_path": given["token_file"]} if "token_file" in given else {}
    return aio.WorkloadIdentityCredential(**client, **tenant, **file, **authority)


def google_credential(given: Mapping[str, Any]) -> Any:
    """The credential that gcsfs takes."""
    from google.oauth2.credentials import Credentials  # type: ignore[import-not-found,import-untyped,unused-ignore]

    make: Any = Credentials
    return make(token=given["token"])


class _StaticToken:
    """A token of OAuth that somebody else got, as azure-identity hands out tokens."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *scopes: str, **options: Any) -> Any:
        from azure.core.credentials import AccessToken  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return AccessToken(self._token, int(time.time()) + _AS_IT_IS)

    async def close(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> _StaticToken:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""
