"""`Commit`: the file of one version, parsed on first use; and many of them, read and parsed together.

Source: PROTOCOL.md, "Delta Log Entries".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, overload

from delta_ds.kernel.format.actions import (
    SINGLE_ACTIONS,
    Action,
    CommitInfo,
    DomainMetadata,
    Metadata,
    MetadataBody,
    Protocol,
    ProtocolBody,
    SetTransaction,
)
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.json_actions import cut_off, find_actions, is_whole, parse_file_actions
from delta_ds.kernel.log.segment import read_log_files
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of commits read and parsed at once: bounds memory on long logs without checkpoints.
_BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class Commit:
    """What the file of a version holds, or a compaction of several versions.

    File actions of many commits are parsed together: see `parse_commits`.

    Attributes
    ----------
    storage
        The table's.
    file
        Its name and what that says.
    data
        Its bytes.
    """

    storage: Storage
    file: LogFile
    data: bytes

    @property
    def version(self) -> int:
        return self.file.version

    @property
    def where(self) -> str:
        """The file and the table, for messages."""
        return full_name(self.storage, self.file)

    @property
    def is_whole(self) -> bool:
        """Whether the last line is not cut off."""
        return is_whole(self.data)

    def check_whole(self) -> None:
        """Refuse a file whose last line is cut off, without parsing it.

        Raises
        ------
        CorruptLogFileError
            It is cut off, or empty.
        """
        if not self.is_whole:
            raise cut_off(self.where)

    def find(self, *names: str) -> list[Action]:
        """The actions that have one of the names, in order; each call reads the file.

        Raises
        ------
        CorruptLogFileError
            One is damaged.
        """
        return find_actions(self.data, names, self.where)

    @cached_property
    def _bodies(self) -> dict[str, list[Any]]:
        """What the actions that are no file actions say, by the name of the action."""
        found: dict[str, list[Any]] = {}
        for action in self.find("commitInfo", *SINGLE_ACTIONS):
            for name, body in action.items():
                if body is not None:
                    found.setdefault(name, []).append(body)
        return found

    @overload
    def bodies(self, name: Literal["txn"]) -> list[SetTransaction]: ...

    @overload
    def bodies(self, name: Literal["domainMetadata"]) -> list[DomainMetadata]: ...

    @overload
    def bodies(self, name: Literal["commitInfo"]) -> list[CommitInfo]: ...

    @overload
    def bodies(self, name: Literal["protocol"]) -> list[ProtocolBody]: ...

    @overload
    def bodies(self, name: Literal["metaData"]) -> list[MetadataBody]: ...

    def bodies(self, name: str) -> Sequence[Mapping[str, Any]]:
        """What its actions of one name say, in order, for names of actions that are no file actions.

        Raises
        ------
        CorruptLogFileError
            One of them is damaged.
        """
        return self._bodies.get(name, [])

    @property
    def info(self) -> CommitInfo:
        """Its `commitInfo`; empty where it has none."""
        found = self.bodies("commitInfo")
        return found[0] if found else {}

    @cached_property
    def protocol(self) -> Protocol | None:
        """What it changes the protocol to; None for no change."""
        found = self.bodies("protocol")
        return Protocol.from_action(found[0], self.where) if found else None

    @cached_property
    def metadata(self) -> Metadata | None:
        """What it changes the metadata to; None for no change."""
        found = self.bodies("metaData")
        return Metadata.from_action(found[0], self.where) if found else None


def full_name(storage: Storage, file: LogFile) -> str:
    """A file of the log and its table, for messages."""
    return f"{file.path} of {storage.url}"


def read_commits(storage: Storage, files: Sequence[LogFile]) -> list[Commit]:
    """Commits by their files, read together.

    Raises
    ------
    LogFileGoneError
        One is not there any more.
    """
    contents = read_log_files(storage, files)
    return [Commit(storage, file, data) for file, data in zip(files, contents, strict=True)]


def read_in_batches(storage: Storage, files: Sequence[LogFile]) -> Iterator[list[Commit]]:
    """Commits in the order of their files; the next batch is read while the caller works on one.

    Raises
    ------
    LogFileGoneError
        One is not there any more.
    """
    from concurrent.futures import ThreadPoolExecutor

    batches = list(in_batches(files))
    if len(batches) < 2:
        yield from (read_commits(storage, batch) for batch in batches)
        return
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(read_commits, storage, batches[0])
        for _, following in zip_longest(batches, batches[1:]):
            commits = coming.result()
            if following is not None:
                coming = reader.submit(read_commits, storage, following)
            yield commits


def in_batches(files: Sequence[LogFile], most: int | None = None) -> Iterator[list[LogFile]]:
    """Files in order, in batches of bounded size, so that only one batch of text is in memory."""
    batch: list[LogFile] = []
    size = 0
    for file in files:
        if batch and (size + file.status.size > _BATCH_BYTES or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.status.size
    if batch:
        yield batch


def parse_commits(commits: Sequence[Commit], schema: pa.Schema) -> list[pa.Table]:
    """The file actions of commits in one columnar parse; see `json_actions.parse_file_actions`."""
    return parse_file_actions([(commit.where, commit.data) for commit in commits], schema)


def parse_each(commits: Sequence[Commit], schema: pa.Schema) -> tuple[pa.Table, list[int]]:
    """The same in one table, and how many of its rows each commit has: one an action, of whatever kind."""
    import pyarrow as pa

    if not commits:
        return pa.Table.from_batches([], schema), []
    together = pa.concat_tables(parse_commits(commits, schema))
    counts = [_lines(commit.data) for commit in commits]
    if together.num_rows != sum(counts):
        # Blank lines in between: the rows cannot be told apart by counting.
        tables = [pa.concat_tables(parse_commits([commit], schema)) for commit in commits]
        return pa.concat_tables(tables), [table.num_rows for table in tables]
    return together, counts


def _lines(data: bytes) -> int:
    """The actions of a file if it has no blank lines; with them, more than there are."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
