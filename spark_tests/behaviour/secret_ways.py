"""One marked secret: every way in which it can be given, and how to find it in a text again."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from delta_ds.records import dataclass, field

# With what is encoded in addresses, and letters in the middle that no encoding changes.
MARK = "aB/MarkedSecretValue+x=Q9"
_CORE = "MarkedSecretValue"
_KEY = base64.b64encode(f"{_CORE}-of-32-bytes!!"[:32].encode()).decode()
SAS = f"sv=2020-08-04&ss=b&srt=sco&sp=rl&se=2030-01-01T00:00:00Z&sig={quote(MARK, safe='')}"
PEM = f"-----BEGIN PRIVATE KEY-----\nMIIEvQ{_CORE}IBADANBg\nkqhkiG9w0{_CORE}BAQEFAAS\n-----END PRIVATE KEY-----\n"
ACCOUNT = {"type": "service_account", "client_email": "a@b.iam", "private_key": PEM, "private_key_id": "1"}

S3 = "s3://bucket/t"
AZURE = "abfss://box@account.dfs.core.windows.net/t"
GOOGLE = "gs://bucket/t"
WEBHDFS = "webhdfs://host:9870/t"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in.

    Attributes
    ----------
    name
        Of the test.
    address
        Of the table.
    options
        Storage options.
    environment
        Variables.
    refused
        Whether the address is refused, so that nothing is ever opened.
    """

    name: str
    address: str
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    refused: bool = False


def _connection(part: str) -> str:
    return f"DefaultEndpointsProtocol=https;AccountName=account;{part};EndpointSuffix=core.windows.net"


