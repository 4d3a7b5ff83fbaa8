"""`Blame`: the rows of a version, each with the commit that last wrote it.

Source: PROTOCOL.md, "Row Tracking", "Reader Requirements for Row Tracking"; protocol-checklist RT-R-*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.tables import BLAME_COLUMNS_TAKEN, ROW_TRACKING_NOT_ENABLED
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.files.read.file_columns import METADATA_COLUMN
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import DEFAULT_AHEAD_BYTES, Scan
from delta_ds.kernel.format.expressions.tree import columns as columns_of
from delta_ds.kernel.format.features import ROW_TRACKING
from delta_ds.kernel.format.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType, arrow_schema
from delta_ds.kernel.log import history
from delta_ds.kernel.log.commit import Commit, read_commits, read_in_batches
from delta_ds.kernel.log.history import in_commit_timestamps
from delta_ds.kernel.log.segment import LogFileGoneError, list_log
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.read.plan import FileSlice
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.filenames import LogFile
    from delta_ds.kernel.log.history import InCommitTimestamps
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage

# --- what the log says of the commits that wrote rows, looked up by the versions that rows name

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

        from delta_ds.kernel.base.arrow_buffers import integers

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
        entries: dict[int, Mapping[str, Any]] = {version: {} for version in versions}
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


# --- `Blame`: the rows of a version, each with the commit that last wrote it

_TRACKED = ("row_id", "row_commit_version")


class Blame:
    """The rows of a version of a table, each with the commit that last wrote it.

    Attributes
    ----------
    schema
        The columns asked for, then `_row_id`, `_commit_version`, `_commit_timestamp`, `_commit_operation`,
        `_commit_user_id`, `_commit_user_name`, `_commit_user_metadata`, `_commit_engine_info`, `_commit_txn_id`,
        `_commit_application`, `_commit_job`, `_commit_notebook`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        timezone: str | None = "UTC",
    ) -> None:
        state = snapshot.table_state
        if not state.enabled(ROW_TRACKING):
            raise ROW_TRACKING_NOT_ENABLED(table=state.table, version=state.version)
        self.scan = Scan(snapshot, predicate, columns, timezone, _TRACKED)
        own = {METADATA_COLUMN, *BLAME_FIELDS.names}
        read = _read_by(self.scan.predicate) & {METADATA_COLUMN}
        taken = [*(name for name in self.scan.schema.names if name.lower() in own), *read]
        if taken:
            raise BLAME_COLUMNS_TAKEN(table=state.table, columns=taken)
        self.schema = StructType((*self.scan.schema.fields, *BLAME_FIELDS))

    def to_batches(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
        """The rows as batches, file by file in log order."""
        reader = self.reader()
        for batch in self.scan.to_batches(max_bytes):
            yield reader.with_commits(self.scan.snapshot.storage, batch)

    def reader(self) -> BlameReader:
        """What tasks need to read slices of `scan`; it can be pickled."""
        return BlameReader(self)

    def __repr__(self) -> str:
        return f"Blame({self.scan.snapshot!r})"


class BlameReader:
    """Reads slices of a blame, in this process or another one."""

    def __init__(self, blame: Blame) -> None:
        state = blame.scan.snapshot.table_state
        self._plan = blame.scan.plan
        self._inside = in_commit_timestamps(state)
        self._schema = arrow_schema(blame.schema)
        self._facts: CommitFacts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_facts": None}

    def read(
        self, storage: Storage, slices: Sequence[FileSlice], timezone: str | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of slices, without those that the predicate is known not to hold for.

        A predicate that cannot be evaluated on some rows leaves these to whoever asked: of a condition with several
        parts an engine may never come to this one.

        Parameters
        ----------
        timezone
            As in `ReadPlan`.
        """
        plan = replace(self._plan, timezone=timezone)
        for batch in read_slices(storage, plan, slices):
            rows = batch if plan.predicate is None else _without_others(batch, plan.predicate)
            if rows.num_rows:
                yield self.with_commits(storage, rows)

    def with_commits(self, storage: Storage, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the scan with what the log says of its rows' commits in place of `_metadata`."""
        import pyarrow as pa

        if self._facts is None:
            self._facts = CommitFacts(storage, self._inside)
        last = batch.num_columns - 1
        ids, versions = batch.column(last).flatten()
        columns = [*batch.columns[:last], ids, versions, *self._facts.columns(versions)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _without_others(batch: pa.RecordBatch, predicate: Expression) -> pa.RecordBatch:
    from delta_ds.kernel.format.expressions.evaluate import evaluate

    try:
        matches = evaluate(predicate, batch)
    except PredicateError:
        return batch
    return batch.filter(matches)


def _read_by(predicate: Expression | None) -> set[str]:
    return set() if predicate is None else {column.path[0].lower() for column in columns_of(predicate)}
