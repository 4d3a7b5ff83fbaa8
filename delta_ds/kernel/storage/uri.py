"""Addresses of tables, and the files that paths in their logs point to.

A table's address is taken as the user wrote it; a `path` of an action is URI-encoded and decoded once.

Source: PROTOCOL.md, "Add File and Remove File"; protocol-checklist PTH-RW-01 and PTH-RW-02.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Protocol

from delta_ds.exceptions import StorageError
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
_CHAINED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*::.*:/")
# A login whose password holds a slash that was not encoded, so that it seems to end before it; a port is none.
_CUT_LOGIN = re.compile(r"/*(?!\[)[^/@:]*:(?!\d*(?:/|$))[^@]*@", re.DOTALL)
# Parameters that give rights to whoever has them.
_SIGNED = re.compile(
    r"[?#&;](?:sig|signature|[\w.-]*(?:token|secret|password)|x-(?:amz|goog)-\w+|awsaccesskeyid|googleaccessid"
    r"|delegation)=",
    re.IGNORECASE,
)

# Spellings of one and the same store, as Hadoop and the clouds' own tools write them.
_SAME_STORE = {
    **dict.fromkeys(("s3a", "s3n"), "s3"),
    "gcs": "gs",
    **dict.fromkeys(("abfss", "wasb", "wasbs", "az", "azure"), "abfs"),
}

# Of these nothing but a path is taken.
_WITHOUT_LOGIN = ("file", "memory")
# How a store takes what people put behind a `?`.
_SIGNATURES = {
    "abfs": "azure_storage_sas_token, or fs.azure.sas.fixed.token",
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or google_bearer_token",
}

# Stores that open any bucket with the same credentials; on the others the authority must be the same.
_ANY_AUTHORITY = frozenset({"file", "memory", "s3", "gs"})


@dataclass(frozen=True, slots=True)
class Address:
    """A path on a store.

    Attributes
    ----------
    scheme
        Canonical name of the store: `file`, `memory`, `s3`, `gs`, `abfs`, `hdfs`, or as written.
    authority
        Bucket, host or `container@account`; empty for `file` and `memory`.
    path
        Begins with `/` unless empty; no trailing `/`.
    userinfo
        `user:password` of the URL, never shown.
    spelling
        The scheme as it was written, for addresses that other engines read; empty where none was.
    parameters
        What followed a `?` of `http` and `https`, never shown; no store takes it.
    """

    scheme: str
    authority: str
    path: str
    userinfo: str = field(default="", repr=False)
    spelling: str = field(default="", repr=False, compare=False)
    parameters: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        if self.scheme == "file":
            return self.path
        if self.scheme == "memory":
            return f"memory:/{self.path}"
        return self._with_authority(self.authority)

    @property
    def as_written(self) -> str:
        """The address with the scheme that the user knows the store by: Hadoop may know no other."""
        text = str(self)
        has_spelling = self.spelling and self.scheme not in ("file", "memory")
        return f"{self.spelling}{text[len(self.scheme) :]}" if has_spelling else text

    @property
    def with_userinfo(self) -> str:
        """The full address, secrets included: for opening, never for messages."""
        return self._with_authority(f"{self.userinfo}@{self.authority}") if self.userinfo else str(self)

    def _with_authority(self, authority: str) -> str:
        return f"{self.scheme}://{authority}{self.path}"

    def relative(self, other: Address) -> str | None:
        """`other` relative to this address, or None if it does not lie below it."""
        if (self.scheme, self.authority) != (other.scheme, other.authority):
            return None
        root = self.path.rstrip("/") + "/"
        return other.path[len(root) :] if other.path.startswith(root) and other.path != root else None


def has_scheme(text: str) -> bool:
    """Whether the text starts with `scheme:/` (so that `a:b` and `C=1:2/x` are plain names)."""
    return _SCHEME.match(text) is not None


def parse_address(text: str) -> Address:
    """Split a table path or URL. Nothing is decoded and `~` is not expanded: Hadoop does neither.

    Raises
    ------
    StorageError
        An empty path, a chained URL, or a `file:` URL of another host; an address with a signature, or with a login
        that does not end where it should.
    """
    if not text.strip():
        raise StorageError("the path of the table is empty; give a folder or a URL such as s3://bucket/table")
    if "\0" in text:
        raise StorageError("the path holds a NUL character")
    match = _SCHEME.match(text)
    if match is None:
        if _CHAINED.match(text):
            raise StorageError(f"chained URLs are not supported: {text.partition('::')[0]}::...")
        _check_path(text)
        return Address("file", "", _tidy(text))
    scheme = _SAME_STORE.get(match[1].lower(), match[1].lower())
    rest = text[match.end() :]
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    _check_secrets(scheme, authority, path)
    return replace(_address(scheme, authority, _tidy(path)), spelling=match[1].lower())


def _check_path(text: str) -> None:
    """Refuse an address behind something else, such as a blank, that would count as a path and be shown."""
    if "@" in text and ":/" in text:
        from delta_ds.redaction import safe_addresses

        shown = safe_addresses(text)
        if shown != text:
            raise StorageError(
                f"the path {shown!r} holds an address with a login, and is none itself: correct it"
            )


def _check_secrets(scheme: str, authority: str, path: str) -> None:
    """Refuse secrets in an address that would count as a part of a name, and be shown as such.

    Raises
    ------
    StorageError
        There is one.
    """
    if scheme in _WITHOUT_LOGIN and not authority:
        return
    if "@" not in authority and _CUT_LOGIN.match(authority + path):
        from delta_ds.conditions.storage import LOGIN_IN_ADDRESS

        raise LOGIN_IN_ADDRESS(address=f"{scheme}://***")
    if scheme not in (*_WITHOUT_LOGIN, "http", "https") and _SIGNED.search(authority + path):
        from delta_ds.conditions.storage import SECRET_IN_ADDRESS

        named, in_path = (re.split(r"[?#&;]", part, maxsplit=1)[0] for part in (authority, path))
        shown = _address(scheme, named, in_path if named == authority else "")
        raise SECRET_IN_ADDRESS(address=shown, how=_SIGNATURES.get(scheme, "options of the store"))


def without_parameters(address: str) -> str:
    """An address without a login and without what follows `?` or `#`.

    >>> without_parameters("https://user:pass@account.blob.core.windows.net/?sv=1&sig=abc")
    'https://account.blob.core.windows.net/'
    """
    head, scheme, rest = re.split(r"[?#]", address, maxsplit=1)[0].rpartition("://")
    authority, slash, path = rest.partition("/")
    return head + scheme + _host(authority) + slash + path


def _address(scheme: str, authority: str, path: str) -> Address:
    if scheme == "file":
        if authority not in ("", "localhost"):
            raise StorageError(
                f"file://{_host(authority)}{path} names a file of another host; use file:///path"
            )
        return Address("file", "", path)
    if scheme == "memory":  # fsspec's memory store has no authority: memory://a/b is the path /a/b
        return Address("memory", "", _tidy("/" + authority + path))
    if scheme == "abfs":  # what stands before the @ is the container, not a user
        container, at, account = authority.rpartition("@")
        return Address(scheme, container.partition(":")[0] + at + account, path)
    userinfo, _, host = authority.rpartition("@")
    parameters = ""
    if scheme in ("http", "https"):
        path, _, parameters = path.partition("?")
    return Address(scheme, host, path, userinfo, parameters=parameters)


def _host(authority: str) -> str:
    return authority.rpartition("@")[2]


def _tidy(path: str) -> str:
    """Collapse repeated slashes and drop trailing ones, as Hadoop's `Path` does."""
    path = re.sub("/{2,}", "/", path)
    return path if path == "/" else path.rstrip("/")


