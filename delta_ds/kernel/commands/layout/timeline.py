"""`Timeline`: how many files and bytes a table had at each of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.arrow_buffers import integers, numbers, texts
from delta_ds.kernel.base.card import MOST_ROWS, Card, Shown, size_text, table_of
from delta_ds.kernel.log import history
from delta_ds.kernel.log.commit import Commit, parse_each, read_in_batches
from delta_ds.kernel.log.file_actions import (
    deletion_vector_type,
    file_keys,
    keys_of_files,
    with_believable_sizes,
)
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage


@dataclass(frozen=True)
class Timeline(Shown):
    """How a table grew and shrank; made by `DeltaLog.timeline`.

    Attributes
    ----------
    table
        Its path or URL.
    versions
        One row a version, ascending: `version` int64; `timestamp` timestamp[ms, UTC]; `operation` string, null where
        the commit names none; `files` and `bytes` int64, of what is live at that version; `added_files`,
        `added_bytes`, `removed_files`, `removed_bytes` int64, of what its commit changed, null for the first version
        where that is not version 0.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> DeltaLog("/data/orders").timeline().versions["files"].to_pylist()
    [2, 4]
    """

    table: str
    versions: pa.Table

    def _card(self) -> Card:
        count = self.versions.num_rows
        newest = self.versions.slice(max(0, count - MOST_ROWS))
        # Python's own dates end with the year 9999.
        moments = newest.column("timestamp").cast(pa.int64())
        rows = newest.set_column(1, "timestamp", moments).to_pylist()[::-1]
        found = table_of(
            ("version", "timestamp (UTC)", "operation", "files", "bytes"),
            rows,
            lambda row: (
                str(row["version"]),
                history.as_text(row["timestamp"])[:19],
                row["operation"],
                row["files"],
                size_text(row["bytes"]),
            ),
        )
        title = f"Timeline of {self.table}, {count:,} versions"
        return Card(title, (), (replace(found, left_out=count - len(rows)),))

    def __str__(self) -> str:
        return self._card().text()

    __repr__ = __str__


def timeline(latest: Snapshot, limit: int | None) -> Timeline:
    """The timeline up to a version; see `DeltaLog.timeline`.

    Parameters
    ----------
    latest
        The last version of it.
    limit
        At most so many versions, the newest ones; None for all that the log still holds.

    Raises
    ------
    InvalidOptionError
        The limit is negative.
    LogError
        A file of the log is damaged.
    """
    if limit is not None and limit < 0:
        raise InvalidOptionError(f"limit must not be negative, and is {limit}", parameters={"limit": limit})
    storage = latest.storage
    listing = list_log(storage)
    versions = _unbroken([v for v in history.reachable_versions(listing) if v <= latest.version])
    if limit is not None:
        versions = versions[len(versions) - min(limit, len(versions)) :]
    if not versions:
        return Timeline(storage.url, _EMPTY)
    first = latest if versions[0] == latest.version else open_snapshot(storage, versions[0])
    changes = _Changes(storage, first)
    times = history.file_times(listing, history.reachable_versions(listing))
    inside = history.in_commit_timestamps(latest.table_state)
    moments: list[int] = []
    operations: list[str | None] = []
    for commits in read_in_batches(storage, [listing.commits[v] for v in versions]):
        moments += [history.time_of(commit, times, inside) for commit in commits]
        operations += [_operation(commit) for commit in commits]
        changes.take([commit for commit in commits if commit.version > versions[0]])
    counted = changes.counted(versions)
    return Timeline(
        storage.url,
        pa.table(
            {
                "version": integers(versions),
                "timestamp": integers(moments).view(pa.timestamp("ms", "UTC")),
                "operation": _texts(operations),
                **counted,
            }
        ),
    )


def _unbroken(versions: list[int]) -> list[int]:
    """The versions after the last gap: nobody knows what a commit that is gone has changed."""
    gaps = [n for n in range(1, len(versions)) if versions[n] != versions[n - 1] + 1]
    return versions[gaps[-1] :] if gaps else versions


_COUNTS = ("files", "bytes", "added_files", "added_bytes", "removed_files", "removed_bytes")
_EMPTY = pa.Table.from_batches(
    [],
    pa.schema(
        [
            ("version", pa.int64()),
            ("timestamp", pa.timestamp("ms", "UTC")),
            ("operation", pa.string()),
            *[(name, pa.int64()) for name in _COUNTS],
        ]
    ),
)


def _operation(commit: Commit) -> str | None:
    found = commit.info.get("operation")
    return found if isinstance(found, str) else None


def _texts(values: Sequence[str | None]) -> pa.Array:
    filled = texts([value or "" for value in values])
    return pc.if_else(pc.equal(filled, texts([""])[0]), pa.nulls(1, pa.string())[0], filled)


@dataclass(slots=True)
class _Changes:
    """The file actions after a version: keys (path and deletion vector), versions, and sizes; -1 for a remove."""

    storage: Storage
    first: Snapshot
    keys: list[pa.Array] = field(default_factory=list)
    versions: list[Any] = field(default_factory=list)
    sizes: list[Any] = field(default_factory=list)

    def take(self, commits: Sequence[Commit]) -> None:
        import numpy as np

        for commit in commits:
            commit.check_whole()
        actions, counts = parse_each(commits, _schema())
        if not actions.num_rows:
            return
        keys = file_keys(actions, self.storage).combine_chunks()
        told = pa.table({"size": pc.struct_field(actions["add"], "size").fill_null(0)})
        size = with_believable_sizes(told)["size"]
        sizes = pc.if_else(actions["add"].is_valid(), size, -1).combine_chunks()
        versions = np.repeat([commit.version for commit in commits], counts)
        named = keys.is_valid()
        self.keys.append(_one(keys.filter(named)))
        self.sizes.append(numbers(sizes.filter(named)))
        self.versions.append(versions[np.asarray(named)])

    def counted(self, versions: Sequence[int]) -> dict[str, pa.Array]:
        """The columns of `Timeline.versions` that count files and bytes."""
        import numpy as np

        live = self.first.live_files().table
        known = live["size"].fill_null(0).combine_chunks()
        first = versions[0]
        keys = pa.concat_arrays([_one(keys_of_files(live, self.storage).combine_chunks()), *self.keys])
        at = np.concatenate([np.full(live.num_rows, first), *self.versions]).astype(np.int64)
        size = np.concatenate([numbers(known), *self.sizes]).astype(np.int64)
        code = np.asarray(pc.dictionary_encode(keys).indices) if len(keys) else np.empty(0, np.int32)
        # A file's actions one after the other, the oldest first: what each changes is the difference to the one before.
        order = np.argsort(code, kind="stable")
        code, at, size = code[order], at[order], size[order]
        again = np.concatenate([[False], code[1:] == code[:-1]]) if len(code) else np.empty(0, bool)
        before = np.where(again, np.roll(size, 1), -1)
        was, is_ = before >= 0, size >= 0
        gained = np.where(is_, size, 0) - np.where(was, before, 0)
        place = at - first
        count = len(versions)

        def total(of: Any, weights: Any = None) -> Any:
            given = None if weights is None else weights[of]
            return np.rint(np.bincount(place[of], given, minlength=count)).astype(np.int64)

        came, went = is_ & ~was, was & ~is_
        found = {
            "files": np.cumsum(total(came) - total(went)),
            "bytes": np.cumsum(total(np.ones(len(at), bool), gained)),
            "added_files": total(came),
            "added_bytes": total(came, size),
            "removed_files": total(went),
            "removed_bytes": total(went, before),
        }
        return {name: self._since(values, name, first) for name, values in found.items()}

    @staticmethod
    def _since(values: Any, name: str, first: int) -> pa.Array:
        column = integers(values)
        if first == 0 or name in ("files", "bytes"):
            return column
        return pa.concat_arrays([pa.nulls(1, pa.int64()), column.slice(1)])


def _one(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def _schema() -> pa.Schema:
    key = [("path", pa.string()), ("deletionVector", deletion_vector_type())]
    return pa.schema([("add", pa.struct([*key, ("size", pa.int64())])), ("remove", pa.struct(key))])
