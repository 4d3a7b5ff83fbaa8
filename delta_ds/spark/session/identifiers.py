"""Table names that are paths: ``pydelta.`/path` ``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from delta_ds.conditions.classes import CREATE_IN_CATALOG_NOT_ALLOWED
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.spark import schema as schemas
from delta_ds.spark.source import FORMAT

# As Spark takes them: in any case, each part plain or quoted, the session's own catalog in front or not.
_PATH_TABLE = re.compile(
    rf"\s*(?:(?:spark_catalog|`spark_catalog`)\s*\.\s*)?(?:{FORMAT}|`{FORMAT}`)\s*\.\s*`((?:[^`]|``)+)`\s*",
    re.IGNORECASE | re.DOTALL,
)


def path_of(identifier: object) -> str | None:
    """The path in a table's name; None for a table of a catalog, which is not ours.

    >>> path_of("pydelta.`/data/sales`")
    '/data/sales'
    >>> path_of("sales") is None
    True
    """
    match = _PATH_TABLE.fullmatch(identifier) if isinstance(identifier, str) else None
    return match[1].replace("``", "`") if match else None


def is_ours(source: str | None) -> bool:
    """Whether the name of a data source is that of this package's; Spark takes names in any case."""
    return source is not None and source.lower() == FORMAT


def quoted(names: Sequence[str]) -> str:
    """Column names as an option's text, whatever they hold.

    >>> quoted(["a", "b, c"])
    '`a`, `b, c`'
    """
    return ", ".join(map(schemas.quoted, names))


def unknown_to_catalogs(name: object) -> UnsupportedOperationError:
    """The error where a table of a catalog would be made: Spark's entry of it could be neither read nor written."""
    return CREATE_IN_CATALOG_NOT_ALLOWED(what="this table" if name is None else f"the table {name}")
