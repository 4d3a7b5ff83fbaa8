"""What the kernel writes, delta-spark reads: every version, by its own log and its own reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from delta_ds.kernel.format.schema.types import schema_to_json
from delta_ds.kernel.log.segment import list_log
from spark_tests.engines.conformance.compare import difference, without_internal_metadata
from spark_tests.engines.conformance.engines import milliseconds
from spark_tests.engines.interop.catalogue import CASES
from spark_tests.engines.interop.continued_tables import row_ids
from spark_tests.engines.interop.delta_spark import DeltaSpark, comparable
from spark_tests.engines.interop.table_factory import Work, Workshop
from spark_tests.engines.interop.written import Written, plain

pytestmark = pytest.mark.interop

Outcome = Callable[[Work, str], None]


@pytest.mark.parametrize("name", CASES)
def test_every_version_has_the_rows_that_were_written(name: str, outcome: Outcome) -> None:
    outcome(read_versions, name)


def read_versions(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    """Compare three ways: what was written, what the kernel reads, what delta-spark reads; then the log."""
    table = workshop.written(name)
    for version in table.telling_versions():
        snapshot = table.log.snapshot(version)
        wanted = comparable(table.expected(version), snapshot.schema)
        kernel = comparable(snapshot.scan().to_arrow(), snapshot.schema)
        assert difference(kernel, wanted) is None, f"version {version} by the kernel"
        df = delta_spark.load(table.path, version)
        assert difference(delta_spark.rows(df, snapshot.schema), wanted) is None, f"version {version}"
        ours = without_internal_metadata(json.loads(schema_to_json(snapshot.schema)))
        assert delta_spark.schema(df) == ours, f"schema of version {version}"
    check_log(table, delta_spark)


def check_log(table: Written, delta_spark: DeltaSpark) -> None:
    """Compare what else delta-spark makes of the log: checkpoints, checksum, history, detail."""
    newest = max((c.version for c in list_log(table.log.storage).checkpoints), default=None)
    assert delta_spark.checkpoint_read(table.path) == newest
    assert delta_spark.last_checkpoint(table.path) == newest
    assert delta_spark.checksum_difference(table.path) is None
    ours = [(e["version"], milliseconds(e["timestamp"]), e["operation"]) for e in table.log.history()]
    assert delta_spark.history(table.path) == ours
    detail = table.log.snapshot().detail()
    for key, theirs in delta_spark.detail(table.path).items():
        assert detail[key] == theirs, key


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.filters])
def test_files_are_skipped_by_the_statistics_written(name: str, outcome: Outcome) -> None:
    outcome(skip_files, name)


def skip_files(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    """Compare which files are left under each filter; none with a matching row may be missing."""
    table = workshop.written(name)
    snapshot = table.log.snapshot()
    for predicate, files in CASES[name].filters.items():
        left = delta_spark.files(table.path, predicate)
        assert len(left) == files, predicate
        assert snapshot.scan(predicate).num_files <= files, f"{predicate} by the kernel"
        rows = snapshot.scan(predicate, metadata_columns=("file_name",)).to_arrow()
        assert set(pc.struct_field(rows["_metadata"], "file_name").to_pylist()) <= left, predicate


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.row_ids])
def test_rows_have_the_same_ids(name: str, outcome: Outcome) -> None:
    outcome(compare_row_ids, name)


def compare_row_ids(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    table = workshop.written(name)
    ids = row_ids(table.log)
    assert difference(ids, delta_spark.row_ids(table.path)) is None
    assert len(pc.unique(ids["__row_id"])) == ids.num_rows
    if name == "row_tracking":
        by_id = {row["id"]: (row["__row_id"], row["__row_commit_version"]) for row in ids.to_pylist()}
        assert by_id == {
            1: (0, 1), 2: (1, 1), 3: (10, 4), 4: (3, 2), 5: (4, 2), 6: (6, 3), 7: (7, 3), 8: (8, 3), 9: (9, 3),
        }  # fmt: skip


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.changes])
def test_change_feed_is_the_same_from_every_version_on(name: str, outcome: Outcome) -> None:
    outcome(compare_changes, name)


def compare_changes(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    table = workshop.written(name)
    latest = table.log.snapshot().version
    for start in range(latest + 1):
        ours = table.log.changes(start, latest).to_arrow()
        assert difference(ours, delta_spark.changes(table.path, start)) is None, f"from version {start}"


COUNTABLE = ("byte", "short", "integer", "long", "float", "double", "date")
AGGREGATED = (
    "plain_types", "nested_types", "widened_types", "many_columns", "partitions_of_every_type",
    "column_mapping_by_id", "checkpoint", "checkpoint_with_typed_statistics_only", "checkpoint_v2",
)  # fmt: skip


@pytest.mark.parametrize("name", AGGREGATED)
def test_aggregates_by_statistics_are_those_of_the_rows(name: str, outcome: Outcome) -> None:
    outcome(aggregate, name)


def aggregate(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    table = workshop.written(name)
    names = [f"`{f.name}`" for f in table.log.snapshot().schema if str(f.type) in COUNTABLE]
    bounds = ", ".join(f"MIN({n}) AS `min {i}`, MAX({n}) AS `max {i}`" for i, n in enumerate(names))
    by_rows = delta_spark.aggregate(table.path, f"COUNT(*) AS rows, {bounds}", by_statistics=False)
    assert by_rows["rows"].to_pylist() == [len(table.rows)]
    by_statistics = delta_spark.aggregate(table.path, f"COUNT(*) AS rows, {bounds}", by_statistics=True)
    assert difference(by_statistics, by_rows) is None


DESCRIBED = (
    "plain_types", "nested_types", "timestamp_without_zone", "variants", "many_columns", "long_texts",
    "partitions_of_every_type", "partitions_of_awkward_texts", "partitions_of_bytes", "names_of_columns",
)  # fmt: skip


@pytest.mark.parametrize("name", DESCRIBED)
def test_files_have_the_statistics_and_partition_values_of_delta_spark(name: str, outcome: Outcome) -> None:
    outcome(compare_descriptions, name)


def compare_descriptions(name: str, workshop: Workshop, delta_spark: DeltaSpark) -> None:
    """Let both write the same rows, each to a new table."""
    source, folder = workshop.written(name), workshop.folder()
    snapshot = source.log.snapshot()
    ours = Written(folder / "ours")
    ours.create(plain(snapshot.schema), snapshot.partition_columns)
    ours.append(source.rows)
    df = delta_spark.load(source.path).coalesce(1).write.format("delta")
    df.partitionBy(*snapshot.partition_columns).save(str(folder / "theirs"))
    assert described(ours.path) == described(folder / "theirs")


def described(path: Path) -> list[Any]:
    """Partition values and statistics of all files, in some order."""
    files = []
    for commit in sorted((path / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            add = json.loads(line).get("add")
            if add is not None:
                files.append((add["partitionValues"], json.loads(add["stats"])))
    return sorted(files, key=repr)


def test_stream_of_delta_spark_reads_what_each_commit_adds(
    workshop: Workshop, delta_spark: DeltaSpark
) -> None:
    table = workshop.written("change_data_feed")
    rows = delta_spark.stream(table.path, ignoreChanges="true")
    assert {row["id"] for row in rows} == set(range(1, 11))
