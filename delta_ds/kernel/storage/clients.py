"""Clients of stores: one per process, address, options and environment; dropped when they fail.

fsspec keeps every client for ever, also one that found no credentials, and one whose environment has changed since.
"""

from __future__ import annotations

import difflib
import inspect
import os
import threading
from collections.abc import Callable, Hashable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta_ds.conditions.storage import PARAMETERS_IN_ADDRESS
from delta_ds.exceptions import InvalidOptionError, StorageError
from delta_ds.kernel.storage.settings.hdfs import LOGIN, is_hdfs_setting
from delta_ds.kernel.storage.settings.translate import with_credentials_of_environment
from delta_ds.kernel.storage.settings.vocabulary import (
    known_to_any,
    names_java_class,
    names_of,
    names_of_all,
    unknown_option,
)
from delta_ds.kernel.storage.store_options import (
    ALLOW_HTTP,
    ENVIRONMENT,
    STORE_OPTIONS,
    TOKEN_CREDENTIAL,
    filesystem_options,
)
from delta_ds.kernel.storage.uri import Address, without_parameters

if TYPE_CHECKING:
    from delta_ds.kernel.storage.remote_files import Filesystem

# --- waiting for a store that accepts a request and never answers it: for a while, never for ever
# | client | by itself | here |
# | --- | --- | --- |
# | s3fs | 5 s to connect, 15 s for each piece of an answer | the same |
# | adlfs | 20 s to connect, 60 s for each piece of an answer | the same |
# | gcsfs | for ever | 20 s to connect, 60 s for each piece of an answer, an hour in all |
# | fsspec's WebHDFS | for ever | 20 s to connect, 60 s for each piece of an answer |
# Options of the clients go before them. Reads that time out are repeated by the clients, a few times.

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


# --- clients of stores: one per process, address, options and environment; dropped when they fail

_EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "azure", "hdfs": "hdfs"}
_MOST_CLIENTS = 32
# Stores whose options are known by name; filesystems of others may take any.
_CHECKED = frozenset(["s3", "gs", "abfs", "hdfs", "webhdfs"])
# What filesystems take without naming it in their signatures: of fsspec's listings, of botocore's sessions, of adlfs.
_UNNAMED = {
    "": ("use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache", "batch_size"),
    "s3": ("profile", "session_vars", "event_hooks", "include_builtin_handlers"),
    "abfs": ("account_host", "api_version"),
}

_clients: dict[Hashable, Filesystem] = {}
_lock = threading.Lock()


def client(address: Address, storage_options: Mapping[str, Any]) -> Filesystem:
    """The fsspec filesystem of an address, a new one where none was made of the same before.

    Raises
    ------
    InvalidOptionError
        The store takes no option of such a name.
    StorageError
        The scheme is not known, or its package not installed; the address has parameters.
    """
    key = _key(address, storage_options)
    with _lock:
        filesystem = _clients.pop(key, None)
    filesystem = _open(address, storage_options) if filesystem is None else filesystem
    with _lock:
        _clients[key] = filesystem
        for oldest in list(_clients)[:-_MOST_CLIENTS]:
            del _clients[oldest]
    return filesystem


def forget(filesystem: Filesystem) -> None:
    """Make the next `client` a new one: this one failed, perhaps for want of what is there now."""
    with _lock:
        for key in [key for key, one in _clients.items() if one is filesystem]:
            del _clients[key]


def _key(address: Address, storage_options: Mapping[str, Any]) -> Hashable:
    environment = tuple(sorted(item for item in os.environ.items() if item[0].startswith(ENVIRONMENT)))
    # Clients do not survive a fork, and Spark forks its Python workers.
    return (
        os.getpid(),
        address.scheme,
        address.authority,
        address.userinfo,
        _freeze(dict(storage_options)),
        environment,
    )


def _freeze(value: object) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), _freeze(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple, set)):
        return tuple(map(_freeze, value))
    return repr(value) if isinstance(value, (str, int, float, bytes, type(None))) else f"object {id(value)}"


def _open(address: Address, storage_options: Mapping[str, Any]) -> Filesystem:
    import fsspec  # type: ignore[import-untyped,unused-ignore]

    if address.parameters:
        raise PARAMETERS_IN_ADDRESS(address=str(address))
    # A cached listing would hide the newest commits.
    storage_options = with_credentials_of_environment(address, storage_options)
    own = filesystem_options(storage_options)
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True, **own}
    url = address.with_userinfo
    if address.scheme == "s3" and address.userinfo:
        url = str(address)
        key, _, secret = address.userinfo.partition(":")
        options = {"key": unquote(key), "secret": unquote(secret), **options}
    if address.scheme == "gs" and "endpoint_url" in options:
        # gcsfs asks for the bucket's kind over gRPC first, which hangs for a minute against an emulator.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        if address.scheme == "hdfs":
            return _hdfs(address, own, lambda: fsspec.core.url_to_fs(url, **options)[0])
        if address.scheme in _CHECKED:
            _check(address.scheme, own, fsspec.get_filesystem_class(address.scheme))
        _add_credentials(address.scheme, storage_options, options)
        filesystem: Filesystem = fsspec.core.url_to_fs(url, **{**defaults(address.scheme), **options})[0]
    except ImportError as error:
        extra = _EXTRAS.get(address.scheme)
        advice = f"pip install 'delta_ds[{extra}]'" if extra else "install the package it names"
        raise StorageError(f"cannot open {address}: {error}; {advice}") from None
    except InvalidOptionError:
        raise
    except ValueError as error:
        if "Protocol not known" not in str(error):
            raise
        raise StorageError(
            f"cannot open {address}: neither this package nor fsspec knows the scheme {address.scheme!r}"
        ) from None
    if storage_options.get(ALLOW_HTTP) is False:
        _refuse_http(address, filesystem)
    limit(address.scheme, filesystem)
    return filesystem


