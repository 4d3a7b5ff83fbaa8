"""Sessions of botocore whose credentials come from where settings say: named sources only, or a role.

Credentials of Azure and Google that are objects, made of what settings say in the process that uses them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from delta_ds.kernel.storage.store_options import (
    ASSUMED_ROLE,
    AZURE_CLI,
    BEARER_TOKEN,
    CREDENTIAL_SOURCES,
    MANAGED_IDENTITY,
)

# Options that a session takes in; the client must not have them besides.
SESSION_OPTIONS = ("key", "secret", "token", "profile")

# A source as settings name it -> botocore's providers of it.
_METHODS = {
    "env": ("env",),
    "instance": ("container-role", "iam-role"),
    "container": ("container-role",),
    "profile": ("assume-role", "sso", "shared-credentials-file", "login", "custom-process", "config-file"),
    "web identity": ("assume-role-with-web-identity",),
}


def async_session(options: Mapping[str, Any]) -> Any | None:
    """A session for S3's client; None where botocore's own order of sources holds."""
    if CREDENTIAL_SOURCES not in options and ASSUMED_ROLE not in options:
        return None
    from aiobotocore.session import AioSession  # type: ignore[import-untyped,unused-ignore]

    session = AioSession(profile=options.get("profile"))
    _restrict(session, options, importlib.import_module("aiobotocore.credentials"), "Aio")
    return session


def blocking_session(options: Mapping[str, Any]) -> Any:
    """A session for other clients, with the same credentials."""
    from botocore.session import Session  # type: ignore[import-untyped,unused-ignore]

    session = Session(profile=options.get("profile"))
    _restrict(session, options, importlib.import_module("botocore.credentials"), "")
    return session


def _restrict(session: Any, options: Mapping[str, Any], credentials: ModuleType, prefix: str) -> None:
    sources, role = options.get(CREDENTIAL_SOURCES), options.get(ASSUMED_ROLE)
    if sources is None and role is None:
        return
    region = (options.get("client_kwargs") or {}).get("region_name")
    resolver = credentials.create_credential_resolver(session, region_name=region)
    if sources is not None:
        # The environment and a named profile exclude each other in botocore; who names both wants both looked at.
        known = {
            one.METHOD: one for one in [getattr(credentials, f"{prefix}EnvProvider")(), *resolver.providers]
        }
        wanted = [method for source in sources for method in _METHODS[source]]
        resolver.providers = [known[method] for method in wanted if method in known]
    if role is not None:
        provider = _role_provider(session, options, resolver, credentials, prefix)
        resolver = type(resolver)(providers=[provider])
    session.register_component("credential_provider", resolver)


def _role_provider(
    session: Any, options: Mapping[str, Any], resolver: Any, credentials: ModuleType, prefix: str
) -> Any:
    role: Mapping[str, Any] = options[ASSUMED_ROLE]
    config = {name: role[name] for name in _OF_PROFILES if name in role}
    profiles: dict[str, dict[str, Any]] = {"role": config}
    create = _creator(session, options, role)
    if "web_identity_token_file" in role:
        return getattr(credentials, f"{prefix}AssumeRoleWithWebIdentityProvider")(
            load_config=lambda: {"profiles": profiles},
            client_creator=create,
            profile_name="role",
            cache={},
            disable_env_vars=True,
        )
    fetch = getattr(credentials, f"{prefix}AssumeRoleCredentialFetcher")
    extra = {"RoleSessionName": role.get("role_session_name", "delta-ds")}
    if "duration_seconds" in role:
        extra["DurationSeconds"] = role["duration_seconds"]
    if "external_id" in role:
        extra["ExternalId"] = role["external_id"]
    return _RoleOf(
        options, resolver, credentials, prefix, lambda source: fetch(create, source, role["role_arn"], extra)
    )


_OF_PROFILES = ("role_arn", "role_session_name", "web_identity_token_file")


class _RoleOf:
    """A provider of a role's credentials, got with those that are given or that other providers find."""

    METHOD = "assume-role"
    CANONICAL_NAME = None

    def __init__(
        self,
        options: Mapping[str, Any],
        resolver: Any,
        credentials: ModuleType,
        prefix: str,
        fetcher: Callable[[Any], Any],
    ) -> None:
        self._options = options
        self._resolver = resolver
        self._credentials = credentials
        self._prefix = prefix
        self._fetcher = fetcher

    def _given(self) -> Any | None:
        if not self._options.get("key"):
            return None
        made = getattr(self._credentials, f"{self._prefix}Credentials")
        return made(self._options["key"], self._options.get("secret"), self._options.get("token"))

    def _deferred(self, source: Any) -> Any:
        deferred = getattr(self._credentials, f"{self._prefix}DeferredRefreshableCredentials")
        return deferred(method=self.METHOD, refresh_using=self._fetcher(source).fetch_credentials)

    def load(self) -> Any:
        if self._prefix:
            return self._load_async()
        source = self._given() or self._resolver.load_credentials()
        return None if source is None else self._deferred(source)

    async def _load_async(self) -> Any:
        source = self._given() or await self._resolver.load_credentials()
        return None if source is None else self._deferred(source)


def _creator(session: Any, options: Mapping[str, Any], role: Mapping[str, Any]) -> Callable[..., Any]:
    """How a client of STS is made: where settings say, else where the store is told to be."""
    region = role.get("region_name") or (options.get("client_kwargs") or {}).get("region_name")
    endpoint = role.get("endpoint_url")
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"

    def create(service: str, **given: Any) -> Any:
        given = {
            "region_name": region or "us-east-1",
            **({"endpoint_url": endpoint} if endpoint else {}),
            **given,
        }
        return session.create_client(service, **given)

    return create


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
