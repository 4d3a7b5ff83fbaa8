"""Hadoop's `fs.*` settings, as users of delta-spark pass them, in the words of the fsspec filesystems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from delta_ds.exceptions import InvalidOptionError

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
_ENDPOINT = "fs.s3a.endpoint"
_SSL = "fs.s3a.connection.ssl.enabled"
_PATH_STYLE = "fs.s3a.path.style.access"
_AZURE_KEY = re.compile(r"fs\.azure\.account\.key\.(([a-z0-9]+)\.(?:dfs|blob)\.[a-z0-9.]+)")


def is_hadoop_setting(name: str) -> bool:
    """Whether an option's name is one of Hadoop's file system settings."""
    return name.lower().startswith(("fs.", "google.cloud.auth."))


def to_storage_options(settings: Mapping[str, str]) -> dict[str, Any]:
    """The fsspec options that mean the same as these Hadoop settings.

    Raises
    ------
    InvalidOptionError
        A setting that has no counterpart, named without its value.
    """
    known = {_canonical(name): value for name, value in settings.items()}
    options: dict[str, Any] = {}
    for name, value in known.items():
        azure = _AZURE_KEY.fullmatch(name)
        if name in _TEXT_SETTINGS:
            _put(options, _TEXT_SETTINGS[name], value)
        elif azure:
            options.update(account_name=azure[2], account_key=value)
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


def _canonical(name: str) -> str:
    return re.sub(r"^fs\.s3n?\.", "fs.s3a.", name.lower())


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"


def _put(options: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        options = options.setdefault(key, {})
    options[path[-1]] = value
