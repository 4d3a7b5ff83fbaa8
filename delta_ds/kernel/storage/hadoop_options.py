"""Hadoop's `fs.*` and delta-storage's settings, translated to storage options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage import store_options

# Setting, in lower case and with `fs.s3a.` for `fs.s3.` and `fs.s3n.` -> where its text goes for fsspec.
_TEXT_SETTINGS: dict[str, tuple[str, ...]] = {
    "fs.s3a.access.key": ("key",),
    "fs.s3a.secret.key": ("secret",),
    "fs.s3a.session.token": ("token",),
    "fs.s3a.endpoint.region": ("client_kwargs", "region_name"),
    "fs.gs.project.id": ("project",),
    "fs.gs.auth.service.account.json.keyfile": ("token",),
    "google.cloud.auth.service.account.json.keyfile": ("token",),
}
# delta-storage's `S3DynamoDBLogStore`; Spark's configuration has them with `spark.` before.
_BROKER = "io.delta.storage.s3dynamodblogstore."
_BROKER_SETTINGS = {
    "ddb.tablename": store_options.DDB_TABLE,
    "ddb.region": store_options.DDB_REGION,
    "ddb.ttl": store_options.DDB_TTL,
}
_LOG_STORE = re.compile(r"delta\.logstore\.s3[an]?\.impl")
_BROKER_CLASS = "io.delta.storage.S3DynamoDBLogStore"
_ENDPOINT = "fs.s3a.endpoint"
_SSL = "fs.s3a.connection.ssl.enabled"
_PATH_STYLE = "fs.s3a.path.style.access"
_AZURE_KEY = re.compile(r"fs\.azure\.account\.key\.(([a-z0-9]+)\.(?:dfs|blob)\.[a-z0-9.]+)")


def is_hadoop_setting(name: str) -> bool:
    """Whether an option's name is a setting of Hadoop's file systems or delta-storage's log stores."""
    folded = name.lower()
    if folded.startswith(("fs.", "google.cloud.auth.")):
        return True
    plain = folded.removeprefix("spark.")
    return plain.startswith(_BROKER) or _LOG_STORE.fullmatch(plain) is not None


def settings_of_store(properties: Mapping[str, str], scheme: str, bucket: str) -> dict[str, str]:
    """Those of all of Hadoop's properties that say how one store is opened, as far as they are known here.

    Parameters
    ----------
    properties
        What somebody has set, without Hadoop's own defaults; whatever has no counterpart here is left out.
    scheme, bucket
        Of an `Address`. What is set for a single bucket of S3 wins over what is set for all.
    """
    found: dict[str, str] = {}
    own: dict[str, str] = {}
    of_bucket = f"fs.s3a.bucket.{bucket}."
    for name, value in properties.items():
        canonical = _canonical(name)
        if not value.strip():
            continue
        if canonical.startswith(of_bucket):
            own[f"fs.s3a.{canonical.removeprefix(of_bucket)}"] = value
        else:
            found[canonical] = value
    known = {name: value for name, value in {**found, **own}.items() if _is_of(name, value, scheme)}
    if any(map(_LOG_STORE.fullmatch, known)):
        return known
    # An application may name the table for other stores: it is the log store that decides.
    return {name: value for name, value in known.items() if not name.startswith(_BROKER)}


def _is_of(name: str, value: str, scheme: str) -> bool:
    if scheme == "s3":
        broker = name.removeprefix(_BROKER) in _BROKER_SETTINGS
        store = _LOG_STORE.fullmatch(name) is not None and value == _BROKER_CLASS
        known = name in _TEXT_SETTINGS and name.startswith("fs.s3a.")
        return broker or store or known or name in (_ENDPOINT, _SSL, _PATH_STYLE)
    if scheme == "gs":
        return name in _TEXT_SETTINGS and not name.startswith("fs.s3a.")
    return scheme == "abfs" and _AZURE_KEY.fullmatch(name) is not None


def to_storage_options(settings: Mapping[str, str]) -> dict[str, Any]:
    """The fsspec options that mean the same as these Hadoop settings.

    Raises
    ------
    InvalidOptionError
        A setting that has no counterpart, or two spellings of one that differ; named without its value.
    """
    known = _by_canonical_name(settings)
    options: dict[str, Any] = {}
    for name, value in known.items():
        azure = _AZURE_KEY.fullmatch(name)
        if name in _TEXT_SETTINGS:
            _put(options, _TEXT_SETTINGS[name], value)
        elif azure:
            options.update(account_name=azure[2], account_key=value)
        elif name.removeprefix(_BROKER) in _BROKER_SETTINGS:
            options[_BROKER_SETTINGS[name.removeprefix(_BROKER)]] = value
        elif _LOG_STORE.fullmatch(name) and value == _BROKER_CLASS:
            options[store_options.LOG_STORE] = store_options.DYNAMODB
        elif name == _SSL:
            options["use_ssl"] = _is_true(value)
        elif name == _PATH_STYLE:
            _put(options, ("config_kwargs", "s3", "addressing_style"), "path" if _is_true(value) else "auto")
        elif name == _ENDPOINT:
            scheme = "https" if _is_true(known.get(_SSL, "true")) else "http"
            options["endpoint_url"] = value if "://" in value else f"{scheme}://{value}"
        else:
            raise InvalidOptionError(
                f"the Hadoop setting {name!r} has no counterpart here; give what the fsspec filesystem takes "
                "as 'storage.<name>' instead, for instance storage.key and storage.secret for S3",
                parameters={"option": name},
            )
    return options


def _by_canonical_name(settings: Mapping[str, str]) -> dict[str, str]:
    known: dict[str, str] = {}
    for name, value in settings.items():
        if known.setdefault(_canonical(name), value) != value:
            raise InvalidOptionError(
                f"the setting {name!r} is given twice, in different spellings and with different values",
                parameters={"option": name},
            )
    return known


def _canonical(name: str) -> str:
    folded = name.lower()
    plain = folded.removeprefix("spark.")
    if plain.startswith(_BROKER) or _LOG_STORE.fullmatch(plain):
        return plain
    return re.sub(r"^fs\.s3n?\.", "fs.s3a.", folded)


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"


def _put(options: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        options = options.setdefault(key, {})
    options[path[-1]] = value
