"""Options, projections, pinned versions and errors of the batch source, in a classic session."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog
from spark_tests.engines.conformance.corpora import corpus

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("plain")]


def read(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def commit(path: str, version: int, *actions: dict[str, Any]) -> None:
    text = "\n".join(json.dumps(action) for action in actions)
    Path(path, "_delta_log", f"{version:020d}.json").write_text(text, encoding="utf-8")


def make_table(path: Path, schema: dict[str, Any], data: pa.Table, **metadata: Any) -> str:
    """A table of one file and one version."""
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(data, path / "part-0.parquet")
    add = {
        "path": "part-0.parquet",
        "size": (path / "part-0.parquet").stat().st_size,
        "partitionValues": {},
        "modificationTime": 0,
        "dataChange": True,
    }
    meta = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
        **metadata,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    commit(str(path), 0, {"protocol": protocol}, {"metaData": meta}, {"add": add})
    return str(path)


def struct(**fields: str) -> dict[str, Any]:
    """A schema JSON; a type ending in `!` is NOT NULL."""
    return {
        "type": "struct",
        "fields": [
            {"name": n, "type": t.rstrip("!"), "nullable": not t.endswith("!"), "metadata": {}}
            for n, t in fields.items()
        ],
    }


class TestVersions:
    def test_dataframe_keeps_its_version_when_the_table_moves_on(
        self, spark: SparkSession, sales: str
    ) -> None:
        df = read(spark, sales)
        before = df.count()
        snapshot = DeltaLog(sales).snapshot()
        remove_all = [
            {"remove": {"path": p, "dataChange": True, "deletionTimestamp": 1, "deletionVector": dv}}
            for p, dv in zip(
                snapshot.files()["path"].to_pylist(),
                snapshot.files()["deletionVector"].to_pylist(),
                strict=True,
            )
        ]
        info = {"commitInfo": {"timestamp": 4102444800000, "inCommitTimestamp": 4102444800000}}
        commit(sales, snapshot.version + 1, info, *remove_all)
        assert read(spark, sales).count() == 0
        assert df.count() == before
        assert df.select("order_id").distinct().count() == before

    def test_path_suffix_names_a_version(self, spark: SparkSession, sales: str) -> None:
        assert read(spark, sales + "@v2").count() == read(spark, sales, versionAsOf=2).count() == 120

    def test_folder_whose_name_looks_like_a_suffix_is_read_itself(
        self, spark: SparkSession, sales: str, tmp_path: Path
    ) -> None:
        odd = str(tmp_path / "sales@v1")
        shutil.copytree(sales, odd)
        assert read(spark, odd).count() == read(spark, sales).count() != 60

    def test_version_that_is_not_there_is_refused_with_the_range(
        self, spark: SparkSession, sales: str
    ) -> None:
        with pytest.raises(Exception, match=r"\[DELTA_VERSION_NOT_FOUND\].*\b99\b.*\b7\b"):
            read(spark, sales, versionAsOf=99)

    def test_changes_keep_to_the_end_version_of_the_dataframe(self, spark: SparkSession, sales: str) -> None:
        df = read(spark, sales, readChangeFeed="true", startingVersion=1)
        before = df.count()
        late = {"commitInfo": {"timestamp": 4102444800000, "inCommitTimestamp": 4102444800000}}
        removed = DeltaLog(sales).snapshot().files().slice(0, 1).to_pylist()[0]
        action = {"path": removed["path"], "dataChange": True, "deletionTimestamp": 1}
        values = {"partitionValues": removed["partitionValues"], "size": removed["size"]}
        remove = {
            **action,
            **values,
            "extendedFileMetadata": True,
            "deletionVector": removed["deletionVector"],
        }
        commit(sales, 8, late, {"remove": remove})
        assert read(spark, sales, readChangeFeed="true", startingVersion=1).count() > before
        assert df.count() == before


class TestColumns:
    def test_given_schema_chooses_columns_ignoring_case(self, spark: SparkSession, sales: str) -> None:
        df = spark.read.format("pydelta").schema("Amount decimal(10,2), country string").load(sales)
        assert df.columns == ["Amount", "country"]
        assert sorted(df.collect()) == sorted(read(spark, sales).select("amount", "country").collect())

    def test_given_schema_of_another_type_is_refused(self, spark: SparkSession, sales: str) -> None:
        df = spark.read.format("pydelta").schema("amount int").load(sales)
        with pytest.raises(Exception, match=r"column 'amount' has type decimal\(10,2\).*but integer"):
            df.collect()

    def test_given_schema_with_an_unknown_column_is_refused_with_the_nearest(
        self, spark: SparkSession, sales: str
    ) -> None:
        df = spark.read.format("pydelta").schema("amuont decimal(10,2)").load(sales)
        with pytest.raises(Exception, match="'amuont'.*does not exist.*did you mean 'amount'"):
            df.collect()

    def test_option_columns_chooses_and_orders(self, spark: SparkSession, sales: str) -> None:
        df = read(spark, sales, columns="quantity, ORDER_ID")
        assert df.columns == ["quantity", "order_id"]
        assert sorted(df.collect()) == sorted(read(spark, sales).select("quantity", "order_id").collect())

    def test_counting_rows_of_the_partition_column_alone_is_right(
        self, spark: SparkSession, sales: str
    ) -> None:
        counts = read(spark, sales, columns="country").groupBy("country").count().collect()
        assert sorted(counts) == sorted(read(spark, sales).groupBy("country").count().collect())

    def test_metadata_columns_come_as_a_struct_at_the_end(self, spark: SparkSession, sales: str) -> None:
        df = read(spark, sales, metadataColumns="file_name,row_index")
        assert df.columns[-1] == "_metadata"
        places = df.select("_metadata.file_name", "_metadata.row_index")
        assert places.distinct().count() == df.count()
        assert places.where("file_name not like '%.parquet' or row_index < 0").count() == 0

    def test_metadata_alone_can_be_read(self, spark: SparkSession, sales: str) -> None:
        schema = "_metadata struct<row_index: bigint>"
        df = spark.read.format("pydelta").schema(schema).option("metadataColumns", "row_index").load(sales)
        assert df.count() == read(spark, sales).count()
        assert df.selectExpr("min(_metadata.row_index)").first()[0] == 0

    def test_changes_can_be_projected(self, spark: SparkSession, sales: str) -> None:
        options = {"readChangeFeed": "true", "startingVersion": 1}
        df = read(spark, sales, columns="_commit_version,order_id", **options)
        assert df.columns == ["_commit_version", "order_id"]
        whole = read(spark, sales, **options).select("_commit_version", "order_id")
        assert sorted(df.collect()) == sorted(whole.collect())


class TestOptions:
    def test_unknown_option_is_refused_with_the_nearest_name(self, spark: SparkSession, sales: str) -> None:
        with pytest.raises(Exception, match="unknown read option 'verionasof'; did you mean 'versionAsOf'"):
            read(spark, sales, verionAsOf=1)

    def test_several_paths_are_refused(self, spark: SparkSession, sales: str) -> None:
        with pytest.raises(Exception, match="several paths were given, but a read takes one table"):
            spark.read.format("pydelta").load([sales, sales])

    def test_missing_path_is_refused_with_the_way_out(self, spark: SparkSession) -> None:
        with pytest.raises(Exception, match=r"option 'path' is missing.*\.load\("):
            spark.read.format("pydelta").load()

    @pytest.mark.parametrize(
        ("name", "condition"), [("nothing-here", "PATH_NOT_FOUND"), (".", "DELTA_TABLE_NOT_FOUND")]
    )
    def test_path_that_is_no_table_is_refused(
        self, spark: SparkSession, tmp_path: Path, name: str, condition: str
    ) -> None:
        with pytest.raises(Exception, match=rf"NotADeltaTableError: \[{condition}\]"):
            read(spark, str(tmp_path / name))

    def test_small_partitions_make_more_tasks(self, spark: SparkSession, sales: str) -> None:
        few = (
            spark.read.format("pydelta").option("maxPartitionBytes", "1g").load(sales).rdd.getNumPartitions()
        )
        many = (
            spark.read.format("pydelta").option("maxPartitionBytes", "1k").load(sales).rdd.getNumPartitions()
        )
        assert few <= 18 < many


class TestSecrets:
    def test_storage_options_are_not_shown_in_plans(
        self, spark: SparkSession, sales: str, capsys: Any
    ) -> None:
        df = read(spark, sales, **{"storage.secret": "hunter2-hunter2"})
        df.where("quantity > 3").explain("extended")
        df.explain("formatted")
        shown = capsys.readouterr().out
        assert "BatchScan" in shown
        assert "hunter2" not in shown + repr(df)

    def test_storage_options_are_not_shown_in_errors(self, spark: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(Exception, match="DELTA_TABLE_NOT_FOUND") as caught:
            read(spark, str(tmp_path), **{"storage.secret": "hunter2-hunter2"})
        assert "hunter2" not in str(caught.value)


class TestFaults:
    def test_missing_data_file_is_named_with_table_and_version(self, spark: SparkSession, sales: str) -> None:
        path = DeltaLog(sales).snapshot().files()["path"][0].as_py()
        Path(sales, path).unlink()
        with pytest.raises(Exception, match="FAILED_READ_FILE.FILE_NOT_EXIST") as caught:
            read(spark, sales).collect()
        text = str(caught.value)
        assert path in text and sales in text and "version 7" in text and "VACUUM" in text

    def test_null_in_a_not_null_column_is_refused_with_its_name(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        data = pa.table({"a": pa.array([1, None], pa.int32())})
        table = make_table(tmp_path / "t", struct(a="integer!"), data)
        with pytest.raises(
            Exception, match="column 'a' of version 0 of .* is NOT NULL, but a data file holds 1 nulls"
        ):
            read(spark, table).collect()

    @pytest.mark.parametrize("options", [{}, {"versionAsOf": 0}], ids=["newest", "version"])
    def test_rows_of_a_table_without_columns_are_refused(
        self, spark: SparkSession, tmp_path: Path, options: dict[str, Any]
    ) -> None:
        """Its columns can be asked for, as programs do before they write the first rows."""
        table = make_table(tmp_path / "t", struct(), pa.table({"a": [1]}))
        df = read(spark, table, **options)
        assert df.columns == [] and df.unionByName(spark.range(1), allowMissingColumns=True).columns == ["id"]
        for rows in (df.collect, df.count, df.select(F.lit(1)).collect):
            with pytest.raises(Exception, match="DELTA_READ_TABLE_WITHOUT_COLUMNS"):
                rows()

    def test_table_without_files_has_no_rows(self, spark: SparkSession, sales: str) -> None:
        df = read(spark, sales, versionAsOf=0)
        assert df.count() == 0 and df.collect() == [] and "country" in df.columns


class TestTimeZones:
    def test_local_partition_timestamps_are_read_in_the_session_zone(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        table = local_timestamps(tmp_path / "t")
        assert moment(read(spark, table)) == datetime(2024, 1, 15, 12, tzinfo=timezone.utc).timestamp()
        spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        try:
            assert moment(read(spark, table)) == datetime(2024, 1, 15, 20, tzinfo=timezone.utc).timestamp()
            in_tokyo = read(spark, table, timeZone="Asia/Tokyo")
            assert moment(in_tokyo) == datetime(2024, 1, 15, 3, tzinfo=timezone.utc).timestamp()
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")


def moment(df: DataFrame) -> float:
    return float(df.selectExpr("unix_micros(p)").first()[0]) / 1e6


def local_timestamps(path: Path) -> str:
    data = pa.table({"a": pa.array([1], pa.int32())})
    table = make_table(path, struct(a="integer", p="timestamp"), data, partitionColumns=["p"])
    log = path / "_delta_log" / f"{0:020d}.json"
    log.write_text(
        log.read_text().replace('"partitionValues": {}', '"partitionValues": {"p": "2024-01-15 12:00:00"}')
    )
    return table


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["gen-variant-basic", "gen-variant-shredded"])
def test_variants_arrive_as_spark_variants(spark: SparkSession, tmp_path: Path, name: str) -> None:
    acceptance = corpus("acceptance")
    shutil.copytree(acceptance / "tables" / name / "table", tmp_path / "t", copy_function=shutil.copy)
    record = json.loads((acceptance / "tables" / name / "case.json").read_text())
    latest = record["reads"][str(record["versions"]["latest"])]
    df = read(spark, str(tmp_path / "t"))
    column = next(f.name for f in df.schema if f.dataType.typeName() == "variant")
    text = df.selectExpr(f"to_json(`{column}`) as v").collect()
    want = pq.read_table(acceptance / "tables" / name / latest["expected"])[column].to_pylist()
    assert sorted(map(str, (row.v for row in text))) == sorted(map(str, want))
