"""The table that a call names: by the option `path`, the path of `load` and `save`, or ``pydelta.`/path` ``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from delta_ds.conditions.record import CREATE_IN_CATALOG_NOT_ALLOWED
from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.storage.uri import parse_address

FORMAT = "pydelta"
# The name of delta-spark's source, which is ours as well where no other source has it.
DELTA = "delta"
_ours = {FORMAT}
# Names of tables by path begin with either.
FORMATS = (FORMAT, DELTA)

_PATH_OPTIONS = ("path", "paths")
# As Spark takes them: in any case, the format plain or quoted, the path quoted, the session's own catalog in front or
# not.
_BY_PATH = re.compile(
    r"\s*(?:(?:spark_catalog|`spark_catalog`)\s*\.\s*)?(?P<quote>`?)(?P<format>\w+)(?P=quote)\s*\.\s*"
    r"`(?P<path>(?:[^`]|``)+)`\s*",
    re.IGNORECASE,
)


# --- names


def format_and_path(identifier: str) -> tuple[str, str]:
    """The format and path of a name such as ``parquet.`/path` ``; empty for any other name.

    >>> format_and_path("Parquet.`/data/sales`")
    ('parquet', '/data/sales')
    >>> format_and_path("sales")
    ('', '')
    """
    match = _BY_PATH.fullmatch(identifier)
    return (match["format"].lower(), match["path"].replace("``", "`")) if match else ("", "")


def path_of(identifier: object) -> str | None:
    """The path in a table's name; None for a table of a catalog, or of another format.

    >>> path_of("pydelta.`/data/sales`")
    '/data/sales'
    >>> path_of("sales") is None
    True
    """
    source, path = format_and_path(identifier) if isinstance(identifier, str) else ("", "")
    return path if source in _ours else None


def claim_delta(claimed: bool) -> None:
    """Say whether the name `delta` is this package's in this process, too: no other source has it."""
    if claimed:
        _ours.add(DELTA)
    else:
        _ours.discard(DELTA)


def our_names() -> list[str]:
    """The names of data sources that stand for this package."""
    return sorted(_ours)


def path_of_parts(name: Sequence[str]) -> str | None:
    """The path in a table's name given by its parts, of either format; None for a table of a catalog.

    >>> path_of_parts(("delta", "/data/sales"))
    '/data/sales'
    >>> path_of_parts(("sales",)) is None
    True
    """
    parts = [*name[:-1]]
    if len(parts) == 2 and parts[0].lower() == "spark_catalog":
        del parts[0]
    # A schema may be called `delta`, too.
    return name[-1] if len(parts) == 1 and parts[0].lower() in FORMATS and "/" in name[-1] else None


def is_ours(source: str | None) -> bool:
    """Whether a data source's name is this package's, in any case."""
    return source is not None and source.lower() in _ours


def unknown_to_catalogs(name: object) -> UnsupportedOperationError:
    """The error for a table in a catalog, whose entry could be neither read nor written."""
    return CREATE_IN_CATALOG_NOT_ALLOWED(what="this table" if name is None else f"the table {name}")


# --- the option


def path_option(options: Mapping[str, str]) -> str | None:
    """The value of the option `path`, in any case; None without it."""
    return next((text for name, text in options.items() if name.lower() == "path"), None)


# A version that is named is the same whoever commits, and so are its changes.
_FIXED = {"versionasof", "timestampasof", "readchangefeed", "readchangedata"}


def is_read(path: str, readings: Iterable[Mapping[str, str]]) -> bool:
    """Whether one of some reads is of the newest version of the table at a path.

    Parameters
    ----------
    path
        Of a table, as a user writes it.
    readings
        The options of each read, `path` among them.
    """
    wanted = _place(path)
    for options in readings:
        other = path_option(options)
        if (
            other is not None
            and not any(name.lower() in _FIXED for name in options)
            and _place(other) == wanted
        ):
            return True
    return False


def _place(path: str) -> str:
    """Where a path leads, in one spelling."""
    address = parse_address(path)
    return os.path.realpath(absolute(address.path)) if address.scheme == "file" else str(address)


# What Spark's own catalog hands to a source in CREATE TABLE.
_OF_CATALOGS = {"provider", "location", "owner"}


def check_path(options: Mapping[str, str]) -> None:
    """Refuse options without a path, and those of a table of a catalog that knows no tables of ours.

    Raises
    ------
    InvalidOptionError
        There is none, or it is one of a catalog's, which later reads would not be told.
    """
    if not _has_path(options) or {name.lower() for name in options} >= _OF_CATALOGS:
        raise path_missing()


def path_missing() -> InvalidOptionError:
    """The error for a table of which neither a path nor a name is given."""
    return InvalidOptionError(
        "the option 'path' is missing: use .load('/path/of/the/table') or .save(...), or in SQL "
        "CREATE TEMPORARY VIEW ... USING pydelta OPTIONS (path '...'). Tables of the catalog are read by "
        "spark.table('name') and written by saveAsTable, in classic sessions with delta_ds.register(spark)"
    )


def with_path(options: Mapping[str, str], path: str | Sequence[str] | None, call: str) -> dict[str, str]:
    """Options with the path that a call was given.

    Parameters
    ----------
    options
        With a path of their own, or without.
    path
        None: the call was given none. A list has to be one of a single path.
    call
        For the message: `load` or `save`.

    Raises
    ------
    InvalidOptionError
        Both name a path.
    """
    if path is None:
        return dict(options)
    if _has_path(options):
        raise InvalidOptionError(
            f"the path is given twice, by the option 'path' and in {call}(...); give it once",
            parameters={"option": "path"},
        )
    if isinstance(path, str):
        return {**options, "path": path}
    return {**options, "paths": json.dumps([str(one) for one in path])}


def without_path(options: Mapping[str, str]) -> dict[str, str]:
    """Options but for the path: for another place on the same filesystem."""
    return {name: text for name, text in options.items() if name.lower() != "path"}


def _has_path(options: Mapping[str, str]) -> bool:
    return any(name.lower() in _PATH_OPTIONS for name in options)
