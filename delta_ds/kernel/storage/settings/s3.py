"""Settings of S3 and of stores that speak its language."""

from __future__ import annotations

import os
from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage import store_options as own
from delta_ds.kernel.storage.settings.record import (
    Refused,
    Setting,
    find,
    flag,
    milliseconds,
    number,
    only,
    put,
    seconds,
)
from delta_ds.kernel.storage.uri import Address

_BROKER = "io.delta.storage.s3dynamodblogstore."
_BROKER_CLASS = "io.delta.storage.S3DynamoDBLogStore"
_NO_CREDENTIALS = "give fs.s3a.access.key and fs.s3a.secret.key, or AWS_PROFILE"


def _log_store(text: str) -> str:
    if text.strip() != _BROKER_CLASS:
        raise ValueError(
            f"only {_BROKER_CLASS} has a counterpart here; without it commits are conditional puts"
        )
    return own.DYNAMODB


def _path_style(text: str) -> str:
    return "path" if flag(text) else "auto"


def _virtual_hosted(text: str) -> str:
    return "virtual" if flag(text) else "path"


def _conditional_put(text: str) -> str:
    if text.strip().lower() not in ("etag", "true"):
        raise ValueError(
            "commits are conditional puts: it is etag; for DynamoDB set AWS_S3_LOCKING_PROVIDER=dynamodb"
        )
    return "conditional"


