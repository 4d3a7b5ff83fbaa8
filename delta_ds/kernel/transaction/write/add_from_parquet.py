"""`add` actions for Parquet files that another writer put into a folder of the table.

Spark's own Parquet writer leaves `<folder>/<partition column>=<text>/part-....parquet`. Sizes and times come from
the listing, partition values from the names of folders, statistics from the footers.
Source: PROTOCOL.md, "Add File and Remove File" and "Partition Value Serialization".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.write.footer_statistics import FooterStatistics
from delta_ds.kernel.files.write.write_spec import WriteSpec, encode, list_written_files
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import TIMESTAMP, StructField
from delta_ds.kernel.format.values import partition_folders
from delta_ds.kernel.format.values.partition_values import text_in_log
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

_FILES_AT_ONCE = 16
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The files that another writer left in a folder, as `add` actions.

    Attributes
    ----------
    adds
        The bodies of the `add` actions, in order of path.
    rows
        Of all files together.
    unwanted
        Files without rows, and those that do not count, relative to the table and not encoded: to be deleted, not to
        be added.
    """

    adds: list[AddFile]
    rows: int
    unwanted: list[str]


def read_parquet_files(
    storage: Storage,
    plan: WriteSpec,
    folder: str,
    *,
    paths: Sequence[str] | None = None,
    counts: Callable[[str], bool] = bool,
) -> ParquetFiles:
    """Make `add` actions, statistics included, of files that another writer put into a folder.

    Only footers are read where they say enough; see `footer_statistics`. Nothing is made durable: call
    `storage.fsync` with the paths before the commit, as `FileWriter.close` does.

    Parameters
    ----------
    storage
        Of the table.
    plan
        As for a `FileWriter` of the same rows.
    folder
        Relative to the table. Below it are folders named after the partition columns, in order, by physical name.
    paths
        The files, relative to the table and not encoded; by default all that `list_written_files` finds.
    counts
        Whether the file of a path counts; by default all do. Others are not even opened.

    Raises
    ------
    DataFileError
        A file is damaged, has other columns than the table's files, or its folder is no partition.
    FileNotFoundError
        A file of `paths` is missing.
    """
    statistics = FooterStatistics(storage, plan)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        if paths is None:
            written = list_written_files(storage, folder)
        else:
            found = pool.map(storage.status, sorted(paths))
            written = [(status.path, status.size, status.modified_ms) for status in found]
        unwanted = [path for path, _, _ in written if not counts(path)]
        written = [file for file in written if counts(file[0])]
        partitions = _Partitions(plan, folder)
        values = [partitions.values(path) for path, _, _ in written]
        texts = list(pool.map(lambda file: statistics.of(file[0], file[1]), written))
    adds: list[AddFile] = []
    for (path, size, time_ms), partition, (rows, text) in zip(written, values, texts, strict=True):
        if not rows:
            unwanted.append(path)
            continue
        adds.append(
            {
                "path": encode(path),
                "partitionValues": dict(partition),
                "size": size,
                "modificationTime": time_ms,
                "dataChange": True,
                "stats": text,
                **({"tags": dict(plan.tags)} if plan.tags else {}),
            }
        )
    return ParquetFiles(adds, sum(rows for rows, _ in texts), unwanted)


class _Partitions:
    """Reads partition values from folder names, each folder once."""

    def __init__(self, plan: WriteSpec, folder: str) -> None:
        fields = {field.name: field for field in plan.schema}
        self._plan = plan
        self._folder = folder.strip("/")
        self._fields = [fields[name] for name in plan.partition_columns]
        self._columns = [physical_name(field, plan.mapping_mode) for field in self._fields]
        self._known: dict[str, dict[str, str | None]] = {}

    def values(self, path: str) -> dict[str, str | None]:
        """The partition values of a file, by physical name, as the log has them."""
        directory = path.rpartition("/")[0]
        if directory not in self._known:
            try:
                self._known[directory] = self._values(directory)
            except DataFileError as error:
                raise DataFileError(
                    f"data file {path}, just written for table {self._plan.table}, cannot become part of it: "
                    f"{error.text}; nothing was committed",
                    parameters={"path": path, "table": self._plan.table},
                ) from error
        return self._known[directory]

    def _values(self, directory: str) -> dict[str, str | None]:
        below = directory.removeprefix(self._folder).strip("/")
        values = partition_folders.parse(below.split("/")) if below else []
        names = [name for name, _ in values]
        if names != self._columns:
            raise DataFileError(
                f"it lies in a folder of {names} instead of the partition columns {self._columns}"
            )
        return {
            name: _text(field, text)
            for name, field, (_, text) in zip(self._columns, self._fields, values, strict=True)
        }


def _text(field: StructField, text: str | None) -> str | None:
    """A value as the log has it, from its text in a folder's name, which has the zone of an instant."""
    refused = partial(
        DataFileError, f"the folder of partition column {field.name} says {text!r}, which is no {field.type}"
    )
    if text and field.type == TIMESTAMP and not _ZONED.search(text):
        raise refused()
    return text_in_log(text, field.type, refused)
