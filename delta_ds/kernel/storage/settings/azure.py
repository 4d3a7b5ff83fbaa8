"""Settings of Azure Blob Storage and Data Lake Storage."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage import store_options as own
from delta_ds.kernel.storage.settings.record import Refused, Setting, flag, only, seconds
from delta_ds.kernel.storage.uri import Address

_OAUTH = "fs.azure.account.oauth2."
_TYPE = "fs.azure.account.auth.type"
_PROVIDER = "fs.azure.account.oauth.provider.type"

SETTINGS = (
    Setting(
        ("account_name",), "storage account, where the address names none", (),
        ("azure_storage_account_name",), environment=("AZURE_STORAGE_ACCOUNT_NAME",),
    ),
    Setting(
        ("account_key",), "key of the account; in Hadoop with the account's host at the end",
        ("fs.azure.account.key",),
        ("azure_storage_account_key", "azure_storage_access_key", "azure_storage_master_key"),
        ("access_key", "master_key"), credential=True, secret=True, environment=("AZURE_STORAGE_ACCESS_KEY",),
    ),
    Setting(
        ("sas_token",), "shared access signature", ("fs.azure.sas.fixed.token",),
        ("azure_storage_sas_key", "azure_storage_sas_token"), ("sas_key",), credential=True,
        environment=("AZURE_STORAGE_SAS_KEY",),
    ),
    Setting(
        ("_auth", "type"), "`SharedKey`, `SAS` or `OAuth`", (_TYPE,), parse=only("sharedkey", "sas", "oauth"),
        credential=True,
    ),
    Setting(("_auth", "provider"), "how a token of OAuth is got", (_PROVIDER,), credential=True),
    Setting(
        ("client_id",), "client of a service principal or managed identity", (f"{_OAUTH}client.id",),
        ("azure_storage_client_id", "azure_client_id"), credential=True,
    ),
    Setting(
        ("client_secret",), "secret of a service principal", (f"{_OAUTH}client.secret",),
        ("azure_storage_client_secret", "azure_client_secret"), credential=True,
    ),
    Setting(
        ("tenant_id",), "tenant", (f"{_OAUTH}msi.tenant",),
        ("azure_storage_tenant_id", "azure_storage_authority_id", "azure_tenant_id", "azure_authority_id"),
        ("authority_id",), credential=True,
    ),
    Setting(
        ("_auth", "endpoint"), "address that gives tokens, with the tenant in its path",
        (f"{_OAUTH}client.endpoint",),
        credential=True,
    ),
    Setting(
        ("_auth", "token_file"), "token of a workload identity", (f"{_OAUTH}token.file",),
        ("azure_federated_token_file",), ("federated_token_file",), credential=True,
    ),
    Setting(
        ("_auth", "authority"), "login host, where it is not Azure's own", (f"{_OAUTH}msi.authority",),
        ("azure_storage_authority_host", "azure_authority_host"), ("authority_host",), credential=True,
    ),
    Setting(
        ("_auth", "cli"), "`true`: as logged in with the command `az`", (), ("azure_use_azure_cli",),
        ("use_azure_cli",), flag, credential=True,
    ),
    Setting(
        ("_auth", "token"), "token of OAuth as it is", (), ("azure_storage_token",), ("bearer_token",),
        credential=True
    ),
    Setting(
        ("anon",), "ask without credentials", (), ("azure_skip_signature",), ("skip_signature",), flag,
        credential=True
    ),
    Setting(("connection_string",), "address and credentials in one", (), ("azure_storage_connection_string",)),
    Setting(
        ("_endpoint",), "address of the store", (), ("azure_storage_endpoint", "azure_endpoint"),
        ("endpoint",),
        environment=("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"), settled_by=("connection_string", "account_host"),
    ),
    Setting(
        ("_emulator",), "`true`: Azurite, at AZURITE_BLOB_STORAGE_URL or http://127.0.0.1:10000", (),
        ("azure_storage_use_emulator", "azure_use_emulator"), ("use_emulator",), flag,
        environment=("AZURE_STORAGE_USE_EMULATOR",), settled_by=("connection_string", "account_host"),
    ),
    Setting(
        (own.ALLOW_HTTP,), "`false`: refuse an address with http://", (), ("azure_allow_http", "allow_http"),
        parse=flag,
    ),
    Setting(
        ("connection_timeout",), "longest wait for a connection", (),
        ("azure_connect_timeout", "connect_timeout"),
        parse=lambda text: int(seconds(text)),
    ),
    Setting(
        ("read_timeout",), "longest wait for an answer", (), ("azure_timeout", "azure_read_timeout"),
        parse=lambda text: int(seconds(text)),
    ),
)  # fmt: skip

REFUSED = (
    Refused(r"fs\.azure\.account\.keyprovider.*", "give fs.azure.account.key.<account>.dfs.core.windows.net"),
    Refused(r"fs\.azure\.sas\.token\.provider\.type", "give the token itself as fs.azure.sas.fixed.token"),
    Refused(
        r"fs\.azure\.account\.oauth2\.(refresh\.token.*|user\..*)",
        "give client.id, client.secret and client.endpoint of a service principal",
    ),
    Refused(
        r"fs\.azure\.encryption\..*|(azure_storage_)?encryption_key",
        "keys of the customer's own are not sent",
    ),
    Refused(r"azure_fabric_.*|azure_use_fabric_endpoint", "give azure_storage_token", in_session=False),
    Refused(
        r"azure_(msi_endpoint|identity_endpoint|object_id|msi_resource_id)",
        "name the managed identity by azure_client_id",
        in_session=False,
    ),
)

WHO_ASKS = frozenset(["credential", "connection_string", "azure_storage_connection_string"])
_PROVIDERS = {
    "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider": "client",
    "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider": own.MANAGED_IDENTITY,
    "org.apache.hadoop.fs.azurebfs.oauth2.WorkloadIdentityTokenProvider": own.WORKLOAD_IDENTITY,
}
# The account that every emulator of Azure has; its key is public.
_EMULATED = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
)
_EMULATOR_URL = "http://127.0.0.1:10000"
_PUBLIC = "core.windows.net"


def account_of(address: Address) -> tuple[str, str]:
    """The account that an address names and the domain behind it; empty where it names none."""
    _, at, host = address.authority.rpartition("@")
    account, _, domain = host.partition(".") if at else ("", "", "")
    return account.lower(), domain.lower().removeprefix("dfs.").removeprefix("blob.")


def complete(options: dict[str, Any], address: Address) -> None:
    """Make options of the notes that settings left.

    Raises
    ------
    InvalidOptionError
        Settings that contradict each other or have no counterpart.
    """
    account, domain = account_of(address)
    auth = options.pop("_auth", {})
    _who_asks(options, auth)
    if options.pop("_emulator", False):
        options.setdefault("account_name", _EMULATED[0])
        if not options.get("sas_token"):
            options.setdefault("account_key", _EMULATED[1])
        url = os.environ.get("AZURITE_BLOB_STORAGE_URL", _EMULATOR_URL).rstrip("/")
        options.setdefault("_endpoint", f"{url}/{options['account_name']}")
    endpoint = options.pop("_endpoint", None)
    if endpoint is not None:
        _at(options, endpoint, options.get("account_name") or account)
    elif account and domain not in ("", _PUBLIC) and "connection_string" not in options:
        options.setdefault("account_host", f"{account}.blob.{domain}")


def _who_asks(options: dict[str, Any], auth: dict[str, Any]) -> None:
    kind = auth.get("type")
    provider = auth.get("provider")
    if provider is not None and provider not in _PROVIDERS:
        raise InvalidOptionError(
            f"the token provider {provider!r} of {_PROVIDER!r} has no counterpart here; a service principal has: "
            f"give client.id, client.secret and client.endpoint below {_OAUTH[:-1]!r}",
            parameters={"option": _PROVIDER},
        )
    if kind == "sharedkey" and not options.get("account_key"):
        raise _incomplete("SharedKey", "fs.azure.account.key.<account>.dfs.core.windows.net")
    if kind == "sas" and not options.get("sas_token"):
        raise _incomplete("SAS", "fs.azure.sas.fixed.token")
    if kind == "oauth":
        for name in ("account_key", "sas_token"):
            options.pop(name, None)
        if provider is None:
            raise _incomplete("OAuth", _PROVIDER)
    if "endpoint" in auth and "tenant_id" not in options:
        options["tenant_id"] = urlsplit(auth["endpoint"]).path.strip("/").partition("/")[0]
    how = _PROVIDERS.get(provider or "", "")
    if "token_file" in auth and not how:
        how = own.WORKLOAD_IDENTITY
    if "token" in auth:
        how = own.BEARER_TOKEN
    if auth.get("cli"):
        how = own.AZURE_CLI
    if how == "client":
        if not (options.get("client_id") and options.get("client_secret") and options.get("tenant_id")):
            raise _incomplete("OAuth", f"client.id, client.secret and client.endpoint below {_OAUTH[:-1]!r}")
    elif how:
        given = {name: options.pop(name) for name in ("client_id", "tenant_id") if name in options}
        rest = {name: auth[name] for name in ("token_file", "token", "authority") if name in auth}
        options[own.TOKEN_CREDENTIAL] = {"kind": how, **given, **rest}


def _incomplete(kind: str, missing: str) -> InvalidOptionError:
    return InvalidOptionError(f"{_TYPE!r} is {kind}, which needs {missing}", parameters={"option": _TYPE})


def _at(options: dict[str, Any], endpoint: str, account: str) -> None:
    """The client takes an address with a path, or without TLS, in a connection string only."""
    if not endpoint.startswith("http://") and not urlsplit(endpoint).path.strip("/"):
        options["account_host"] = urlsplit(endpoint).netloc or endpoint
        return
    parts = [f"BlobEndpoint={endpoint.rstrip('/')}", f"AccountName={account}"]
    key = options.pop("account_key", None)
    signature = options.pop("sas_token", None)
    if not key and not signature:  # the client looks there, but not beside a connection string
        key = os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")
        signature = os.environ.get("AZURE_STORAGE_SAS_TOKEN")
    if key:
        parts.append(f"AccountKey={key}")
    elif signature:
        parts.append(f"SharedAccessSignature={signature.lstrip('?')}")
    else:
        raise InvalidOptionError(
            "azure_endpoint with a path, or with http://, needs the key of the account or a shared access signature",
            parameters={"option": "azure_endpoint"},
        )
    options["connection_string"] = (
        ";".join([f"DefaultEndpointsProtocol={urlsplit(endpoint).scheme}", *parts]) + ";"
    )
    options.pop("account_name", None)
