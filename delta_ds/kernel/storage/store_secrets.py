"""The secret values of one store: in options, in its address, in the environment; no text of its errors has them.

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

from delta_ds.kernel.storage.store_options import is_harmless
from delta_ds.kernel.storage.uri import Address
from delta_ds.redaction import redacted, without

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
