"""Storage options: those that are this package's own, not the filesystem's, and how secret ones are kept.

Options (keys, tokens, endpoints) are pickled to executors, but kept out of `repr`, plans, log lines and errors.

The secret values of one store: in options, in its address, in the environment; no text of its errors has them.

Clients quote what they were given in parts and in other spellings: the signature of a token that was a part of a
connection string, percent-encoded. So the parts are looked for, too, and whatever looks like a secret by its name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.uri import Address
from delta_ds.redaction import redacted, without

# --- which names are settings of stores, told from other options: Hadoop's, delta-storage's, delta-rs' and the clouds'

_BROKER = "io.delta.storage.s3dynamodblogstore."
_LOG_STORE = re.compile(r"delta\.logstore\.s3[an]?\.impl")
_HADOOP = ("fs.", "google.cloud.auth.", "dfs.", "hadoop.")
_CLOUDS = ("aws_", "azure_", "google_", "delta_dynamo_")
_WHOLE = frozenset({"allow_http", "allow_invalid_certificates"})


def is_hadoop_setting(name: str) -> bool:
    """Whether an option's name is a setting of Hadoop's file systems or delta-storage's log stores."""
    folded = name.lower()
    if folded.startswith(_HADOOP):
        return True
    plain = folded.removeprefix("spark.")
    return plain.startswith(_BROKER) or _LOG_STORE.fullmatch(plain) is not None


def is_cloud_name(name: str) -> bool:
    """Whether an option has a name that delta-rs and the clouds' own tools use, such as `AWS_ACCESS_KEY_ID`."""
    folded = name.lower()
    return folded.startswith(_CLOUDS) or folded in _WHOLE


def name_patterns(*more: str) -> tuple[str, str]:
    """Regular expressions, also Java's, of all these names, and of what a text has that may hold some.

    Parameters
    ----------
    more
        Beginnings of further names.
    """
    beginnings = [re.escape(one) for one in (*_HADOOP, *_CLOUDS, *more)]
    delta = [rf"(?:spark\.)?{re.escape(_BROKER)}", rf"(?:spark\.)?{_LOG_STORE.pattern}"]
    whole = "|".join(map(re.escape, sorted(_WHOLE)))
    begun = "|".join([*beginnings, delta[0]])
    return rf"(?is)(?:{begun}).*|{delta[1]}|{whole}", rf"(?i)(?<![\w.])(?:{begun}|{delta[1]}|{whole})"


# --- storage options: those that are this package's own, not the filesystem's, and how secret ones are kept

LOG_STORE = "logStore"
DDB_TABLE = "ddbTableName"
DDB_REGION = "ddbRegion"
DDB_ENDPOINT = "ddbEndpoint"
DDB_TTL = "ddbTtlSeconds"
DDB_SCHEME = "ddbScheme"
DDB_CREATE_TABLE = "ddbCreateTable"
ALLOW_UNSAFE = "allowUnsafeCommits"
COMMIT_COORDINATOR = "commitCoordinator"
COORDINATOR_URL = "coordinatorUrl"
COORDINATOR_TOKEN = "coordinatorToken"
CATALOG_TABLE = "catalogTable"

# Made of settings, for those who open stores; no options of users.
ALLOW_HTTP = "allowHttp"
CREDENTIAL_SOURCES = "credentialSources"
ASSUMED_ROLE = "assumedRole"
TOKEN_CREDENTIAL = "tokenCredential"
STAGED_TABLE = "stagedTable"
_DERIVED = frozenset({ALLOW_HTTP, CREDENTIAL_SOURCES, ASSUMED_ROLE, TOKEN_CREDENTIAL, STAGED_TABLE})

# Kinds of `TOKEN_CREDENTIAL`.
MANAGED_IDENTITY = "managed identity"
WORKLOAD_IDENTITY = "workload identity"
AZURE_CLI = "az"
BEARER_TOKEN = "token"

DYNAMODB = "dynamodb"
_LOG_STORES = ("conditional", DYNAMODB)