def same_filesystem(table: Address, other: Address) -> bool:
    """Whether what opens the table may open the other address as well."""
    if table.scheme != other.scheme:
        return False
    if table.scheme in _ANY_AUTHORITY:
        return True
    if table.scheme == "abfs":  # same account, any container
        accounts = {_host(a.authority).partition(".")[0] for a in (table, other) if "@" in a.authority}
        return len(accounts) <= 1
    return other.authority in ("", table.authority)


def decode(text: str) -> str:
    """Undo the URI encoding of a `path` once; `+` stays a plus.

    Raises
    ------
    StorageError
        The bytes are not UTF-8, or hold a NUL.
    """
    from urllib.parse import unquote

    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise StorageError(f"the path {text!r} in the log does not decode to UTF-8 text") from error
    if "\0" in decoded or not decoded:
        raise StorageError(f"the path {text!r} in the log is not a path")
    return decoded


def resolve(table: Address, log_path: str) -> str:
    """What a `path` of an action names: relative to the table if it lies below it, else absolute.

    Raises
    ------
    StorageError
        A relative path that leaves the table by `..`, or an address the table's filesystem cannot open.
    """
    if has_scheme(log_path):
        target = _address_in_log(table, log_path)
        target = replace(target, path=decode(target.path) if target.path else "")
    elif log_path.startswith("/"):
        target = Address(table.scheme, table.authority, decode(log_path))
    else:
        return _relative(table, log_path, decode(log_path))
    if not same_filesystem(table, target):
        raise StorageError(
            f"table {table}: the log names {target}, which the table's own storage may not open; "
            "a table may only name files on the filesystem it lies on",
            parameters={"table": str(table), "path": str(target)},
        )
    target = replace(target, path=posixpath.normpath(_tidy(target.path) or "/"), userinfo="")
    if not target.authority:
        target = replace(target, authority=table.authority)
    below = table.relative(target)
    return str(target) if below is None else unambiguous(below)


