"""delta-spark on tables that the kernel has written: it reads them, checks them, and writes on; the kernel follows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.schema.types import schema_to_json
from spark_tests.interop.catalogue import CASES
from spark_tests.interop.delta_spark import DeltaSpark, comparable
from spark_tests.interop.written import Case, Written
from spark_tests.yardsticks.compare import difference, without_internal_metadata
from spark_tests.yardsticks.engines import lift_metadata, milliseconds

pytestmark = pytest.mark.interop

Tables = Callable[[str], Written]


@pytest.mark.parametrize("name", CASES)
def test_every_version_has_the_rows_that_were_written(
    name: str, written: Tables, delta_spark: DeltaSpark
) -> None:
    table = written(name)
    for version in table.versions:
        snapshot = table.log.snapshot(version)
        wanted = comparable(table.expected(version), snapshot.schema)
        kernel = comparable(snapshot.scan().to_arrow(), snapshot.schema)
        assert difference(kernel, wanted) is None, f"version {version} by the kernel"
        df = delta_spark.load(table.path, version)
        assert difference(delta_spark.rows(df, snapshot.schema), wanted) is None, f"version {version}"
        ours = without_internal_metadata(json.loads(schema_to_json(snapshot.schema)))
        assert delta_spark.schema(df) == ours, f"schema of version {version}"


@pytest.mark.parametrize("name", CASES)
def test_log_is_what_delta_spark_would_have_written(
    name: str, written: Tables, delta_spark: DeltaSpark
) -> None:
    table = written(name)
    newest = list_log(table.log.storage).checkpoints
    assert delta_spark.checkpoint_read(table.path) == max((c.version for c in newest), default=None)
    assert delta_spark.checksum_difference(table.path) is None
    ours = [(e["version"], milliseconds(e["timestamp"]), e["operation"]) for e in table.log.history()]
    assert delta_spark.history(table.path) == ours


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.filters])
def test_files_are_skipped_by_the_statistics_written(
    name: str, written: Tables, delta_spark: DeltaSpark
) -> None:
    table = written(name)
    snapshot = table.log.snapshot()
    for predicate, files in CASES[name].filters.items():
        df = delta_spark.load(table.path).where(predicate)
        assert len(df.inputFiles()) == files, predicate
        scan = snapshot.scan(predicate)
        assert scan.num_files <= files, f"{predicate} by the kernel"
        found = delta_spark.rows(df, snapshot.schema)
        assert difference(found, comparable(scan.to_arrow(), snapshot.schema)) is None, predicate


@pytest.mark.parametrize("name", CASES)
def test_both_go_on_where_the_other_stopped(
    name: str, written: Tables, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    case = CASES[name]
    path = tmp_path / name
    shutil.copytree(written(name).path, path)
    log = DeltaLog(path)
    before = log.snapshot()
    for statement, error in case.refused.items():
        with pytest.raises(Exception, match=error):
            delta_spark.run(statement, path)
    assert log.snapshot().version == before.version
    for statement in case.steps:
        delta_spark.run(statement, path)
    delta_spark.checkpoint(path)
    assert log.snapshot().version > before.version
    same_rows(case, log, delta_spark, "after delta-spark")
    write_again(log, case.numbered)
    assert delta_spark.checksum_difference(path) is None
    same_rows(case, log, delta_spark, "after the kernel again")


def write_again(log: DeltaLog, without: Sequence[str]) -> None:
    """Append some rows of the table to it; then, unless it is append-only, delete the rows of one id."""
    rows = log.snapshot().scan().to_arrow()
    again = rows.slice(0, 2).drop_columns([name for name in without if name in rows.column_names])
    log.write(again)
    assert log.snapshot().scan().to_arrow().num_rows == rows.num_rows + again.num_rows
    if log.snapshot().properties.get("delta.appendOnly") == "true":
        return
    rows = log.snapshot().scan().to_arrow()
    column = "id" if "id" in rows.column_names else "Id"
    gone = next((value for value in rows[column].to_pylist() if value is not None), None)
    if gone is None:
        return
    literal = f"'{gone}'" if isinstance(gone, str) else str(gone)
    log.write(again.slice(0, 0), "overwrite", {"replaceWhere": f"{column} = {literal}"})
    kept = rows.filter(pc.invert(pc.fill_null(pc.equal(rows[column], gone), False)))
    assert difference(log.snapshot().scan().to_arrow(), kept) is None


def same_rows(case: Case, log: DeltaLog, delta_spark: DeltaSpark, when: str) -> None:
    """Both see the same latest version, and the same ids of rows and changes where there are any."""
    path, snapshot = log.storage.url, log.snapshot()
    theirs = delta_spark.rows(delta_spark.load(path), snapshot.schema)
    ours = comparable(snapshot.scan().to_arrow(), snapshot.schema)
    assert difference(ours, theirs) is None, when
    if case.row_ids:
        assert difference(row_ids(log), delta_spark.row_ids(path)) is None, f"row ids {when}"
    if case.changes:
        changes = log.changes(0, snapshot.version).to_arrow()
        assert difference(changes, delta_spark.changes(path)) is None, f"changes {when}"


def row_ids(log: DeltaLog) -> pa.Table:
    scan = log.snapshot().scan(metadata_columns=("row_id", "row_commit_version"))
    return lift_metadata(scan.to_arrow())


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.row_ids])
def test_rows_have_the_same_ids(name: str, written: Tables, delta_spark: DeltaSpark) -> None:
    table = written(name)
    ids = row_ids(table.log)
    assert difference(ids, delta_spark.row_ids(table.path)) is None
    assert len(pc.unique(ids["__row_id"])) == ids.num_rows
    if name == "row_tracking":
        by_id = {row["id"]: (row["__row_id"], row["__row_commit_version"]) for row in ids.to_pylist()}
        assert by_id == {
            1: (0, 1), 2: (1, 1), 3: (10, 4), 4: (3, 2), 5: (4, 2), 6: (6, 3), 7: (7, 3), 8: (8, 3), 9: (9, 3),
        }  # fmt: skip


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.changes])
def test_change_feed_is_the_same(name: str, written: Tables, delta_spark: DeltaSpark) -> None:
    table = written(name)
    latest = table.log.snapshot().version
    for start in range(latest + 1):
        ours = table.log.changes(start, latest).to_arrow()
        assert difference(ours, delta_spark.changes(table.path, start)) is None, f"from version {start}"
    assert not re.search("update", str(ours["_change_type"].unique()))