# Every option with what it does.
STORE_OPTIONS = {
    LOG_STORE: "`conditional` (the default): commits by the store's own create-if-absent; `dynamodb`: by DynamoDB",
    DDB_TABLE: "the DynamoDB table that decides which commit wins; naming it chooses `dynamodb`",
    DDB_REGION: "the region of the DynamoDB table",
    DDB_ENDPOINT: "the address of DynamoDB, where it is not AWS's own",
    DDB_TTL: "how many seconds an entry of a finished commit is kept; one day by default",
    DDB_SCHEME: "the scheme of table paths in DynamoDB, as the other writers spell it; `s3a` by default",
    DDB_CREATE_TABLE: "`true`: make the DynamoDB table if there is none",
    ALLOW_UNSAFE: "`true`: write to stores that cannot create exactly once; there must be only one writer",
    COMMIT_COORDINATOR: "which commit coordinator manages the table: `sqlite`, `unity`, or `package.module:Class` of "
    "your own",
    COORDINATOR_URL: "where the coordinator is: of `sqlite` the path of its database, of `unity` its server's address",
    COORDINATOR_TOKEN: "what the coordinator knows its user by; never shown",
    CATALOG_TABLE: "the table's full name there, such as `main.sales.orders`; by its path where it is not given",
}
COORDINATOR_OPTIONS = (COMMIT_COORDINATOR, COORDINATOR_URL, COORDINATOR_TOKEN, CATALOG_TABLE, STAGED_TABLE)
_FOLDED = {name.lower(): name for name in STORE_OPTIONS}


def store_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The options of this package among the storage options, by their proper names, as text."""
    return {_FOLDED[k.lower()]: str(v) for k, v in options.items() if k.lower() in _FOLDED and v is not None}


def filesystem_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The other ones, for the filesystem."""
    return {k: v for k, v in options.items() if k.lower() not in _FOLDED and k not in _DERIVED}


def uses_dynamodb(options: Mapping[str, Any]) -> bool:
    """Whether DynamoDB decides which commit wins.

    Naming a DynamoDB table is enough: to ignore it would let commits past the other writers.

    Raises
    ------
    InvalidOptionError
        `logStore` has another value than the known ones.
    """
    own = store_options(options)
    chosen = own.get(LOG_STORE, "").lower()
    if chosen and chosen not in _LOG_STORES:
        raise InvalidOptionError(
            f"invalid value {own[LOG_STORE]!r} for the storage option {LOG_STORE!r}: "
            f"it is one of {', '.join(_LOG_STORES)}",
            parameters={"option": LOG_STORE, "value": own[LOG_STORE]},
        )
    return chosen == DYNAMODB or (not chosen and DDB_TABLE in own)


def uses_coordinator(options: Mapping[str, Any]) -> bool:
    """Whether storage options name a commit coordinator."""
    return COMMIT_COORDINATOR in store_options(options)


def without_coordinator(options: Mapping[str, Any]) -> dict[str, Any]:
    """Storage options without those of a commit coordinator: of the store alone."""
    theirs = {name.lower() for name in COORDINATOR_OPTIONS}
    return {name: value for name, value in options.items() if name.lower() not in theirs}


def allows_unsafe_commits(options: Mapping[str, Any]) -> bool:
    """Whether the user takes the risk of a store without an atomic create."""
    return flag(options, ALLOW_UNSAFE)


def flag(options: Mapping[str, Any], name: str) -> bool:
    """An option that is true or false; false if it is not given.

    Raises
    ------
    InvalidOptionError
        It is neither.
    """
    text = store_options(options).get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidOptionError(
            f"invalid value {text!r} for the storage option {name!r}: it is true or false",
            parameters={"option": name, "value": text},
        )
    return text == "true"


# --- options that are never shown

_SHOWN = "***"

# Values a message may need in order to be understood; everything else counts as secret.
_HARMLESS = frozenset(
    {
        "account_name", "account_host", "addressing_style", "anon", "client_id", "credentialsources", "kind", "profile",
        "endpoint", "endpoint_url", "host",
        "location", "port", "project", "region", "region_name", "requester_pays", "use_ssl", "username",
        "user", "serversideencryption", "ssecustomeralgorithm", "tenant_id",
        "logstore", "ddbtablename", "ddbregion", "ddbendpoint", "ddbttlseconds", "ddbscheme", "ddbcreatetable",
        "allowunsafecommits", "commitcoordinator", "coordinatorurl", "catalogtable", "stagedtable",
    }
)  # fmt: skip


