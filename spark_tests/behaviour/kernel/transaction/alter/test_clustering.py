"""Clustering columns: the domain in the log, changes, and what cannot be one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.schema.types import INTEGER, STRING, ArrayType, StructField, StructType
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from spark_tests.behaviour.kernel.transaction.alter.tables import NESTED, action, made, protocol


def columns(log: DeltaLog) -> list[list[str]]:
    found: list[list[str]] = json.loads(log.snapshot().domains["delta.clustering"])["clusteringColumns"]
    return found


def test_a_clustered_table_records_its_columns_in_a_domain(tmp_path: Path) -> None:
    log = made(tmp_path, NESTED, cluster_by=["ID", "s.A"])
    body = action(log, 0, "domainMetadata")
    assert body == {
        "domain": "delta.clustering",
        "configuration": '{"clusteringColumns":[["id"],["s","a"]],"domainName":"delta.clustering"}',
        "removed": False,
    }
    assert protocol(log)[3] == ["appendOnly", "clustering", "domainMetadata", "invariants"]
    assert log.snapshot().detail()["clusteringColumns"] == ["id", "s.a"]


def test_under_column_mapping_the_domain_has_physical_names(tmp_path: Path) -> None:
    log = made(tmp_path, NESTED, cluster_by=["s.a"], properties={"delta.columnMapping.mode": "name"})
    (path,) = columns(log)
    assert all(name.startswith("col-") for name in path)
    assert log.snapshot().detail()["clusteringColumns"] == ["s.a"]


def test_clustering_is_changed_and_ended(tmp_path: Path) -> None:
    log = made(tmp_path, NESTED, cluster_by=["id"])
    version = cluster_by(log, ["s.b", "id"])
    assert columns(log) == [["s", "b"], ["id"]]
    info = action(log, version, "commitInfo")
    assert info["operation"] == "CLUSTER BY"
    assert info["operationParameters"] == {"oldClusteringColumns": "id", "newClusteringColumns": "s.b,id"}
    cluster_by(log, [])
    assert columns(log) == []


LISTS = StructType(
    (StructField("a", ArrayType(INTEGER)), StructField("b", STRING), StructField("c", INTEGER))
)


@pytest.mark.parametrize(
    ("schema", "names", "condition"),
    [
        (NESTED, ["nosuch"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (NESTED, ["id", "ID"], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (NESTED, ["s"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (LISTS, ["a"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (NESTED, ["id", "p", "s.a", "s.b", "id"], "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
    ],
)
def test_what_rows_cannot_be_arranged_by_is_refused(
    tmp_path: Path, schema: StructType, names: list[str], condition: str
) -> None:
    with pytest.raises(DeltaError) as caught:
        made(tmp_path / "new", schema, cluster_by=names)
    assert caught.value.condition == condition
    log = made(tmp_path / "old", schema)
    with pytest.raises(DeltaError) as caught:
        cluster_by(log, names)
    assert caught.value.condition == condition
    assert log.snapshot().version == 0


@pytest.mark.parametrize(
    "properties",
    [{"delta.dataSkippingNumIndexedCols": "1"}, {"delta.dataSkippingStatsColumns": "c"}],
)
def test_columns_without_statistics_are_refused(tmp_path: Path, properties: dict[str, str]) -> None:
    with pytest.raises(DeltaError) as caught:
        made(tmp_path, LISTS, cluster_by=["b"], properties=properties)
    assert caught.value.condition == "DELTA_CLUSTERING_COLUMN_MISSING_STATS"


def test_partitions_and_clustering_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(DeltaError) as caught:
        made(tmp_path / "both", NESTED, partition_columns=["p"], cluster_by=["id"])
    assert caught.value.condition == "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"
    log = made(tmp_path / "partitioned", NESTED, partition_columns=["p"])
    with pytest.raises(DeltaError) as caught:
        cluster_by(log, ["id"])
    assert caught.value.condition == "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"
