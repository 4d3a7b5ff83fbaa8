"""`name=value`, the folders of partitions: escaped as Hive and Spark do it, character by character.

The log alone has the values; what the folders say counts where there is no log yet, or a user names one.
Source: PROTOCOL.md, "Data Files" (protocol-checklist PV-RW-04); Spark, `ExternalCatalogUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from delta_ds.kernel.format.values.partition_values import NULL_DIRECTORY

# Those of Spark, and the character 0, which no store takes in a name.
_TO_ESCAPE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """A name or value as a part of a folder's name.

    >>> escape("a/b é")
    'a%2Fb é'
    """
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """A name or value from a part of a folder's name: two digits are a character, not a byte of UTF-8.

    >>> unescape("a%2Fb %E9 %C3%A9 50%")
    'a/b é Ã© 50%'
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def text(values: Iterable[tuple[str, str | None]]) -> str:
    """The folders of a partition below its table, by names and texts of values; null and the empty text are one.

    >>> text([("day", "2024-01-01"), ("country", None)])
    'day=2024-01-01/country=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(f"{escape(name)}={escape(value or NULL_DIRECTORY)}" for name, value in values)


def parse(folders: Iterable[str]) -> list[tuple[str, str | None]]:
    """Names and texts of values of some folders, one by one; None stands for null.

    A folder without `=` is a name whose value has the empty text.

    >>> parse(["day=2024-01-01", "country=__HIVE_DEFAULT_PARTITION__"])
    [('day', '2024-01-01'), ('country', None)]
    """
    parts = [folder.partition("=") for folder in folders]
    values = [(unescape(name), unescape(value)) for name, _, value in parts]
    return [(name, None if value == NULL_DIRECTORY else value) for name, value in values]