def _classes(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


SETTINGS = (
    Setting(
        ("key",), "access key", ("fs.s3a.access.key",), ("aws_access_key_id",), ("access_key_id",),
        credential=True, secret=True
    ),
    Setting(
        ("secret",), "secret key", ("fs.s3a.secret.key",), ("aws_secret_access_key",), ("secret_access_key",),
        credential=True, secret=True,
    ),
    Setting(
        ("token",), "session token of temporary credentials", ("fs.s3a.session.token",),
        ("aws_session_token", "aws_token"), ("session_token",), credential=True, secret=True,
    ),
    Setting(
        ("anon",), "ask without credentials", (), ("aws_skip_signature",), ("skip_signature",), flag,
        credential=True
    ),
    Setting(
        ("profile",), "profile of `~/.aws/config` and `~/.aws/credentials`", ("fs.s3a.auth.profile.name",),
        ("aws_profile",), credential=True,
    ),
    Setting(
        ("_providers",), "where credentials are looked for, in this order",
        ("fs.s3a.aws.credentials.provider",),
        parse=_classes, credential=True,
    ),
    Setting(
        ("_role", "role_arn"), "role to take on", ("fs.s3a.assumed.role.arn",),
        ("aws_role_arn", "aws_iam_role_arn", "aws_s3_assume_role_arn"), ("role_arn",), credential=True,
    ),
    Setting(
        ("_role", "role_session_name"), "name of the role's session", ("fs.s3a.assumed.role.session.name",),
        ("aws_role_session_name", "aws_iam_role_session_name", "aws_s3_role_session_name"),
        ("role_session_name",),
        credential=True,
    ),
    Setting(
        ("_role", "web_identity_token_file"), "token of a web identity, with which the role is taken on", (),
        ("aws_web_identity_token_file",), ("web_identity_token_file",), credential=True,
    ),
    Setting(
        ("_role", "duration_seconds"), "how long the role's credentials hold",
        ("fs.s3a.assumed.role.session.duration",),
        parse=lambda text: int(milliseconds(text)), credential=True,
    ),
    Setting(
        ("_role", "external_id"), "external id that the role asks for", ("fs.s3a.assumed.role.external.id",),
        credential=True,
    ),
    Setting(
        ("_role", "endpoint_url"), "address of STS", ("fs.s3a.assumed.role.sts.endpoint",),
        ("aws_endpoint_url_sts",),
        ("endpoint_url_sts",), credential=True,
    ),
    Setting(
        ("_role", "region_name"), "region of STS", ("fs.s3a.assumed.role.sts.endpoint.region",),
        credential=True
    ),
    Setting(
        ("_role", "source"), "where the credentials come from that take on the role",
        ("fs.s3a.assumed.role.credentials.provider",), parse=_classes, credential=True,
    ),
    Setting(("endpoint_url",), "address of the store", ("fs.s3a.endpoint",)),
    Setting(
        ("_endpoint",), "the same; its buckets are then asked for by path",
        names=("aws_endpoint_url", "aws_endpoint", "aws_endpoint_url_s3"), bare=("endpoint",),
    ),
    Setting(
        ("client_kwargs", "region_name"), "region", ("fs.s3a.endpoint.region",), ("aws_region",), ("region",),
        environment=("AWS_REGION",),
    ),
    Setting(
        ("_region",), "region, where no other is given", names=("aws_default_region",),
        bare=("default_region",)
    ),
    Setting(("use_ssl",), "`false`: http", ("fs.s3a.connection.ssl.enabled",), parse=flag),
    Setting(
        (own.ALLOW_HTTP,), "`false`: refuse an address with http://", (), ("aws_allow_http", "allow_http"),
        parse=flag, environment=("AWS_ALLOW_HTTP",),
    ),
    Setting(
        ("client_kwargs", "verify"), "`true`: take any certificate", (),
        ("aws_allow_invalid_certificates", "allow_invalid_certificates"), parse=lambda text: not flag(text),
    ),
    Setting(
        ("config_kwargs", "s3", "addressing_style"), "`true`: the bucket stands in the path",
        ("fs.s3a.path.style.access",),
        parse=_path_style,
    ),
    Setting(
        ("config_kwargs", "s3", "addressing_style"), "`true`: the bucket stands in the host's name", (),
        ("aws_virtual_hosted_style_request",), ("virtual_hosted_style_request",), _virtual_hosted,
        environment=("AWS_VIRTUAL_HOSTED_STYLE_REQUEST",),
    ),
    Setting(
        ("config_kwargs", "s3", "addressing_style"), "`path`, `virtual` or `auto`", (),
        ("aws_s3_addressing_style",),
        parse=only("path", "virtual", "auto"),
    ),
    Setting(
        ("requester_pays",), "the caller pays for requests", ("fs.s3a.requester.pays.enabled",),
        ("aws_request_payer",), ("request_payer",), flag,
    ),
    Setting(
        ("_encryption", "algorithm"), "encryption by the store: AES256, SSE-KMS, DSSE-KMS, SSE-C",
        ("fs.s3a.encryption.algorithm", "fs.s3a.server-side-encryption-algorithm"),
        ("aws_server_side_encryption",),
        ("server_side_encryption",),
    ),
    Setting(
        ("_encryption", "key"), "key of SSE-KMS (its id), or of SSE-C (base64)",
        ("fs.s3a.encryption.key", "fs.s3a.server-side-encryption.key"),
        ("aws_sse_kms_key_id", "aws_sse_customer_key_base64"), ("sse_kms_key_id", "sse_customer_key_base64"),
    ),
    Setting(
        ("s3_additional_kwargs", "BucketKeyEnabled"), "SSE-KMS by a key of the bucket", (),
        ("aws_sse_bucket_key_enabled",), ("sse_bucket_key_enabled",), flag,
    ),
    Setting(("_proxy", "url"), "proxy", (), ("aws_proxy_url", "proxy_url")),
    Setting(("_proxy", "host"), "host of the proxy", ("fs.s3a.proxy.host",)),
    Setting(("_proxy", "port"), "port of the proxy", ("fs.s3a.proxy.port",), parse=number),
    Setting(("_proxy", "user"), "user at the proxy", ("fs.s3a.proxy.username",)),
    Setting(("_proxy", "password"), "password at the proxy", ("fs.s3a.proxy.password",)),
    Setting(("_proxy", "ssl"), "the proxy speaks https", ("fs.s3a.proxy.ssl.enabled",), parse=flag),
    Setting(
        ("config_kwargs", "connect_timeout"), "longest wait for a connection",
        ("fs.s3a.connection.establish.timeout",),
        parse=milliseconds,
    ),
    Setting(
        ("config_kwargs", "connect_timeout"), "longest wait for a connection", (),
        ("aws_connect_timeout", "connect_timeout"),
        parse=seconds,
    ),
    Setting(
        ("config_kwargs", "read_timeout"), "longest wait for an answer", ("fs.s3a.connection.timeout",),
        parse=milliseconds,
    ),
    Setting(
        ("config_kwargs", "read_timeout"), "longest wait for an answer", (),
        ("aws_timeout", "aws_read_timeout", "timeout"),
        ("read_timeout",), seconds,
    ),
    Setting(
        ("config_kwargs", "retries", "max_attempts"), "how often the client tries again",
        ("fs.s3a.attempts.maximum",),
        ("max_retries",), parse=number,
    ),
    Setting((own.LOG_STORE,), "who decides which commit wins", ("delta.logstore.s3a.impl",), parse=_log_store),
    Setting(
        ("_locking",), "`dynamodb`: DynamoDB decides which commit wins", (), ("aws_s3_locking_provider",),
        parse=only("dynamodb"), environment=("AWS_S3_LOCKING_PROVIDER",),
        settled_by=(own.LOG_STORE, own.DDB_TABLE),
    ),
    Setting(
        (own.DDB_TABLE,), "DynamoDB table of commits", (f"{_BROKER}ddb.tablename",),
        ("delta_dynamo_table_name",)
    ),
    Setting(
        (own.DDB_REGION,), "region of the DynamoDB table", (f"{_BROKER}ddb.region",), ("aws_region_dynamodb",)
    ),
    Setting((own.DDB_TTL,), "how long entries are kept", (f"{_BROKER}ddb.ttl",)),
    Setting(
        (own.DDB_ENDPOINT,), "address of DynamoDB", (), ("aws_endpoint_url_dynamodb",),
        environment=("AWS_ENDPOINT_URL_DYNAMODB",),
    ),
    Setting(
        (own.LOG_STORE,), "`etag`: commits are conditional puts, which they are anyway", (),
        ("aws_conditional_put",),
        ("conditional_put",), _conditional_put,
    ),
    Setting(
        (own.ALLOW_UNSAFE,), "writes also where commits cannot be decided", (),
        ("aws_s3_allow_unsafe_rename",),
        parse=lambda text: str(flag(text)).lower(),
    ),
)  # fmt: skip

REFUSED = (
    Refused(r"fs\.s3a\.delegation\.token\.binding", "delegation tokens are Hadoop's own; " + _NO_CREDENTIALS),
    Refused(r"fs\.s3a\.assumed\.role\.policy", "a role is taken on as it is; leave it out"),
    Refused(r"fs\.s3a\.access\.grants\.enabled", "S3 Access Grants are not asked for; " + _NO_CREDENTIALS),
    Refused(r"fs\.s3a\.accesspoint\.arn", "name the access point in place of the bucket"),
    Refused(r"fs\.s3a\.encryption\.context", "SSE-KMS is used without a context; leave it out"),
    Refused(r"fs\.s3a\.proxy\.(domain|workstation)", "the client knows no NTLM; leave it out"),
    Refused(
        r"io\.delta\.storage\.s3dynamodblogstore\.(credentials\.provider|provisionedthroughput\..*)",
        "DynamoDB is asked with the credentials of the store",
        in_session=False,
    ),
    Refused(
        r"fs\.s3a\.security\.credential\.provider\.path|hadoop\.security\.credential\.provider\.path",
        "a key store of Hadoop is opened where the session names it, not as an option",
        in_session=False,
    ),
    Refused(
        r"(aws_)?copy_if_not_exists",
        "commits are conditional puts and need no copy; leave it out",
        in_session=False,
    ),
    Refused(
        r"aws_(access_key_id|secret_access_key|session_token)_dynamodb",
        "DynamoDB is asked with the credentials of the store",
        in_session=False,
    ),
)

SAME = (
    frozenset({("endpoint_url",), ("_endpoint",)}),
    frozenset({("client_kwargs", "region_name"), ("_region",)}),
)
# What botocore's clients take in `client_kwargs`, and not a second time from s3fs.
NESTED = {
    "endpoint_url": ("endpoint_url",),
    "aws_access_key_id": ("key",),
    "aws_secret_access_key": ("secret",),
    "aws_session_token": ("token",),
}
WHO_ASKS = frozenset(["username", "password", "session"])
# Settings of one provider of credentials, which are nothing to the others.
_OF_PROVIDERS = {"fs.s3a.assumed.role.": "AssumedRole", "fs.s3a.auth.profile.": "Profile"}
# The log store that delta-spark has by itself: to name it chooses nothing.
_SINGLE_DRIVER = (
    "io.delta.storage.S3SingleDriverLogStore",
    "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore",
)


def of_session(found: dict[str, str]) -> dict[str, str]:
    """Settings of a session without those that Spark has there and does not look at."""
    providers = found.get("fs.s3a.aws.credentials.provider", "")
    return {
        name: value
        for name, value in found.items()
        if all(provider in providers for prefix, provider in _OF_PROVIDERS.items() if name.startswith(prefix))
        and not (name == "delta.logstore.s3a.impl" and value.strip() in _SINGLE_DRIVER)
    }


# Classes of Hadoop and the SDKs -> how botocore calls the same source; `keys`: those that are given.
_PROVIDERS = {
    "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider": "anonymous",
    "com.amazonaws.auth.AnonymousAWSCredentials": "anonymous",
    "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider": "anonymous",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider": "keys",
    "org.apache.hadoop.fs.s3a.BasicAWSCredentialsProvider": "keys",
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider": "keys",
    "com.amazonaws.auth.EnvironmentVariableCredentialsProvider": "env",
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider": "env",
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider": "instance",
    "org.apache.hadoop.fs.s3a.SharedInstanceProfileCredentialsProvider": "instance",
    "com.amazonaws.auth.InstanceProfileCredentialsProvider": "instance",
    "software.amazon.awssdk.auth.credentials.InstanceProfileCredentialsProvider": "instance",
    "com.amazonaws.auth.EC2ContainerCredentialsProviderWrapper": "instance",
    "com.amazonaws.auth.ContainerCredentialsProvider": "container",
    "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider": "container",
    "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider": "profile",
    "com.amazonaws.auth.profile.ProfileCredentialsProvider": "profile",
    "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider": "profile",
    "com.amazonaws.auth.WebIdentityTokenCredentialsProvider": "web identity",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider": "web identity",
    "com.amazonaws.auth.DefaultAWSCredentialsProviderChain": "default",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider": "default",
    "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider": "role",
}
_PROVIDER_SETTING = "fs.s3a.aws.credentials.provider"

_ENCRYPTION = {
    **dict.fromkeys(("aes256", "sse-s3"), "AES256"),
    **dict.fromkeys(("sse-kms", "aws:kms"), "aws:kms"),
    **dict.fromkeys(("dsse-kms", "aws:kms:dsse"), "aws:kms:dsse"),
}
_CUSTOMER_KEY = ("sse-c",)


def complete(options: dict[str, Any], address: Address) -> None:
    """Make options of the notes that settings left.

    Raises
    ------
    InvalidOptionError
        Settings that contradict each other or have no counterpart.
    """
    endpoint = options.pop("_endpoint", None)
    if endpoint is not None:
        _agree(options, ("endpoint_url",), endpoint, "fs.s3a.endpoint", "AWS_ENDPOINT_URL")
        if find(options, ("config_kwargs", "s3", "addressing_style")) is None:
            put(options, ("config_kwargs", "s3", "addressing_style"), "path")
    if "://" not in options.get("endpoint_url", "://"):
        scheme = "https" if options.get("use_ssl", True) else "http"
        options["endpoint_url"] = f"{scheme}://{options['endpoint_url']}"
    region = options.pop("_region", None)
    if region is not None and find(options, ("client_kwargs", "region_name")) is None:
        put(options, ("client_kwargs", "region_name"), region)
    if options.pop("_locking", None):
        _agree(options, (own.LOG_STORE,), own.DYNAMODB, own.LOG_STORE, "AWS_S3_LOCKING_PROVIDER")
        options.setdefault(own.DDB_SCHEME, "s3")  # as delta-rs names tables in it
        if table := os.environ.get("DELTA_DYNAMO_TABLE_NAME"):
            options.setdefault(own.DDB_TABLE, table)
    for note, make in (("_encryption", _encryption), ("_proxy", _proxy)):
        if note in options:
            make(options, options.pop(note))
    _who_asks(options)


def _agree(options: dict[str, Any], path: tuple[str, ...], value: Any, name: str, other: str) -> None:
    found = find(options, path)
    if found is not None and found != value:
        raise InvalidOptionError(
            f"{name!r} and {other!r} mean the same and have different values; give one of them",
            parameters={"option": name},
        )
    put(options, path, value)


def _encryption(options: dict[str, Any], given: dict[str, str]) -> None:
    algorithm, key = given.get("algorithm", "").strip(), given.get("key", "").strip()
    setting = "fs.s3a.encryption.algorithm"
    if not algorithm:
        if key:
            raise InvalidOptionError(
                f"a key of encryption is given, but no {setting!r}", parameters={"option": setting}
            )
        return
    extra = options.setdefault("s3_additional_kwargs", {})
    if algorithm.lower() in _CUSTOMER_KEY:
        import base64

        extra["SSECustomerAlgorithm"] = "AES256"
        try:
            extra["SSECustomerKey"] = base64.b64decode(key, validate=True)
        except ValueError:
            raise InvalidOptionError(
                "the key of SSE-C is not base64", parameters={"option": "fs.s3a.encryption.key"}
            ) from None
        return
    if algorithm.lower() not in _ENCRYPTION:
        raise InvalidOptionError(
            f"invalid value {algorithm!r} for {setting!r}: the store encrypts by AES256, SSE-KMS, DSSE-KMS or SSE-C; "
            "encryption by the client (CSE) cannot be read here",
            parameters={"option": setting},
        )
    extra["ServerSideEncryption"] = _ENCRYPTION[algorithm.lower()]
    if key:
        extra["SSEKMSKeyId"] = key


def _proxy(options: dict[str, Any], given: dict[str, Any]) -> None:
    from urllib.parse import quote

    url = given.get("url")
    if url is None and "host" in given:
        ssl = given.get("ssl", False)
        login = (
            f"{quote(given['user'], '')}:{quote(given.get('password', ''), '')}@" if "user" in given else ""
        )
        url = f"{'https' if ssl else 'http'}://{login}{given['host']}:{given.get('port', 443 if ssl else 80)}"
    if url is not None:
        put(options, ("config_kwargs", "proxies"), {"http": url, "https": url})


def _who_asks(options: dict[str, Any]) -> None:
    providers, role = options.pop("_providers", ()), options.pop("_role", {})
    sources = _sources(providers)
    if "anonymous" in sources and not ("key" in options and "keys" in sources):
        options["anon"] = True
        sources = ()
    wants_role = "role" in sources or "role_arn" in role
    if set(sources) == {"keys"} and not options.get("key"):
        raise InvalidOptionError(
            f"{_PROVIDER_SETTING!r} takes the keys that are given, and none are; " + _NO_CREDENTIALS,
            parameters={"option": _PROVIDER_SETTING},
        )
    if "keys" not in sources and sources and not wants_role:
        for name in ("key", "secret", "token"):  # other providers do not look at them
            options.pop(name, None)
    if wants_role:
        if "role_arn" not in role:
            raise InvalidOptionError(
                "the role to take on is not named; give fs.s3a.assumed.role.arn",
                parameters={"option": "fs.s3a.assumed.role.arn"},
            )
        options[own.ASSUMED_ROLE] = role
        sources = _sources(role.pop("source", ()))
    named = tuple(source for source in sources if source not in ("keys", "default", "role"))
    if "profile" in sources:
        options.setdefault("profile", "default")
    if named and "default" not in sources and not options.get("key"):
        options[own.CREDENTIAL_SOURCES] = named


def _sources(classes: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in classes if name not in _PROVIDERS]
    if unknown:
        raise InvalidOptionError(
            f"the credentials provider {unknown[0]!r} of {_PROVIDER_SETTING!r} has no counterpart here; "
            + _NO_CREDENTIALS,
            parameters={"option": _PROVIDER_SETTING},
        )
    return tuple(_PROVIDERS[name] for name in classes)
