"""Names and directories of data files.

Directories are escaped as Hive does, then the whole path is encoded as a URI; neither carries meaning, the log
alone has the values. Source: PROTOCOL.md, "Data Files" (protocol-checklist LOG-W-08, PV-RW-04, PTH-W-03).
"""

from __future__ import annotations

import random
import re
import string
import uuid
from collections.abc import Iterable
from urllib.parse import quote

from delta_ds.kernel.data.values.partition_values import NULL_DIRECTORY

_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_UNCHANGED_IN_URI = "/=:@!$&'()*+,;-._~"
_EXTENSIONS = {
    "none": "", "uncompressed": "", "gzip": ".gz", "brotli": ".br", "lz4": ".lz4raw", "lz4_raw": ".lz4raw",
}  # fmt: skip
_ALPHANUMERIC = string.ascii_letters + string.digits
_RANDOM = random.SystemRandom()


def escape(text: str) -> str:
    """A column name or value as a part of a directory's name, as Hive and Spark escape it."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def directory(values: Iterable[tuple[str, str | None]]) -> str:
    """The relative directory of a partition: `name=value/name=value`, not URI-encoded.

    Null and the empty text are `__HIVE_DEFAULT_PARTITION__`.
    """
    return "/".join(f"{escape(name)}={escape(value or NULL_DIRECTORY)}" for name, value in values)


def encode(path: str) -> str:
    """A relative path as the `path` of an action."""
    return quote(path, safe=_UNCHANGED_IN_URI)


def random_prefix(length: int) -> str:
    """A directory of random letters and digits, which spreads files over the partitions of an object store."""
    return "".join(_RANDOM.choices(_ALPHANUMERIC, k=length))


def file_name(prefix: str, task: int, number: int, codec: str) -> str:
    """A name that no other file has: `part-00003-<uuid>.c000.zstd.parquet`."""
    extension = _EXTENSIONS.get(codec, f".{codec}")
    return f"{prefix}-{task:05d}-{uuid.uuid4()}.c{number:03d}{extension}.parquet"
