"""What Spark's optimizer and `explain` see of a table: name, version, bytes and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.data.values.statistics import load_statistics

if TYPE_CHECKING:
    from delta_ds.spark.engines.java_object import JavaValue
    from delta_ds.spark.native.file_index import DeltaFileIndex
    from delta_ds.spark.native.jvm import Jvm

_COUNTS_ROWS = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")
# Of the parameters of CatalogTable: identifier, type, storage, schema have no default; the 13th are the statistics.
_REQUIRED, _STATISTICS = 4, 13


def catalog_table(jvm: Jvm, index: DeltaFileIndex) -> JavaValue:
    """A `CatalogTable` that stands for the version in plans; no catalog knows it.

    Rows are counted only where the session lets the optimiser use them, as it takes the statistics of every file.
    """
    snapshot = index.snapshot
    identifier = jvm.TableIdentifier(f"{snapshot.storage.url}@v{snapshot.version}", jvm.some("pydelta"))
    arguments = [
        identifier,
        jvm.CatalogTableType.EXTERNAL(),
        jvm.CatalogStorageFormat.empty(),
        jvm.struct(index.columns.output),
    ]
    for number in range(_REQUIRED + 1, jvm.catalog_table_parameters + 1):
        if number == _STATISTICS:
            arguments.append(jvm.some(_statistics(jvm, index)))
        else:
            arguments.append(getattr(jvm.CatalogTableModule, f"apply$default${number}")())
    return jvm.CatalogTable(*arguments)


def _statistics(jvm: Jvm, index: DeltaFileIndex) -> JavaValue:
    rows = _row_count(jvm, index)
    # Made in the JVM: py4j would turn Scala's numbers into Python's.
    return jvm.listing.statistics(index.sizeInBytes(), -1 if rows is None else rows)


def _row_count(jvm: Jvm, index: DeltaFileIndex) -> int | None:
    """The rows of the version; None where nobody asks, or a file does not say."""
    conf = jvm.spark.conf
    if index.large or not any(str(conf.get(name, "false")).lower() == "true" for name in _COUNTS_ROWS):
        return None
    import pyarrow.compute as pc

    live = index.live
    rows = index.rows
    records = load_statistics(live, rows, []).num_records
    if records.null_count:
        return None
    vectors = live.table["deletionVector"].take(rows)
    deleted = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
    return int(pc.sum(records).as_py() or 0) - int(deleted)
