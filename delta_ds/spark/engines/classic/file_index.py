"""A Spark `FileIndex` in Python: partition and data filters choose the files of a version.

Spark asks once for every scan of a query, when it runs. Partition filters are not evaluated again by Spark, so
what is listed satisfies them exactly; data filters are a hint.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote
from weakref import WeakValueDictionary

import numpy as np

from delta_ds.events.spark import FILTER_NOT_USED_FOR_SKIPPING
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.files.scan.null_checks import check_not_null
from delta_ds.kernel.files.scan.partitions import PartitionTuples, partition_tuples
from delta_ds.kernel.files.scan.skipping import prune, row_numbers
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.tree import Expression, conjunction
from delta_ds.kernel.format.features import DELETION_VECTORS
from delta_ds.kernel.format.schema.types import BINARY, INTEGER, LONG, StructField
from delta_ds.kernel.log.checksum import read_checksum
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_kind import answers_jvm
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.engines.classic.columns import ScanColumns, spark_schema
from delta_ds.spark.engines.classic.hadoop import (
    BASE_ROW_ID,
    DELETED,
    FILE_NUMBER,
    ROW_VERSION,
    FileGroups,
    check_found_names,
    group_files,
    hidden_values,
    list_files,
    path_bytes,
)
from delta_ds.spark.engines.classic.jvm import Jvm, errors_to_jvm
from delta_ds.spark.engines.classic.snapshot_isolation import made_ms
from delta_ds.spark.engines.large_tables import is_large, matching_files
from delta_ds.spark.errors.java_errors import TableFile, finds_files

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from delta_ds.kernel.log.live_files import LiveFiles
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue


@answers_jvm
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
    large
        Whether the files of a scan are found by tasks, so that not all of them are known here.
    rows
        The rows of the live files that are scanned.
    schema, hidden
        The partition columns that Spark sees, and those of them that the table has not: see `hidden_values`.
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
        tracked: bool = False,
        timezone: str | None = None,
    ) -> None:
        self._jvm = jvm
        self._root = root
        self.snapshot = snapshot
        self.columns = columns
        self.last_listed: int | None = None
        self._chosen = rows
        self._timezone = timezone
        self.large = rows is None and is_large(jvm.spark, snapshot)
        self._tuples: dict[str, PartitionTuples] = {}
        self.has_deletions = self._find_deletions()
        hidden = [StructField(DELETED, BINARY)] if self.has_deletions else []
        hidden += [StructField(FILE_NUMBER, INTEGER)] if numbered else []
        hidden += [StructField(name, LONG) for name in (BASE_ROW_ID, ROW_VERSION) if tracked]
        self.hidden = tuple(hidden)
        self._by_itself = "numbered" * numbered + "tracked" * tracked
        self.schema = spark_schema([*columns.partitions, *self.hidden])
        self._json = self.schema.json()
        self._promises = any(not f.nullable for f in snapshot.schema)
        self.identity = self._identify()
        self._alive[self.identity] = self

    @property
    def live(self) -> LiveFiles:
        """The live files of the version."""
        return self.snapshot.live_files()

    @cached_property
    def rows(self) -> pa.Array:
        return row_numbers(self.live.num_rows) if self._chosen is None else self._chosen

    @cached_property
    def _kept_promises(self) -> npt.NDArray[np.bool_]:
        """The files that were found to have no nulls where the schema promises so."""
        return np.zeros(self.live.num_rows, np.bool_)

    def _find_deletions(self) -> bool:
        """Whether files may have deletion vectors."""
        if self.large:
            return self.snapshot.table_state.supports(DELETION_VECTORS)
        if self._reads_nothing:
            return False
        vectors = self.live.table["deletionVector"]
        return bool(vectors.null_count < len(vectors))

    @property
    def _reads_nothing(self) -> bool:
        """Whether no file is scanned, for which none need be known."""
        return self._chosen is not None and not len(self._chosen)

    @classmethod
    def of_identity(cls, text: str) -> DeltaFileIndex | None:
        """The index of an identity; None if it is gone."""
        return cls._alive.get(text)

    def file_at(self, address: str) -> TableFile | None:
        """The file of an address as Spark writes it; None if it is none of the version's.

        Files of large tables are not all known: there the table's folder decides.
        """
        import pyarrow.compute as pc

        plain_path, root = _plain(address), _plain(self._root)
        inside = plain_path.startswith(root)
        if not self.large:
            paths = self.live.table["path"]
            here = paths.filter(pc.match_substring(paths, address.rpartition("/")[2]))
            inside = any(plain_path.endswith(_plain(path)) for path in here.to_pylist())
        if not inside:
            return None
        return TableFile(plain_path.removeprefix(root), self.snapshot.storage.url, self.snapshot.version)

    def _identify(self) -> str:
        snapshot = self.snapshot
        # A table that was deleted and made anew may have the same versions: its id and the commit's time differ.
        parts = [
            f"{snapshot.storage.url}@v{snapshot.version}",
            snapshot.metadata.id,
            str(made_ms(snapshot)),
        ]
        if self._chosen is not None:
            # Numbers alone name other files where the version was read from another checkpoint.
            paths = self.live.table["path"].take(self.rows).to_pylist() if len(self.rows) else []
            parts.append(f"files:{hash((self.rows.to_numpy().tobytes(), *paths)):x}")
        if snapshot.selection is not None:
            parts.append(f"of:{snapshot.selection}")  # in which the rows count
        if self._by_itself:
            parts.append(self._by_itself)
        if self._timezone is not None:
            parts.append(self._timezone)
        return f"pydelta[{' '.join(parts)}]"

    # --- FileIndex

    def rootPaths(self) -> JavaObject:
        # Two, as INSERT INTO writes past the log into the folder of a partitioned relation that has only one.
        commit = f"{self._root}_delta_log/{self.snapshot.version:020d}.json"
        return self._jvm.seq([self._jvm.Path(path) for path in (self._root, commit)])

    def listFiles(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:
        with errors_to_jvm(self._jvm):
            return self._list(partition_filters, data_filters)

    def inputFiles(self) -> JavaValue:
        if self.large:
            paths = self._scanned(None, None).live.table["path"]
        else:
            paths = self.live.table["path"].take(self.rows)
        return self._jvm.listing.paths(self._root, path_bytes(paths, self.snapshot.storage, self._root))

    def refresh(self) -> None:
        """Nothing: a version never changes."""

    def sizeInBytes(self) -> int:
        import pyarrow.compute as pc

        if self.large:
            checksum = read_checksum(self.snapshot.storage, self.snapshot.segment)
            # Without one: more than Spark would ever send to all executors.
            return self._jvm.default_size if checksum is None else checksum.size_bytes
        if self._reads_nothing:
            return 0
        return int(pc.sum(self.live.table["size"].take(self.rows)).as_py() or 0)

    def partitionSchema(self) -> JavaObject:
        return self._jvm.struct(self._json)

    # Default methods of the interface are asked here as well: py4j does not fall through to them.

    def metadataOpsTimeNs(self) -> JavaObject:
        return self._jvm.none

    def isTimeTravel(self) -> bool:  # since 4.2
        return False

    def toString(self) -> str:
        return self.identity

    def hashCode(self) -> int:
        return hash(self.identity) & 0x7FFFFFFF

    def equals(self, other: JavaObject) -> bool:
        # The other one is a handle of the JVM on a Python object, or on anything else.
        return other is not None and bool(other.toString() == self.identity)

    class Java:
        implements: ClassVar[list[str]] = ["org.apache.spark.sql.execution.datasources.FileIndex"]

    # --- listing

    def _list(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:
        zone = self._timezone or time_zone(self._jvm.spark)
        selection = self._scanned(self._predicate(partition_filters, data_filters, zone), zone)
        if self._promises:
            self._check_promises(selection)
        tuples = self._partition_tuples(selection, zone)
        groups = group_files(tuples.code.take(selection.rows), selection.rows, self._own_directory(selection))
        values = self._values(selection, groups, tuples)
        if values is None:
            self.last_listed = len(groups.rows)
            return self._directories(selection, groups, self._jvm.row_array([self._jvm.empty_row]))
        internal = self._jvm.internal_rows(values, self.schema)
        keep = self._matching_directories(internal, partition_filters)
        if keep is not None:
            groups = groups.only(np.frombuffer(keep, "<i4").astype(np.int64))
            internal = self._jvm.listing.pick(internal, keep)
        self.last_listed = len(groups.rows)
        return self._directories(selection, groups, internal)

    def _check_promises(self, selection: _Scanned) -> None:
        if selection.version is not self.snapshot:
            check_not_null(selection.version, selection.rows)
            return
        numbers = np.asarray(selection.rows, np.int64)
        new = numbers[~self._kept_promises[numbers]]
        check_not_null(self.snapshot, integers(new))
        self._kept_promises[new] = True

    def _directories(self, selection: _Scanned, groups: FileGroups, internal: JavaObject) -> JavaObject:
        if not len(groups.counts):
            return self._jvm.seq([])

        files = selection.live.table.select(["path", "size", "modificationTime"]).take(integers(groups.rows))
        return list_files(
            self._jvm.listing, self._root, internal, groups.counts, files, self.snapshot.storage
        )

    def _predicate(
        self, partition_filters: JavaObject, data_filters: JavaObject, zone: str
    ) -> Expression | None:
        """What of the filters of a scan files can be skipped by."""
        from delta_ds.spark.engines.classic.catalyst_filters import translate

        translated = [
            part
            for filters in (partition_filters, data_filters)
            for part in translate(filters, self.columns.logical, zone)
        ]
        return conjunction([bound for part in translated if (bound := self._bound(part, zone)) is not None])

    def _scanned(self, predicate: Expression | None, zone: str | None) -> _Scanned:
        """The files that may hold matching rows."""
        if self.large:
            version = matching_files(
                self._jvm.spark, self.snapshot, predicate, zone, statistics=self._promises
            )
            if version is not self.snapshot:
                check_found_names(version)
                return _Scanned(version, row_numbers(version.live_files().num_rows))
            self.large = False  # the driver has to do it
        pruning = prune(
            self.live,
            predicate,
            schema=self.snapshot.schema,
            partition_columns=self.snapshot.partition_columns,
            mapping_mode=self.snapshot.mapping_mode,
            timezone=zone,
            counts_nan=lambda: self.snapshot.statistics_count_nan,
        )
        if self._chosen is None:
            return _Scanned(self.snapshot, pruning.rows)
        import pyarrow.compute as pc

        return _Scanned(self.snapshot, self.rows.filter(pc.is_in(self.rows, pruning.rows)))

    def _bound(self, part: Expression, zone: str) -> Expression | None:
        try:
            return bind(part, self.snapshot.schema, zone)
        except PredicateError as error:
            FILTER_NOT_USED_FOR_SKIPPING.log(filter=part, reason=error)
            return None

    def _partition_tuples(self, selection: _Scanned, zone: str) -> PartitionTuples:
        tuples = self._tuples.get(zone) if selection.version is self.snapshot else None
        if tuples is None:
            columns = {f.name: (f.name, f.type) for f in self.columns.partitions}
            tuples = partition_tuples(selection.live, columns, frozenset(), zone)
            if selection.version is self.snapshot:
                self._tuples[zone] = tuples
        return tuples

    def _own_directory(self, selection: _Scanned) -> npt.NDArray[np.bool_] | None:
        """Which files have hidden values of their own; None for none."""
        if self._by_itself:
            return np.ones(len(selection.rows), np.bool_)
        if not self.has_deletions:
            return None
        return np.asarray(selection.live.table["deletionVector"].take(selection.rows).is_valid())

    def _values(self, selection: _Scanned, groups: FileGroups, tuples: PartitionTuples) -> pa.Table | None:
        """The partition values of each directory, hidden ones included; None where there are no such columns."""
        import pyarrow as pa

        if not len(self.schema):
            return None
        columns: list[JavaObject] = []
        codes = integers(groups.codes)
        columns += [tuples.table[f.name].take(codes) for f in self.columns.partitions]
        first = integers(groups.rows[groups.starts])
        columns += hidden_values(selection.live.table, first, self.hidden, self.snapshot.storage)
        return pa.Table.from_arrays(columns, names=self.schema.names)

    def _matching_directories(self, internal: JavaObject, filters: JavaObject) -> bytes | None:
        """The directories that satisfy the partition filters, evaluated by Spark; None for all.

        Numbers of directories as little-endian 32-bit integers.
        """
        if filters.isEmpty():
            return None
        references: dict[str, Any] = {}
        for i in range(filters.size()):
            attributes_read = filters.apply(i).references().toSeq()
            for k in range(attributes_read.size()):
                references[attributes_read.apply(k).name()] = attributes_read.apply(k)
        attributes = self._jvm.DataTypeUtils.toAttributes(self._jvm.struct(self._json))
        named = [attributes.apply(i) for i in range(attributes.size())]
        # The filters know the columns by ids, which differ from one use of the relation to the next.
        named = [references.get(a.name(), a) for a in named]
        return bytes(self._jvm.listing.matching(filters, self._jvm.seq(named), internal))


@dataclass(frozen=True, slots=True)
class _Scanned:
    """The files of a scan: rows of the live files of a version, of a selection of them those that it has."""

    version: Snapshot
    rows: pa.Array

    @property
    def live(self) -> LiveFiles:
        return self.version.live_files()


def _plain(address: str) -> str:
    """An address without its scheme, as it is decoded: Hadoop has `file:/a` and `file:///a` for one file."""
    return "/" + unquote(re.sub(r"^\w+:", "", address)).lstrip("/")


@finds_files
def _find_file(address: str) -> TableFile | None:
    for index in reversed(list(DeltaFileIndex._alive.values())):
        found = index.file_at(address)
        if found is not None:
            return found
    return None