def _address_in_log(table: Address, log_path: str) -> Address:
    try:
        return parse_address(log_path)
    except StorageError as error:
        raise StorageError(
            f"table {table}: of a path in its log: {error.text}",
            condition=error.condition,
            parameters={**error.parameters, "table": str(table)},
        ) from None


def without_login(table: Address, log_path: str) -> str:
    """An absolute `path` of an action as another log may have it: without the login that its writer put in.

    Raises
    ------
    StorageError
        It has a signature, without which it would name the file no more.
    """
    login = _address_in_log(table, log_path).userinfo
    return log_path.replace(f"{login}@", "", 1) if login else log_path


def _relative(table: Address, log_path: str, decoded: str) -> str:
    normal = posixpath.normpath(decoded)
    if normal in (".", "..") or normal.startswith("../"):
        raise StorageError(
            f"table {table}: the path {log_path!r} in the log leaves the table's folder and is not followed",
            parameters={"table": str(table), "path": log_path},
        )
    return unambiguous(normal)


def unambiguous(relative: str) -> str:
    """Mark a relative path that reads like a URL (a folder named `s3:`) as relative."""
    return f"./{relative}" if has_scheme(relative) else relative


# --- the normal form of a path by which files are compared, however a log spells it
# The `path` of an action is URI-encoded, relative or absolute, and many texts name one file: `a%20b`, `./a%20b` and
# `file:///table/a%20b`. Replay, conflicts, the change feed and whatever else asks whether two actions mean the same
# file compares what the storage would open.
# Source: PROTOCOL.md, "Add File and Remove File", "Action Reconciliation"; protocol-checklist REC-R-05, PTH-RW-01.

# All other texts are their own canonical form.
ODD = r"%|:|//|^/|(^|/)\.\.?(/|$)"


class _Resolver(Protocol):
    """A `Storage`, as far as paths go."""

    def resolve(self, log_path: str) -> str: ...


def canonical_path(path: str, storage: _Resolver) -> str:
    """What a `path` of an action names: relative to the table where it lies below it, decoded.

    A path that the storage may not open stays as it is: it names no file of the table.
    """
    try:
        return storage.resolve(path)
    except StorageError:
        return path


def canonical_paths(paths: pa.ChunkedArray, storage: _Resolver) -> pa.ChunkedArray:
    """`canonical_path` of many, nulls included; only odd texts are looked at in Python, most of them once a folder."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _has_odd_letters(paths):
        return paths
    odd = pc.match_substring_regex(paths, ODD)
    if not pc.any(odd, min_count=0).as_py():
        return paths
    whole = paths.combine_chunks()
    odd = odd.combine_chunks()
    strange = pc.if_else(odd, whole, pa.nulls(1, pa.string())[0])
    # A file whose own name is plain is called as its folder is: asked for once, with a file `-` in it.
    plain = pc.and_(
        pc.match_substring_regex(strange, r"[^/]/[^/%:]+$"),
        pc.invert(pc.match_substring_regex(strange, r"/\.\.?$")),
    )
    asked = pc.if_else(plain, pc.replace_substring_regex(strange, "[^/]+$", "-"), strange).dictionary_encode()
    found = [canonical_path(path, storage) for path in asked.dictionary.to_pylist()]
    resolved = texts(found).take(asked.indices)
    name = pc.replace_substring_regex(strange, "^.*/", "")
    nothing = texts([""])[0]
    named = pc.binary_join_element_wise(pc.replace_substring_regex(resolved, "-$", ""), name, nothing)
    return pa.chunked_array([pc.coalesce(pc.if_else(plain, named, resolved), whole)])


def _has_odd_letters(paths: pa.ChunkedArray) -> bool:
    """Whether any text may be odd, by a look at the bytes of all."""
    import numpy as np
    import pyarrow.compute as pc

    for chunk in paths.chunks:
        letters = chunk.buffers()[2]
        if letters is None:
            continue
        values = np.frombuffer(letters, dtype=np.uint8)
        if (values == ord("%")).any() or (values == ord(":")).any():
            return True
        after = values[1:][values[:-1] == ord("/")]
        if (after == ord("/")).any() or (after == ord(".")).any():
            return True
    starts = pc.match_substring_regex(paths, r"^[/.]")
    return bool(pc.any(starts, min_count=0).as_py())
