"""A table, what its commits say, and everything that may be derived from them: for tests of what is read meanwhile."""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_ds import DeltaLog
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.cleanup import clean_up
from delta_ds.kernel.log.filenames import LAST_CHECKPOINT, LOG_DIRECTORY, SIDECAR_DIRECTORY, Kind, parse_name
from delta_ds.kernel.log.segment import find_segment, list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.post_commit import write_checkpoint

_DAY_MS = 86_400_000
_SINGLE = ("protocol", "metaData")
Key = tuple[str, str]


class DerivedTable:
    """A table of the column `id`, a commit after the other, with all that is derived from them in the hands of a test.

    Attributes
    ----------
    rows
        By version the ids that it holds.
    statistics
        By path and deletion vector what the commits say of each file.
    """

    def __init__(self, path: str, **properties: str) -> None:
        self.path = path
        self.log = DeltaLog(path)
        self.storage = self.log.storage
        self.rows: list[list[int]] = []
        self.statistics: dict[Key, Any] = {}
        self._properties = {"delta.checkpointInterval": "1000", **properties}

    def copied_to(self, path: str) -> DerivedTable:
        """The same table elsewhere, as `cp -r` makes it."""
        fs, root = fsspec.core.url_to_fs(path)
        fs.makedirs(root.rpartition("/")[0], exist_ok=True)
        fs.put(self.path, root, recursive=True)
        copy = DerivedTable(path)
        copy.rows, copy.statistics = list(self.rows), dict(self.statistics)
        return copy

    @property
    def version(self) -> int:
        return len(self.rows) - 1

    def append(self, *ids: int) -> None:
        options = {} if self.rows else self._properties
        DeltaLog(self.path).write(pa.table({"id": pa.array(ids, pa.int64())}), options=options)
        self.committed([*(self.rows[-1] if self.rows else []), *ids])

    def delete(self, number: int) -> None:
        delete(DeltaLog(self.path), f"id = {number}")
        self.committed([n for n in self.rows[-1] if n != number])

    def committed(self, rows: list[int]) -> None:
        """A commit was made, after which these are the rows."""
        version = len(self.rows)
        if not self.storage.exists(_commit(version)):
            return  # nothing was to be deleted
        self.rows.append(sorted(rows))
        for action in self._actions(version):
            add = action.get("add")
            if add is not None:
                self.statistics[_key(add)] = json.loads(add["stats"])

    def _actions(self, version: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.storage.read(_commit(version)).splitlines()]

    # --- what is read

    def check(self, snapshot: Snapshot, *, stats: bool = True) -> None:
        """Whatever way a version is read, it is what its commits say."""
        rows = self.rows[snapshot.version]
        for number in (rows[0], rows[len(rows) // 2], rows[-1], -5):
            assert ids(snapshot, f"id = {number}") == [n for n in rows if n == number]
        assert ids(snapshot, None) == rows
        if stats:
            found = {_key(file): file["stats"] for file in Scan(snapshot).files().to_pylist()}
            assert {key: text and json.loads(text) for key, text in found.items()} == {
                key: self.statistics[key] for key in found
            }

    # --- what is derived

    def checkpoint(self, version: int | None = None) -> None:
        write_checkpoint(self.storage, find_segment(self.storage, version))

    def checkpoint_files(self, *, sidecars: bool = True) -> list[str]:
        """The Parquet files of all checkpoints."""
        statuses = [s.path for s in self.storage.list_from(LOG_DIRECTORY)]
        if sidecars and self.storage.exists(SIDECAR_DIRECTORY):
            statuses += [s.path for s in self.storage.list_from(SIDECAR_DIRECTORY)]
        return [path for path in statuses if path.endswith(".parquet")]

    def shuffle(
        self,
        path: str,
        random: Random,
        put: Callable[[str, bytes], None] | None = None,
        **form: Any,
    ) -> None:
        """A file of a checkpoint as another engine may write it: the same rows in another order, other row groups."""
        table = pq.read_table(io.BytesIO(self.storage.read(path)))
        order = list(range(table.num_rows))
        random.shuffle(order)
        sink = io.BytesIO()
        rows = table.take(pa.array(order, pa.int64()))
        pq.write_table(rows, sink, **{"row_group_size": random.randint(1, table.num_rows + 1), **form})
        (put or self.storage.write)(path, sink.getvalue())

    def shuffle_unnoticed(self, random: Random) -> None:
        """The same, with as many bytes, in the same row groups, and the same footer."""
        for path in self.checkpoint_files():
            table = pq.read_table(io.BytesIO(self.storage.read(path)))
            adds = np.flatnonzero(table["add"].is_valid()) if "add" in table.column_names else []
            order = np.arange(table.num_rows)
            order[adds] = random.sample(list(adds), len(adds))
            sink = io.BytesIO()
            pq.write_table(
                table.take(order), sink, compression="none", use_dictionary=False, write_statistics=False
            )
            self.storage.write(path, sink.getvalue())

    def split(self, random: Random) -> None:
        """A classic checkpoint in two parts, as old versions of engines write them."""
        for path in self.checkpoint_files(sidecars=False):
            version, rest = path[len(LOG_DIRECTORY) + 1 :].split(".", 1)
            if rest != "checkpoint.parquet":
                continue
            table = pq.read_table(io.BytesIO(self.storage.read(path)))
            at = random.randint(0, table.num_rows)
            for number, part in enumerate([table.slice(0, at), table.slice(at)], 1):
                sink = io.BytesIO()
                pq.write_table(part, sink, row_group_size=3)
                name = f"{version}.checkpoint.{number:010d}.{2:010d}.parquet"
                self.storage.write(f"{LOG_DIRECTORY}/{name}", sink.getvalue())
            self.storage.delete([path])

    def move_to_sidecar(self) -> None:
        """Classic checkpoints become such with sidecars, of the same names."""
        for path in self.checkpoint_files(sidecars=False):
            table = pq.read_table(io.BytesIO(self.storage.read(path)))
            if not path.endswith(".checkpoint.parquet") or "sidecar" in table.column_names:
                continue
            name = f"{uuid.uuid4()}.parquet"
            of_files = pc.or_(pc.is_valid(table["add"]), pc.is_valid(table["remove"]))
            sink = io.BytesIO()
            pq.write_table(table.filter(of_files).select(["add", "remove"]), sink)
            self.storage.write(f"{SIDECAR_DIRECTORY}/{name}", sink.getvalue())
            sidecar = {"path": name, "sizeInBytes": len(sink.getvalue()), "modificationTime": 0}
            named = pa.Table.from_pylist([{"sidecar": sidecar}])
            sink = io.BytesIO()
            others = table.filter(pc.invert(of_files))
            pq.write_table(pa.concat_tables([others, named], promote_options="default"), sink)
            self.storage.write(path, sink.getvalue())

    def compact(self, first: int, last: int) -> None:
        """The commits of a range as one file."""
        kept: dict[Any, dict[str, Any]] = {}
        for version in range(first, last + 1):
            for action in self._actions(version):
                ((kind, body),) = action.items()
                if kind in ("add", "remove"):
                    kept[_key(body)] = action
                elif kind in _SINGLE:
                    kept[kind] = action
        data = b"".join(json.dumps(action).encode() + b"\n" for action in kept.values())
        self.storage.write(f"{LOG_DIRECTORY}/{first:020d}.{last:020d}.compacted.json", data)

    def forget_checkpoints(self) -> None:
        """No checkpoint any more, where the commits are all there."""
        listing = list_log(self.storage)
        if 0 in listing.commits:
            found = [s.path for s in self.storage.list_from(LOG_DIRECTORY)]
            self.storage.delete([path for path in found if ".checkpoint." in path])

    def forget_older_checkpoints(self) -> None:
        """Of the checkpoints of each version only one, with its sidecars, as clean-up leaves them."""
        listing = list_log(self.storage)
        newest = {c.version: c for c in listing.checkpoints}
        gone = [f.path for c in listing.checkpoints if newest[c.version] is not c for f in c.files]
        self.storage.delete(gone)

    def hint(self, random: Random) -> None:
        """Another `_last_checkpoint`, or none."""
        texts = [b"{", b'{"version":0,"size":1}', b'{"version":77,"size":1}', b'{"version":1,"x":"\\ud800"}']
        self.storage.delete([LAST_CHECKPOINT])
        if random.random() < 0.8:
            self.storage.write(LAST_CHECKPOINT, random.choice(texts))

    def clean(self) -> None:
        """All goes that the newest checkpoint replaces."""
        now = max(s.modified_ms for s in self.storage.list_from(LOG_DIRECTORY)) + 3 * _DAY_MS
        clean_up(self.storage, now, retention=timedelta(0))

    def forget_checksums(self) -> None:
        found = [s for s in self.storage.list_from(LOG_DIRECTORY) if parse_name(s) is not None]
        self.storage.delete([s.path for s in found if parse_name(s).kind is Kind.CHECKSUM])  # type: ignore[union-attr]


def ids(snapshot: Snapshot, predicate: str | None) -> list[int]:
    return sorted(Scan(snapshot, predicate, ["id"]).to_arrow()["id"].to_pylist())


def put_in_place(table: DerivedTable) -> Callable[[str, bytes], None]:
    """Writes over the bytes of a local file, as a copy does: whoever has it open sees others."""

    def put(path: str, data: bytes) -> None:
        with open(os.path.join(table.path, path), "r+b") as file:
            file.write(data)
            file.truncate()

    return put


def _commit(version: int) -> str:
    return f"{LOG_DIRECTORY}/{version:020d}.json"


def _key(body: Mapping[str, Any]) -> Key:
    vector = body.get("deletionVector") or {}
    return body["path"], f"{vector.get('pathOrInlineDv')}@{vector.get('offset')}"
