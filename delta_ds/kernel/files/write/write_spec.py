"""What tasks need to know to write data files of a table, settled once on the driver.

Source: PROTOCOL.md, "Data Files" and "Table Properties".

Names and listing of data files, whose paths are encoded as URIs.

Source: PROTOCOL.md, "Data Files" (protocol-checklist LOG-W-08, PTH-W-03).
"""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pyarrow.compute as pc

from delta_ds.kernel.format.features import (
    ICEBERG_COMPAT_V1,
    ICEBERG_COMPAT_V2,
    MATERIALIZE_PARTITION_COLUMNS,
)
from delta_ds.kernel.format.iceberg_compatibility import FILE_TAG, RESERVED_IDS
from delta_ds.kernel.format.properties import (
    ENABLE_MATERIALIZE_PARTITION_COLUMNS,
    PARQUET_COMPRESSION_CODEC,
    PARQUET_FORMAT_VERSION,
    RANDOMIZE_FILE_PREFIXES,
    WRITE_PARTITION_COLUMNS_TO_PARQUET,
)
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """How data files of a table are written. Can be pickled.

    Attributes
    ----------
    table, version
        For messages: the table's URL and the version read; -1 for a table that is not there yet.
    schema
        Logical columns in order, partition columns among them, with column mapping metadata.
    partition_columns
        Logical names, in the order of partitioning.
    mapping_mode
        `none`, `name` or `id`.
    properties, features
        Configuration, and features supported by the protocol, as they will be effective.
    compression
        Codec that overrides the table property; that of a session is looked at once files are written.
    max_records_per_file
        Rows of a file at most; None or 0: any number.
    target_file_size
        Bytes after which a file is closed and the next one begun; None: never.
    timezone
        Zone of timestamps in directory names.
    clustering_columns
        Physical paths that need statistics wherever they stand.
    extra_columns
        Columns of the rows after those of `schema`, by the names they have in files.
    """

    table: str
    version: int
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    mapping_mode: str = "none"
    properties: Mapping[str, str] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    compression: str | None = None
    max_records_per_file: int | None = None
    target_file_size: int | None = None
    timezone: str = "UTC"
    clustering_columns: tuple[tuple[str, ...], ...] = ()
    extra_columns: tuple[StructField, ...] = ()

    @property
    def codec(self) -> str:
        """The compression codec by its name in lower case; `InvalidOptionError` for an unknown one."""
        text = self.compression
        codec = PARQUET_COMPRESSION_CODEC
        return codec.of(self.properties) if text is None else codec.parse(text)

    @property
    def data_pages_v2(self) -> bool:
        """Whether data pages have the form of Parquet 2."""
        return not PARQUET_FORMAT_VERSION.of(self.properties).startswith("1")

    @property
    def random_prefixes(self) -> bool:
        """Whether files lie in folders of random names instead of partition folders."""
        return self.mapping_mode != "none" or RANDOMIZE_FILE_PREFIXES.of(self.properties)

    @property
    def writes_partition_columns(self) -> bool:
        """Whether files hold the partition columns as well (protocol-checklist MPC-W-01)."""
        if ENABLE_MATERIALIZE_PARTITION_COLUMNS.of(self.properties) or self.iceberg_version is not None:
            return True
        if MATERIALIZE_PARTITION_COLUMNS.name in self.features:
            return True
        return WRITE_PARTITION_COLUMNS_TO_PARQUET.of(self.properties)

    @property
    def iceberg_version(self) -> int | None:
        """The version of Iceberg compatibility that files have to comply with (protocol-checklist section 20)."""
        versions = {1: ICEBERG_COMPAT_V1, 2: ICEBERG_COMPAT_V2}
        return next(
            (v for v, f in versions.items() if f.name in self.features and f.is_turned_on(self.properties)),
            None,
        )

    @property
    def writes_nested_ids(self) -> bool:
        """Whether elements of arrays, and keys and values of maps, have field ids in files."""
        return self.iceberg_version == 2

    @property
    def reserved_ids(self) -> dict[str, int]:
        """The field ids of columns that keep row ids and row commit versions."""
        if self.iceberg_version is None:
            return {}
        return {
            name: number
            for reserved, number in RESERVED_IDS
            if (name := reserved.of(self.properties)) is not None
        }

    @property
    def tags(self) -> dict[str, str] | None:
        """What `add` actions of new files say of how they were written; None for nothing."""
        return None if self.iceberg_version is None else {FILE_TAG: str(self.iceberg_version)}


def write_spec(state: TableState, **options: Any) -> WriteSpec:
    """The plan for a table as its metadata and protocol will be once the write is committed.

    Parameters
    ----------
    state
        The table as it will be.
    options
        The other attributes of `WriteSpec`, by name.

    Raises
    ------
    InvalidOptionError
        A property that decides how files are written has no known value.
    """
    plan = WriteSpec(
        table=state.table,
        version=state.version,
        schema=state.schema,
        partition_columns=state.partition_columns,
        mapping_mode=state.mapping_mode,
        properties=dict(state.properties),
        features=state.protocol.supported,
        **options,
    )
    PARQUET_COMPRESSION_CODEC.of(plan.properties)
    for check in ("data_pages_v2", "random_prefixes", "writes_partition_columns"):
        getattr(plan, check)
    return plan


_UNCHANGED_IN_URI = "/=:@!$&'()*+,;-._~"
_EXTENSIONS = {
    "none": "", "uncompressed": "", "gzip": ".gz", "brotli": ".br", "lz4": ".lz4raw", "lz4_raw": ".lz4raw",
}  # fmt: skip
_ALPHANUMERIC = string.ascii_letters + string.digits
_RANDOM = random.SystemRandom()


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


# Path relative to the table and not encoded, bytes, modification time in ms.
Written = tuple[str, int, int]

_HIDDEN = ("_", ".")


def list_written_files(storage: Storage, folder: str) -> list[Written]:
    """The data files below a folder: path relative to the table, bytes, modification time in ms; in order of path.

    What begins with `_` or `.` and is no partition is a marker, a checksum or an attempt that did not finish.
    A folder that is not there has none: object stores do not know empty folders.

    Raises
    ------
    StorageError
        The store refused.
    """
    found: list[Written] = []
    for batch in storage.list_below(folder, lambda inner: not _is_hidden(inner, folder)):
        files = batch.filter(pc.invert(batch["is_folder"]))
        columns = [files[name].to_pylist() for name in ("path", "size", "modified_ms")]
        found += [file for file in zip(*columns, strict=True) if not _is_hidden(file[0], folder)]
    return sorted(found)


def _is_hidden(path: str, folder: str) -> bool:
    below = path.removeprefix(folder.strip("/")).strip("/")
    return any(name[0] in _HIDDEN and "=" not in name for name in below.split("/"))
