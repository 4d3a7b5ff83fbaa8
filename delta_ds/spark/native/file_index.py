"""A Spark `FileIndex` in Python: partition and data filters choose the files of a version.

Spark asks once for every scan of a query, when it runs. Partition filters are not evaluated again by Spark, so
what is listed satisfies them exactly; data filters are a hint.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from delta_ds.exceptions import DeltaError, PredicateError
from delta_ds.kernel.arrow_buffers import integers
from delta_ds.kernel.data.values.deletion_vector import read_positions
from delta_ds.kernel.expressions.arrays import array_of
from delta_ds.kernel.expressions.bind import bind
from delta_ds.kernel.expressions.tree import Expression, conjunction
from delta_ds.kernel.scan.null_checks import check_not_null
from delta_ds.kernel.scan.partitions import PartitionTuples, partition_tuples
from delta_ds.kernel.scan.scan import vector_descriptor
from delta_ds.kernel.scan.skipping import prune, row_numbers
from delta_ds.kernel.schema.types import BINARY, INTEGER, StructField
from delta_ds.spark.native.columns import ScanColumns, spark_schema
from delta_ds.spark.native.file_listing import list_files, path_bytes
from delta_ds.spark.native.jvm import Jvm, errors_to_jvm

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from delta_ds.kernel.snapshot import Snapshot

logger = logging.getLogger("delta_ds")

DELETED = "__pydelta_dv"
FILE_NUMBER = "__pydelta_file"


class DeltaFileIndex:
    """The files of a version; implements Spark's `FileIndex`.

    Attributes
    ----------
    snapshot
        The version.
    columns
        How its columns are read.
    identity
        What Spark goes by when it asks whether two scans are the same: table, version and all that is pinned.
    live, rows
        The live files of the version, and the rows of those that are scanned.
    schema, hidden
        The partition columns that Spark sees, and those of them that the table has not: `DELETED`, `FILE_NUMBER`.
    last_listed
        How many files the last scan read; None before the first.
    """

    _alive: ClassVar[WeakValueDictionary[str, DeltaFileIndex]] = WeakValueDictionary()

    def __init__(
        self,
        jvm: Jvm,
        root: str,
        snapshot: Snapshot,
        columns: ScanColumns,
        *,
        rows: pa.Array | None = None,
        numbered: bool = False,
        timezone: str | None = None,
    ) -> None:
        self._jvm = jvm
        self._root = root
        self.snapshot = snapshot
        self.columns = columns
        self.last_listed: int | None = None
        self._all = rows is None
        self._timezone = timezone
        self.live = snapshot.live_files()
        self.rows = row_numbers(self.live.num_rows) if rows is None else rows
        self._tuples: dict[str, PartitionTuples] = {}
        vectors = self.live.table["deletionVector"]
        self.has_deletions = vectors.null_count < len(vectors)
        hidden = [StructField(DELETED, BINARY)] if self.has_deletions else []
        self.hidden = (*hidden, *([StructField(FILE_NUMBER, INTEGER)] if numbered else []))
        self._numbered = numbered
        self.schema = spark_schema([*columns.partitions, *self.hidden])
        self._json = self.schema.json()
        # Files that were found to have no nulls where the schema promises so.
        self._promises = any(not f.nullable for f in snapshot.schema)
        self._kept_promises = np.zeros(self.live.num_rows, np.bool_)
        self.identity = self._identify()
        self._alive[self.identity] = self

    @classmethod
    def of_identity(cls, text: str) -> DeltaFileIndex | None:
        """The index of an identity; None if it is gone."""
        return cls._alive.get(text)

    def _identify(self) -> str:
        snapshot = self.snapshot
        # A table that was deleted and made anew may have the same versions: its id and the commit's time differ.
        parts = [
            f"{snapshot.storage.url}@v{snapshot.version}",
            snapshot.metadata.id,
            str(snapshot.segment.last_commit.status.modified_ms),
        ]
        if not self._all:
            parts.append(f"files:{hash(self.rows.to_numpy().tobytes()):x}")
        if self._numbered:
            parts.append("numbered")
        if self._timezone is not None:
            parts.append(self._timezone)
        return f"pydelta[{' '.join(parts)}]"

    # --- FileIndex

    def rootPaths(self) -> Any:
        # Two, as INSERT INTO writes past the log into the folder of a partitioned relation that has only one.
        commit = f"{self._root}_delta_log/{self.snapshot.version:020d}.json"
        return self._jvm.seq([self._jvm.Path(path) for path in (self._root, commit)])

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        with errors_to_jvm(self._jvm):
            return self._list(partition_filters, data_filters)

    def inputFiles(self) -> Any:
        paths = self.live.table["path"].take(self.rows)
        return self._jvm.listing.paths(self._root, path_bytes(paths, self.snapshot.storage))

    def refresh(self) -> None:
        """Nothing: a version never changes."""

    def sizeInBytes(self) -> int:
        import pyarrow.compute as pc

        return int(pc.sum(self.live.table["size"].take(self.rows)).as_py() or 0)

    def partitionSchema(self) -> Any:
        return self._jvm.struct(self._json)

    # Default methods of the interface are asked here as well: py4j does not fall through to them.

    def metadataOpsTimeNs(self) -> Any:
        return self._jvm.none

    def isTimeTravel(self) -> bool:  # since 4.2
        return False

    def toString(self) -> str:
        return self.identity

    def hashCode(self) -> int:
        return hash(self.identity) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        # The other one is a handle of the JVM on a Python object, or on anything else.
        return other is not None and bool(other.toString() == self.identity)

    class Java:
        implements: ClassVar[list[str]] = ["org.apache.spark.sql.execution.datasources.FileIndex"]

    # --- listing

    def _list(self, partition_filters: Any, data_filters: Any) -> Any:
        zone = self._timezone or str(self._jvm.spark.conf.get("spark.sql.session.timeZone"))
        rows = self._matching_rows(partition_filters, data_filters, zone)
        if self._promises:
            self._check_promises(rows)
        groups = _groups(self._codes(zone).take(rows), rows, self._own_directory(rows))
        values = self._values(groups, zone)
        if values is None:
            self.last_listed = len(groups.rows)
            return self._directories(groups, self._jvm.row_array([self._jvm.empty_row]))
        internal = self._jvm.internal_rows(values, self.schema)
        keep = self._matching_directories(internal, partition_filters)
        if keep is not None:
            groups = groups.only(np.frombuffer(keep, "<i4").astype(np.int64))
            internal = self._jvm.listing.pick(internal, keep)
        self.last_listed = len(groups.rows)
        return self._directories(groups, internal)

    def _check_promises(self, rows: pa.Array) -> None:

        numbers = np.asarray(rows, np.int64)
        new = numbers[~self._kept_promises[numbers]]
        check_not_null(self.snapshot, integers(new))
        self._kept_promises[new] = True

    def _directories(self, groups: _Groups, internal: Any) -> Any:
        if not len(groups.counts):
            return self._jvm.seq([])

        files = self.live.table.select(["path", "size", "modificationTime"]).take(integers(groups.rows))
        return list_files(
            self._jvm.listing, self._root, internal, groups.counts, files, self.snapshot.storage
        )

    def _matching_rows(self, partition_filters: Any, data_filters: Any, zone: str) -> pa.Array:
        """The rows of live files that may match, ascending."""
        from delta_ds.spark.native.catalyst.filters import translate

        found = [
            part
            for filters in (partition_filters, data_filters)
            for part in translate(filters, self.columns.logical, zone)
        ]
        pruning = prune(
            self.live,
            conjunction([bound for part in found if (bound := self._bound(part, zone)) is not None]),
            schema=self.snapshot.schema,
            partition_columns=self.snapshot.partition_columns,
            mapping_mode=self.snapshot.mapping_mode,
            timezone=zone,
            counts_nan=lambda: self.snapshot.statistics_count_nan,
        )
        if self._all:
            return pruning.rows
        import pyarrow.compute as pc

        return self.rows.filter(pc.is_in(self.rows, pruning.rows))

    def _bound(self, part: Expression, zone: str) -> Expression | None:
        try:
            return bind(part, self.snapshot.schema, zone)
        except PredicateError as error:
            logger.warning("filter_not_used_for_skipping filter=%s reason=%s", part, error.text)
            return None

    def _partition_tuples(self, zone: str) -> PartitionTuples:
        if zone not in self._tuples:
            wanted = {f.name: (f.name, f.type) for f in self.columns.partitions}
            self._tuples[zone] = partition_tuples(self.live, wanted, frozenset(), zone)
        return self._tuples[zone]

    def _codes(self, zone: str) -> pa.Array:
        return self._partition_tuples(zone).code

    def _own_directory(self, rows: pa.Array) -> npt.NDArray[np.bool_] | None:
        """Which files have hidden values of their own; None for none."""
        if self._numbered:
            return np.ones(len(rows), np.bool_)
        if not self.has_deletions:
            return None
        return np.asarray(self.live.table["deletionVector"].take(rows).is_valid())

    def _values(self, groups: _Groups, zone: str) -> pa.Table | None:
        """The partition values of each directory, hidden ones included; None where there are no such columns."""
        import pyarrow as pa

        if not len(self.schema):
            return None
        columns: list[Any] = []
        tuples = self._partition_tuples(zone).table
        codes = integers(groups.codes)
        columns += [tuples[f.name].take(codes) for f in self.columns.partitions]
        if self.has_deletions:
            columns.append(array_of(self._bitmaps(groups), BINARY))
        if self._numbered:
            columns.append(integers(groups.rows[groups.starts]).cast(pa.int32()))
        return pa.Table.from_arrays(columns, names=self.schema.names)

    def _bitmaps(self, groups: _Groups) -> list[bytes | None]:
        """One bit a row up to the last deleted one, in 64-bit words, for each directory that is a file with some."""

        first = self.live.table["deletionVector"].take(integers(groups.rows[groups.starts])).to_pylist()
        found = []
        for value in first:
            vector = vector_descriptor(value)
            found.append(None if vector is None else _bitmap(read_positions(self.snapshot.storage, vector)))
        return found

    def _matching_directories(self, internal: Any, filters: Any) -> bytes | None:
        """The directories that satisfy the partition filters, evaluated by Spark; None for all.

        Numbers of directories as little-endian 32-bit integers.
        """
        if filters.isEmpty():
            return None
        references: dict[str, Any] = {}
        for i in range(filters.size()):
            found = filters.apply(i).references().toSeq()
            for k in range(found.size()):
                references[found.apply(k).name()] = found.apply(k)
        attributes = self._jvm.DataTypeUtils.toAttributes(self._jvm.struct(self._json))
        named = [attributes.apply(i) for i in range(attributes.size())]
        # The filters know the columns by ids, which differ from one use of the relation to the next.
        named = [references.get(a.name(), a) for a in named]
        return bytes(self._jvm.listing.matching(filters, self._jvm.seq(named), internal))


class _Groups:
    """Files in directories: those that share all values share one.

    Attributes
    ----------
    rows
        int64 rows of live files, directory by directory.
    counts, starts
        int32, int64: files of each directory, and where in `rows` they begin.
    codes
        int64: the partition tuple of each directory.
    """

    def __init__(
        self, rows: npt.NDArray[np.int64], counts: npt.NDArray[np.int32], codes: npt.NDArray[np.int64]
    ) -> None:
        self.rows = rows
        self.counts = counts
        self.codes = codes
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])[:-1]

    def only(self, numbers: npt.NDArray[np.int64]) -> _Groups:
        """Some of the directories, by ascending numbers."""
        chosen = np.zeros(len(self.counts), np.bool_)
        chosen[numbers] = True
        return _Groups(self.rows[np.repeat(chosen, self.counts)], self.counts[numbers], self.codes[numbers])


def _groups(codes: pa.Array, rows: pa.Array, alone: npt.NDArray[np.bool_] | None) -> _Groups:
    """Files grouped by their partition tuple, in log order within one; those that stand alone by themselves."""
    numbers, code = np.asarray(rows, np.int64), np.asarray(codes, np.int64)
    if not len(numbers):
        return _Groups(numbers, np.zeros(0, np.int32), code)
    single = np.zeros(len(code), np.int64)
    if alone is not None:
        single[alone] = np.arange(1, int(alone.sum()) + 1)
    order = np.lexsort((single, code))
    code, single = code[order], single[order]
    changes = np.flatnonzero((code[1:] != code[:-1]) | (single[1:] != single[:-1])) + 1
    starts = np.concatenate([np.zeros(1, np.int64), changes])
    counts = np.diff(np.append(starts, len(code))).astype(np.int32)
    return _Groups(numbers[order], counts, code[starts])


def _bitmap(positions: npt.NDArray[np.uint64]) -> bytes | None:
    if not len(positions):
        return None
    last = int(positions[-1])
    if last >= 1 << 31:
        raise DeltaError(
            f"a deletion vector deletes row {last} of its file, beyond what Spark's own reader can address; read the "
            "table with spark.pydelta.nativeScan=false"
        )
    bits = np.zeros((last // 64 + 1) * 64, np.uint8)
    bits[positions.astype(np.int64)] = 1
    return np.packbits(bits, bitorder="little").tobytes()