_QUOTED = quote(MARK, safe="")
_KEYS = {"key": "AKIA1", "secret": "other"}
WAYS = (
    Way("login in an S3 address", f"s3://AKIA1:{_QUOTED}@bucket/t"),
    Way("login with time travel behind", f"s3a://AKIA1:{_QUOTED}@bucket/t@v5"),
    Way("login with a slash", f"s3://AKIA1:{MARK}@bucket/t", refused=True),
    Way("login behind one slash", f"s3:/AKIA1:{_CORE}@bucket/t", refused=True),
    Way("login behind a blank", f" s3://AKIA1:{_QUOTED}@bucket/t", refused=True),
    Way("login of a container", f"abfss://box:{_QUOTED}@account.dfs.core.windows.net/t"),
    Way("login of another store", f"webhdfs://user:{_QUOTED}@host:9870/t"),
    Way("token before the host", f"webhdfs://{_QUOTED}@host:9870/t"),
    *(
        Way(f"signature in {address.partition(':')[0]}", f"{address}?{SAS}", refused=True)
        for address in (AZURE, "wasbs://c@account.blob.core.windows.net/t", "az://c/t", S3, GOOGLE)
    ),
    Way("signature in https", f"https://account.blob.core.windows.net/c/t?{SAS}"),
    Way("presigned address", f"s3://bucket/t?X-Amz-Credential=A%2F1&X-Amz-Signature={_CORE}", refused=True),
    Way("delegation in the address", f"{WEBHDFS}?delegation={_CORE}", refused=True),
    Way("secret key", S3, {"key": "AKIA1", "secret": MARK}),
    Way("secret key of Hadoop", S3, {"fs.s3a.access.key": "AKIA1", "fs.s3a.secret.key": MARK}),
    Way("secret key of a bucket", S3, {"fs.s3a.access.key": "A", "fs.s3a.bucket.bucket.secret.key": MARK}),
    Way("access key", S3, {"AWS_ACCESS_KEY_ID": MARK, "AWS_SECRET_ACCESS_KEY": "other"}),
    Way("session token", S3, {**_KEYS, "AWS_SESSION_TOKEN": MARK}),
    Way("keys of the client", S3, {"client_kwargs": {"aws_access_key_id": "A", "aws_secret_access_key": MARK}}),
    Way("login of an endpoint", S3, {**_KEYS, "AWS_ENDPOINT_URL": f"https://user:{_QUOTED}@host:9000"}),
    Way("signature of an endpoint", S3, {**_KEYS, "endpoint_url": f"https://host:9000/?token={_QUOTED}"}),
    Way("password of a proxy", S3, {**_KEYS, "fs.s3a.proxy.host": "p", "fs.s3a.proxy.username": "u",
        "fs.s3a.proxy.password": MARK}),
    Way("address of a proxy", S3, {**_KEYS, "aws_proxy_url": f"http://u:{_QUOTED}@proxy:3128"}),
    Way("customer's key", S3, {**_KEYS, "fs.s3a.encryption.algorithm": "SSE-C", "fs.s3a.encryption.key": _KEY}),
    Way("external id", S3, {**_KEYS, "fs.s3a.assumed.role.arn": "arn:x", "fs.s3a.assumed.role.external.id": MARK}),
    Way("endpoint of DynamoDB", S3, {**_KEYS, "logStore": "dynamodb", "ddbEndpoint": f"https://u:{_QUOTED}@h:1"}),
    Way("keys with DynamoDB", S3, {"key": "AKIA1", "secret": MARK, "ddbTableName": "commits"}),
    Way("key of an account", AZURE, {"azure_storage_account_key": MARK}),
    Way("key of an account of Hadoop", AZURE, {"fs.azure.account.key.account.dfs.core.windows.net": MARK}),
    Way("shared access signature", AZURE, {"azure_storage_sas_token": SAS}),
    Way("shared access signature of Hadoop", AZURE, {"fs.azure.sas.fixed.token.account.dfs.core.windows.net": SAS}),
    Way("client secret", AZURE, {"azure_client_id": "c", "azure_client_secret": MARK, "azure_tenant_id": "t"}),
    Way("token of OAuth", AZURE, {"azure_storage_token": MARK}),
    Way("connection string", AZURE, {"azure_storage_connection_string": _connection(f"AccountKey={MARK}")}),
    Way("signature in a connection string", AZURE, {
        "azure_storage_connection_string": _connection(f"SharedAccessSignature={SAS}")}),
    Way("key for an endpoint", AZURE, {"azure_endpoint": "http://host:1/account", "azure_storage_account_key": MARK}),
    Way("key file's text", GOOGLE, {"google_service_account_key": json.dumps(ACCOUNT)}),
    Way("private key", GOOGLE, {
        "fs.gs.auth.service.account.email": "a@b", "fs.gs.auth.service.account.private.key": PEM}),
    Way("bearer token", GOOGLE, {"google_bearer_token": MARK}),
    Way("delegation token", WEBHDFS, {"token": MARK}),
    Way("password", WEBHDFS, {"user": "u", "password": MARK}),
    Way("option of another filesystem", "guarded://host/t", {"api_key": MARK}),
    Way("secret key of the environment", S3, {}, {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": MARK}),
    Way("session token of the environment", S3, _KEYS, {"AWS_SESSION_TOKEN": MARK}),
    Way("connection string of the environment", AZURE, {}, {
        "AZURE_STORAGE_CONNECTION_STRING": _connection(f"AccountKey={MARK}")}),
    Way("signature of the environment", AZURE, {}, {"AZURE_STORAGE_SAS_TOKEN": SAS}),
    Way("account's key of the environment", AZURE, {}, {"AZURE_STORAGE_ACCESS_KEY": MARK}),
    Way("key file's text of the environment", GOOGLE, {}, {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(ACCOUNT)}),
    Way("proxy of the environment", S3, _KEYS, {"HTTPS_PROXY": f"http://u:{_QUOTED}@proxy:3128"}),
    Way("settings of fsspec", "guarded://host/t", {}, {"FSSPEC_GUARDED_PASSWORD": MARK}),
)  # fmt: skip


def assert_unseen(texts: Iterable[str]) -> None:
    """Fail where a text shows the secret, with what stands around it."""
    found = [text for text in texts if is_seen(text)]
    if found:
        at = max(found[0].find(_CORE), 0)
        raise AssertionError(
            f"{len(found)} texts show the secret: ...{found[0][max(at - 200, 0) : at + 60]}..."
        )


def is_seen(text: str) -> bool:
    """Whether a text shows the secret: clear, encoded for addresses, escaped, or in base64."""
    plain = unquote(unquote(text)).replace("\\", "")
    return _CORE in plain or any(part in plain for part in _base64_of(_CORE))


def _base64_of(text: str) -> Iterator[str]:
    """Its letters in base64, wherever it begins within three bytes."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + text.encode()).decode()
        yield encoded[4 if before else 0 : -4]


def spellings(value: Any) -> Iterator[str]:
    """What clients make of a value in their errors."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from spellings(inner)
        yield repr(value)
        return
    if isinstance(value, bytes):
        yield base64.b64encode(value).decode()
        return
    if not isinstance(value, str):
        return
    yield value
    yield quote(value, safe="")
    yield quote(value)
    yield quote(value, safe="").replace("%2F", "%2f").replace("%3D", "%3d").replace("%2B", "%2b")
    yield repr(value)
    yield json.dumps(value).replace("/", "\\/")
    yield base64.b64encode(value.encode()).decode()
    if "sig=" in value:
        yield value.rpartition("sig=")[2].partition(";")[0]
        yield unquote(value.rpartition("sig=")[2].partition(";")[0])
        yield value.replace("2030-01-01T00:00:00Z", quote("2030-01-01T00:00:00Z", safe=""))
    if "AccountKey=" in value:
        yield value.partition("AccountKey=")[2].partition(";")[0]
    if "://" in value:
        login = value.partition("://")[2].rpartition("@")[0]
        yield unquote(login)
        yield unquote(login.partition(":")[2])
        yield base64.b64encode(unquote(login).encode()).decode()