class SecretOptions(dict[str, Any]):
    """A dictionary whose values are never part of a text: `repr` and `str` name the keys only."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {_SHOWN!r}" for key in self) + "}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return SecretOptions, (dict(self),)

    def copy(self) -> SecretOptions:
        """Another one with the same options."""
        return SecretOptions(self)

    def __or__(self, other: Any) -> Any:
        return SecretOptions({**self, **other}) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return SecretOptions({**other, **self}) if isinstance(other, Mapping) else NotImplemented


def is_harmless(name: str) -> bool:
    """Whether the value of a storage option may be shown."""
    return name.lower() in _HARMLESS


# What the clients of stores read when they are made.
ENVIRONMENT = (
    "AWS_", "AZURE_", "BOTO_", "CLOUDSDK_", "FSSPEC_", "GCLOUD_", "GCS_", "GCSFS_", "GCE_", "GOOGLE_", "HADOOP_",
    "HDFS_", "KRB5", "S3_", "STORAGE_EMULATOR_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
    "https_proxy", "no_proxy", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CLASSPATH", "LIBHDFS_", "HOME",
    "USERPROFILE",
)  # fmt: skip
_SECRET = re.compile(
    r"(?:^|[^a-z])sig(?:nature)?$|signature|key|secret|token|passw|pwd|sas|credential|delegation|connection_?string",
    re.IGNORECASE,
)
# Names with such a word that tell nothing secret: which key of a service encrypts, and whether one does.
_OF_KEYS = re.compile(r"kms|bucket_?key|enabled$|_type$|\.type$", re.IGNORECASE)
_OF_FILES = re.compile(r"_(?:FILE|PATH|DIR|LOCATION|URI)$|^GOOGLE_APPLICATION_CREDENTIALS$")
_LOGIN = re.compile(r"://([^\s/?#]*)@")
_PAIR = re.compile(r"([^\s=&?;]+)=([^\s&;]+)")
_NESTED = re.compile(r"(?:SharedAccessSignature|\w+Endpoint)=([^;]+)", re.IGNORECASE)


def hidden(text: str, address: Address | None, options: Mapping[str, Any], *more: str) -> str:
    """A text without the secrets of a store.

    Parameters
    ----------
    text
        What its client, or the store, has said.
    address
        Of the table; None for none.
    options
        Those that its client was made of.
    more
        Other secrets that may stand in it.
    """
    of_address = () if address is None else _of_login(address.userinfo)
    known = {*_of_options(options), *of_address, *_of_environment(), *more}
    return redacted(without(text, known))


def may_be_secret(name: str, value: Any) -> bool:
    """Whether an option of a store holds a secret, by its name or by what its value looks like."""
    if isinstance(value, Mapping):
        return any(may_be_secret(str(inner), one) for inner, one in value.items())
    by_name = not is_harmless(name) and _SECRET.search(name) is not None and _OF_KEYS.search(name) is None
    return by_name or isinstance(value, bytes) or (isinstance(value, str) and any(_parts(value)))


def _of_options(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _of_options({str(inner): one for inner, one in value.items()})
        elif isinstance(value, (bytes, bytearray)):
            yield from _of_bytes(bytes(value))
        elif isinstance(value, str):
            if not is_harmless(name):
                yield value
            yield from _parts(value)


def _of_bytes(value: bytes) -> Iterator[str]:
    import base64

    yield base64.b64encode(value).decode()
    yield repr(value)[2:-1]


def _of_login(login: str) -> Iterator[str]:
    user, _, password = login.partition(":")
    yield from filter(None, (login, unquote(login), password))
    if not password:
        yield user


def _of_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        if name.startswith(ENVIRONMENT):
            if _SECRET.search(name) and not _OF_FILES.search(name):
                yield value
            yield from _parts(value)


def _parts(text: str) -> Iterator[str]:
    """What is secret in an address, a connection string, a signature with its parameters, or JSON."""
    for login in _LOGIN.findall(text):
        yield from _of_login(login)
    for name, value in _PAIR.findall(text):
        if _SECRET.search(name):
            yield value
    for inner in _NESTED.findall(text):
        yield inner
        yield from _parts(inner)
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            return
        if isinstance(found, dict):
            yield from _of_options(found)