def _add_credentials(scheme: str, storage_options: Mapping[str, Any], options: dict[str, Any]) -> None:
    """Objects that stand for credentials: made here, as they do not travel between processes."""
    if scheme == "s3":
        from delta_ds.kernel.storage.aws_sessions import SESSION_OPTIONS, async_session

        session = async_session(storage_options)
        if session is not None:
            for name in SESSION_OPTIONS:
                options.pop(name, None)
            options["session"] = session
    elif scheme == "gs" and _names_no_file(options.get("token")):
        # gcsfs takes the name of a file that is not there for a token, and sends it to Google.
        # What looks like no name of a file may be the token itself.
        shown = f" {options['token']!r}" if str(options["token"]).endswith(".json") else ""
        raise InvalidOptionError(
            f"the key file{shown} of the service account does not exist", parameters={"option": "token"}
        )
    elif TOKEN_CREDENTIAL in storage_options:
        from delta_ds.kernel.storage.aws_sessions import azure_credential, google_credential

        if scheme == "abfs":
            options["credential"] = azure_credential(storage_options[TOKEN_CREDENTIAL])
        else:
            options["token"] = google_credential(storage_options[TOKEN_CREDENTIAL])


def _names_no_file(token: object) -> bool:
    if not isinstance(token, str) or not (token.endswith(".json") or token.startswith(("/", "./", "~"))):
        return False
    return not os.path.exists(token)


def _refuse_http(address: Address, filesystem: Filesystem) -> None:
    if address.scheme == "s3":
        filesystem.connect()
    endpoint = endpoint_of(address.scheme, filesystem)
    if endpoint.startswith("http://"):
        raise InvalidOptionError(
            f"the store of {address} is at {endpoint}, and allow_http is false; set it to true, or give an address "
            "with https://",
            parameters={"option": "allow_http"},
        )


def endpoint_of(scheme: str, filesystem: Filesystem) -> str:
    """The address of the server that a client talks to, without secrets; empty where it does not say."""
    if scheme == "s3":
        made = getattr(filesystem, "_s3", None)
        return "" if made is None else without_parameters(str(made.meta.endpoint_url))
    service = getattr(filesystem, "service_client", None)
    # That of Azure ends in the shared access signature.
    addresses = (getattr(service, "primary_endpoint", None), getattr(filesystem, "_endpoint", None))
    return next((without_parameters(str(url)) for url in addresses if url), "")


def _hdfs(address: Address, options: Mapping[str, Any], by_libhdfs: Callable[[], Filesystem]) -> Filesystem:
    """The filesystem by hdfs-native; where it is not installed, that of fsspec, which wants Java and libhdfs."""
    if find_spec("hdfs_native") is not None:
        from delta_ds.kernel.storage.hdfs import Hdfs

        for name in options:
            if name not in LOGIN and not is_hdfs_setting(name):
                names = {*LOGIN, *STORE_OPTIONS}
                raise unknown_option(name, names, "stores of hdfs:// take, beside Hadoop's own (dfs.*)")
        return Hdfs(f"hdfs://{address.authority}", options)
    import fsspec

    _check("hdfs", options, fsspec.get_filesystem_class("hdfs"))
    try:
        return by_libhdfs()
    except (OSError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise StorageError(
            f"cannot open {address}: neither hdfs-native nor libhdfs is there ({reason}); pip install 'delta_ds[hdfs]'"
        ) from None


def _check(scheme: str, options: Mapping[str, Any], filesystem: type) -> None:
    names = _parameters(scheme, filesystem)
    for name in options:
        if name not in names:
            raise unknown_option(name, {*names, *names_of(scheme)}, f"stores of {scheme}:// take")


def _parameters(scheme: str, filesystem: type) -> set[str]:
    """What a class of filesystems takes."""
    names = {*_UNNAMED[""], *_UNNAMED.get(scheme, ())}
    for base in filesystem.__mro__:
        if "__init__" in vars(base):
            names |= {
                name
                for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items()
                if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            }
    return names - {"self"}


_LOCAL = Address("file", "", "")


def check_local(options: Mapping[str, Any]) -> None:
    """Refuse a name that no store knows among the options of a local table, where those of stores have no meaning.

    Raises
    ------
    InvalidOptionError
        Nothing takes an option of such a name.
    """
    unknown = [
        name
        for name, value in filesystem_options(options).items()
        if not names_java_class(name, value, _LOCAL) and not known_to_any(name)
    ]
    if not unknown:
        return
    names = set().union(*map(_parameters_if_installed, sorted(_CHECKED)))
    for name in unknown:
        if name not in names:
            near = difflib.get_close_matches(name.lower(), {*names, *map(str.lower, names_of_all())}, n=1)
            proper = {one.lower(): one for one in names_of_all()}
            raise unknown_option(
                name,
                [proper.get(one, one) for one in near] or STORE_OPTIONS,
                "mean something to a local table",
            )


def _parameters_if_installed(scheme: str) -> set[str]:
    import fsspec

    try:
        return _parameters(scheme, fsspec.get_filesystem_class(scheme))
    except (ImportError, OSError):
        return set()
