"""The settings of each store by name, and the nearest known name to one that is not."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.settings import azure, gcs, hdfs, s3
from delta_ds.kernel.storage.settings.record import Refused, Setting
from delta_ds.kernel.storage.store_options import STORE_OPTIONS
from delta_ds.kernel.storage.uri import Address, parse_address
from delta_ds.records import dataclass, field

_MODULES: dict[str, ModuleType] = {"s3": s3, "abfs": azure, "gs": gcs, "hdfs": hdfs}
# Names of buckets may have dots: what follows begins with the first word of a setting.
_BUCKET = re.compile(
    r"fs\.s3a\.bucket\.(?P<of>.+?)\.(?P<rest>(?:access|accesspoint|assumed|attempts|auth|aws|connection|delegation|"
    r"encryption|endpoint|path|proxy|requester|secret|security|server-side-encryption(?:-algorithm)?|session)"
    r"(?:\..+)?)"
)
_ACCOUNT = re.compile(r"(?P<rest>fs\.azure\..+?)\.(?P<of>[a-z0-9]+)\.(?:dfs|blob)\.[a-z0-9.]+")


# How programs in Java are told which class reaches addresses of a scheme. Here the scheme itself says so.
_JAVA_CLASS = re.compile(r"fs\.(?:abstractfilesystem\.)?(?P<scheme>[\w+-]+)\.impl(?P<more>\.disable\.cache)?")
_PLAIN_CLASSES = ("org.apache.hadoop.", "com.google.cloud.hadoop.", "com.amazon.ws.emr.hadoop.")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What one store understands.

    Attributes
    ----------
    by_name
        Settings by each of their names but fsspec's, in lower case.
    refused
        What must not be passed over.
    complete
        Makes options of the notes of settings.
    same
        Targets that mean the same thing: an option of one goes before a session's setting of another.
    nested
        Targets by keys of an option that is a dict itself, such as `client_kwargs`.
    who_asks
        Credentials among the filesystem's own options that are no settings.
    of_session
        Leaves out of a session's settings, by plain name, what says nothing there.
    """

    by_name: Mapping[str, Setting]
    refused: tuple[Refused, ...]
    complete: Callable[[dict[str, Any], Address], None]
    same: tuple[frozenset[tuple[str, ...]], ...] = ()
    nested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    who_asks: frozenset[str] = frozenset()
    of_session: Callable[[dict[str, str]], dict[str, str]] = dict

    def refusal(self, name: str) -> Refused | None:
        """Why a setting cannot be honoured, if it is known and cannot."""
        return next((one for one in self.refused if re.fullmatch(one.name, name)), None)


@functools.cache
def vocabulary(scheme: str) -> Vocabulary:
    """What the store of a scheme understands; of most, only what its filesystem takes."""
    module = _MODULES.get(scheme)
    if module is None:
        return Vocabulary({}, (), lambda options, address: None)
    settings: Iterable[Setting] = module.SETTINGS
    by_name = {name: one for one in settings for name in (*one.hadoop, *one.names, *one.bare)}
    if module is s3:
        own = s3.SAME, s3.NESTED, s3.WHO_ASKS, s3.of_session
        return Vocabulary(by_name, s3.REFUSED, s3.complete, *own)
    who_asks = azure.WHO_ASKS if module is azure else frozenset()
    return Vocabulary(by_name, module.REFUSED, module.complete, who_asks=who_asks)


def owner(name: str, besides: str) -> str | None:
    """The scheme of another store that has a setting of this name, in lower case."""
    for scheme in _MODULES:
        if scheme != besides and (
            plain_name(name) in vocabulary(scheme).by_name or vocabulary(scheme).refusal(name)
        ):
            return scheme
    return None


def plain_name(name: str) -> str:
    """A name in lower case, with `fs.s3a.` for `fs.s3.` and `fs.s3n.`, without the bucket or account that it is for."""
    return place(name)[0]


def place(name: str) -> tuple[str, str]:
    """The plain name, and the bucket or account that a setting is for; empty: for all.

    >>> place("fs.s3.bucket.lake.access.key")
    ('fs.s3a.access.key', 'lake')
    >>> place("fs.azure.account.key.Box.dfs.core.windows.net")
    ('fs.azure.account.key', 'box')
    >>> place("AWS_REGION")
    ('aws_region', '')
    """
    folded = name.lower()
    if folded.startswith(("spark.delta.logstore.", "spark.io.delta.storage.")):
        folded = folded.removeprefix("spark.")
    folded = re.sub(r"^fs\.s3n?\.", "fs.s3a.", folded)
    folded = re.sub(r"^delta\.logstore\.s3n?\.impl$", "delta.logstore.s3a.impl", folded)
    if match := _BUCKET.fullmatch(folded):
        return f"fs.s3a.{match['rest']}", match["of"]
    if match := _ACCOUNT.fullmatch(folded):
        return match["rest"], match["of"]
    return folded, ""


def names_java_class(name: str, value: Any, address: Address) -> bool:
    """Whether an option says by which class of Java a scheme is reached: nothing that a table is opened by.

    Raises
    ------
    InvalidOptionError
        The scheme is that of the table, and the class not the one that everybody reaches it by.

    >>> from delta_ds.kernel.storage.uri import parse_address
    >>> names_java_class("fs.lake.impl", "com.example.Lake", parse_address("s3://bucket/orders"))
    True
    """
    match = _JAVA_CLASS.fullmatch(name.lower())
    if match is None:
        return False
    scheme = match["scheme"]
    of_table = (scheme if scheme == "file" else parse_address(f"{scheme}://x/y").scheme) == address.scheme
    if of_table and match["more"] is None and not str(value).startswith(_PLAIN_CLASSES):
        raise InvalidOptionError(
            f"the option {name!r} names a class of Java for {address}, and this package reaches a store by its address "
            "alone; leave it out if the class only opens the store",
            parameters={"option": name},
        )
    return True


def unknown_option(name: str, known: Iterable[str], who: str) -> InvalidOptionError:
    """The error of an option that nobody reads, with the nearest name that is read."""
    by_folded = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), sorted(by_folded), n=1)
    if near:
        found = by_folded[near[0]]
        hint = f"; did you mean {(found.upper() if name.isupper() else found)!r}?"
    else:
        hint = f". Those that {who}: {', '.join(sorted(by_folded.values()))}"
    return InvalidOptionError(
        f"unknown storage option {name!r} (in Spark 'storage.{name}'){hint}", parameters={"option": name}
    )


def names_of(scheme: str) -> set[str]:
    """Every name that is known for a store, besides those of its filesystem."""
    return {*vocabulary(scheme).by_name, *STORE_OPTIONS}


@functools.cache
def names_of_all() -> frozenset[str]:
    """Every name that is known for any store, those of its filesystem among them as far as they have other names."""
    settings = [one for scheme in _MODULES for one in vocabulary(scheme).by_name.values()]
    own = {one.target[0] for one in settings if one.python}
    return frozenset(own.union(hdfs.LOGIN, *map(names_of, _MODULES)))


def known_to_any(name: str) -> bool:
    """Whether a name is known for some store, if only as one that it cannot honour."""
    plain = plain_name(name)
    return (
        name in names_of_all()
        or plain in names_of_all()
        or hdfs.is_hdfs_setting(name)
        or owner(name, "") is not None
    )
