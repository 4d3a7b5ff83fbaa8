"""Tables for readers of Iceberg, made and written in every way that Spark has; pyiceberg reads the same rows."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.table import StaticTable
from pyspark.errors import UnsupportedOperationException

from delta_ds import DeltaTable
from delta_ds.api.delta_log import DeltaLog
from spark_tests.behaviour.kernel.transaction.iceberg.test_compatibility import adds, complying
from spark_tests.behaviour.kernel.transaction.iceberg.test_conversion import same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNIFORM = "TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', 'delta.universalFormat.enabledFormats' = 'iceberg')"


def holds(path: Path) -> bool:
    """Whether all files comply and say so, and pyiceberg reads the rows that we do."""
    log = DeltaLog(path)
    assert all(add["tags"]["ICEBERG_COMPAT_VERSION"] == "2" for add in adds(log))
    assert complying(log)
    return same_rows(log)


def test_every_way_to_write(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "nested"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT NOT NULL, a ARRAY<STRUCT<x: MAP<STRING, INT>>>, p STRING) USING delta "
        f"PARTITIONED BY (p) {UNIFORM}"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, array(named_struct('x', map('k', 1))), 'p ' || (id % 3) FROM range(9)"
    )
    assert holds(path)
    spark.sql(f"UPDATE {name} SET id = id + 100 WHERE id < 3")
    spark.sql(f"DELETE FROM {name} WHERE id = 5")
    assert holds(path)
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 6 AS id UNION ALL SELECT 77) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p = '' WHEN NOT MATCHED THEN INSERT (id, a, p) VALUES (s.id, array(), NULL)"
    )
    assert holds(path)
    spark.sql(f"OPTIMIZE {name}")
    stream = spark.readStream.format("pydelta").load(str(path)).selectExpr("id + 1000 AS id", "a", "p")
    out = tmp_path / "streamed"
    spark.sql(f"CREATE TABLE delta.`{out}` USING delta {UNIFORM} AS SELECT * FROM {name} WHERE id < 0")
    query = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "check"))
    query.trigger(availableNow=True).start(str(out)).awaitTermination()
    assert holds(path)
    assert holds(out)
    assert DeltaLog(out).snapshot().scan().count() == 9


def test_sparks_own_writer_makes_files_that_comply(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "flat"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, at TIMESTAMP, s STRUCT<a: INT>) USING delta {UNIFORM}")
    with caplog.at_level(logging.INFO, "delta_ds"):
        spark.sql(
            f"INSERT INTO delta.`{path}` SELECT id, current_timestamp(), named_struct('a', 1) FROM range(9)"
        )
    assert not [r for r in caplog.records if "portable" in r.getMessage()]
    assert holds(path)


def test_reorg_upgrades_a_table_and_generate_brings_it_up_to_date(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "old"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') "
        "AS SELECT id, array(id) AS a, id % 2 AS p FROM range(8)"
    )
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    with pytest.raises(UnsupportedOperationException, match="UPGRADE UNIFORM"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')")
    done = spark.sql(f"REORG TABLE {name} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))").first()
    assert done is not None
    assert done.metrics.deletionVectorStats.numDeletionVectorsRemoved == 1
    assert holds(path)
    (path / "metadata/version-hint.text").unlink()
    spark.sql(f"GENERATE iceberg FOR TABLE {name}")
    DeltaTable.forPath(spark, str(path)).generate("iceberg")
    assert StaticTable.from_metadata(str(path)).scan().count() == 7
