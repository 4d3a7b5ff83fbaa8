"""Writing on where another engine has stopped, and whether both see the same afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds import DeltaLog
from delta_ds.kernel.transaction.write.arrow import write_batches
from spark_tests.engines.conformance.compare import difference
from spark_tests.engines.conformance.engines import lift_metadata
from spark_tests.engines.interop.delta_spark import DeltaSpark, comparable
from spark_tests.engines.interop.written import plain


def write_again(log: DeltaLog, without: Sequence[str] = ()) -> None:
    """Append two rows of a table to it; then, unless it is append-only, delete the rows of one id.

    Parameters
    ----------
    log
        The table; it has a column `id`.
    without
        Columns that the appended rows shall not have.
    """
    before = log.snapshot()
    rows = before.scan().to_arrow()
    again = rows.slice(0, 2).drop_columns([name for name in without if name in rows.column_names])
    schema = plain(before.schema, again.column_names)
    write_batches(log.start_transaction(create=True), schema, again.to_batches())
    after = log.snapshot().scan().to_arrow()
    assert after.num_rows == rows.num_rows + again.num_rows
    gone, literal = some_id(after)
    if gone is None or before.properties.get("delta.appendOnly") == "true":
        return
    write_batches(
        log.start_transaction(create=True), schema, [], "overwrite", {"replaceWhere": f"id = {literal}"}
    )
    assert difference(log.snapshot().scan().to_arrow(), without_id(after, gone)) is None


def some_id(rows: pa.Table) -> tuple[object, str]:
    """The first id there is, and how SQL spells it; None without rows."""
    found = next((value for value in rows[id_of(rows)].to_pylist() if value is not None), None)
    return found, f"'{found}'" if isinstance(found, str) else str(found)


def id_of(rows: pa.Table) -> str:
    """The column `id` in the case it has."""
    return next(name for name in rows.column_names if name.lower() == "id")


def without_id(rows: pa.Table, gone: object) -> pa.Table:
    """The rows without those of an id."""
    return rows.filter(pc.fill_null(pc.not_equal(rows[id_of(rows)], gone), True))


def assert_same(log: DeltaLog, delta_spark: DeltaSpark, when: str) -> None:
    """Assert that both see the same latest version, and the same ids of rows and changes where it has any."""
    path, snapshot = log.storage.url, log.snapshot()
    theirs = delta_spark.rows(delta_spark.load(path), snapshot.schema)
    ours = comparable(snapshot.scan().to_arrow(), snapshot.schema)
    assert difference(ours, theirs) is None, when
    if snapshot.properties.get("delta.enableRowTracking") == "true":
        assert difference(row_ids(log), delta_spark.row_ids(path)) is None, f"row ids {when}"
    if snapshot.properties.get("delta.enableChangeDataFeed") == "true":
        changes = log.changes(0, snapshot.version).to_arrow()
        assert difference(changes, delta_spark.changes(path)) is None, f"changes {when}"


def row_ids(log: DeltaLog) -> pa.Table:
    """All rows with the columns `__row_id` and `__row_commit_version`."""
    scan = log.snapshot().scan(metadata_columns=("row_id", "row_commit_version"))
    return lift_metadata(scan.to_arrow())
