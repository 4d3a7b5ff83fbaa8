"""What the log says of the commits that wrote rows, looked up by the versions that rows name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.log import history
from delta_ds.kernel.log.commit import Commit, read_commits, read_in_batches
from delta_ds.kernel.log.segment import LogFileGoneError, list_log
from delta_ds.kernel.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.filenames import LogFile
    from delta_ds.kernel.log.history import InCommitTimestamps
    from delta_ds.kernel.storage.filesystem import Storage

ROW_ID, COMMIT_VERSION = "_row_id", "_commit_version"


def _texts(*names: str) -> StructType:
    return StructType(tuple(StructField(name, STRING) for name in names))


# What a commit says of itself: the column, and the key of the history that it comes from.
_FACTS: tuple[tuple[StructField, str], ...] = (
    (StructField("_commit_timestamp", TIMESTAMP), "timestamp"),
    (StructField("_commit_operation", STRING), "operation"),
    (StructField("_commit_user_id", STRING), "userId"),
    (StructField("_commit_user_name", STRING), "userName"),
    (StructField("_commit_user_metadata", STRING), "userMetadata"),
    (StructField("_commit_engine_info", STRING), "engineInfo"),
    (StructField("_commit_txn_id", STRING), "txnId"),
    (StructField("_commit_application", _texts(*history.APPLICATION_FIELDS)), "application"),
    (StructField("_commit_job", _texts(*history.JOB_FIELDS)), "job"),
    (StructField("_commit_notebook", _texts(*history.NOTEBOOK_FIELDS)), "notebook"),
)
COMMIT_FIELDS = StructType(tuple(field for field, _ in _FACTS))
BLAME_FIELDS = StructType((StructField(ROW_ID, LONG), StructField(COMMIT_VERSION, LONG), *COMMIT_FIELDS))


class CommitFacts:
    """The commits of a log by version, each read when a row first names it.

    What is kept is a few texts a commit, not its files.

    Parameters
    ----------
    storage
        The table's.
    inside
        Since when commits tell their time themselves; None: files do.
    """

    def __init__(self, storage: Storage, inside: InCommitTimestamps | None) -> None:
        self._storage = storage
        self._inside = inside
        self._files: Mapping[int, LogFile] = {}
        self._times: Mapping[int, int] = {}
        self._rows: dict[int, int] = {}
        self._table: pa.Table | None = None

    def columns(self, versions: pa.Array) -> list[pa.Array]:
        """The columns of `COMMIT_FIELDS` for rows by their versions, int64.

        Null where the version is null; where the log no longer has its commit; and where the commit does not say.
        """
        import pyarrow.compute as pc

        from delta_ds.kernel.arrow_buffers import integers

        distinct = pc.unique(versions).drop_null()
        self._read([version for version in distinct.to_pylist() if version not in self._rows])
        # Equal versions lie together: each is looked up once a batch, and not once a row.
        known = integers([self._rows[version] for version in distinct.to_pylist()])
        places = pc.take(known, pc.index_in(versions, value_set=distinct))
        assert self._table is not None  # read above
        return [_taken(column, places) for column in self._table.columns]

    def _read(self, versions: Sequence[int]) -> None:
        """Add commits to what is known."""
        import pyarrow as pa

        if self._table is None:
            listing = list_log(self._storage)
            self._files = listing.commits
            self._times = history.file_times(listing, sorted(listing.commits))
            self._table = arrow_schema(COMMIT_FIELDS).empty_table()
        if not versions:
            return
        entries: dict[int, dict[str, Any]] = {version: {} for version in versions}
        for commit in self._commits([self._files[v] for v in sorted(versions) if v in self._files]):
            time = history.time_of(commit, self._times, self._inside)
            entries[commit.version] = history.entry(commit.version, time, commit.info)
        rows = [{field.name: entry.get(key) for field, key in _FACTS} for entry in entries.values()]
        self._rows.update(zip(entries, range(len(self._rows), len(self._rows) + len(entries)), strict=True))
        more = pa.Table.from_pylist(rows, schema=self._table.schema)
        self._table = pa.concat_tables([self._table, more]).combine_chunks()

    def _commits(self, files: Sequence[LogFile]) -> Iterator[Commit]:
        """Commits that are there; log clean-up may take some while this reads."""
        try:
            for batch in read_in_batches(self._storage, files):
                yield from batch
        except LogFileGoneError:
            for file in files:
                yield from self._commit(file)

    def _commit(self, file: LogFile) -> list[Commit]:
        try:
            return read_commits(self._storage, [file])
        except LogFileGoneError:
            return []


def _taken(column: pa.ChunkedArray, places: pa.Array) -> pa.Array:
    import pyarrow as pa

    if column.null_count == len(column) or not len(places):
        return pa.nulls(len(places), column.type)  # as most columns are: nothing has to be gathered
    found = column.take(places)
    return found.chunk(0) if found.num_chunks == 1 else pa.concat_arrays(found.chunks)
