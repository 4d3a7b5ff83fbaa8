"""Pushed filters skip files where that is safe, and change no answer anywhere else."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as filters
from pyspark.sql.datasource import DataSourceReader

import delta_ds
from delta_ds import DeltaLog
from delta_ds.spark.base.query_needs import PUSHDOWN_CONF, PUSHDOWN_WORKER, plans_each_scan
from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF
from delta_ds.spark.engines.portable.batch import DeltaReader, SlicePartition
from delta_ds.spark.engines.portable.source import DeltaSource, PushdownSource

CONF = PUSHDOWN_CONF


def read(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("pydelta").load(path)


def remove_files(path: str, predicate: str) -> None:
    """Delete the data files that a predicate keeps: reading one of them fails."""
    for file in DeltaLog(path).snapshot().files(predicate)["path"].to_pylist():
        Path(path, file).unlink()


@pytest.mark.spark
@pytest.mark.usefixtures("plain")
class TestInSpark:
    @pytest.fixture
    def vouching(self, spark: SparkSession) -> Iterator[SparkSession]:
        """The session after `register(spark, pushdown=True)`, whose native scan is off."""
        delta_ds.register(spark, pushdown=True)
        spark.conf.set(NATIVE_SCAN_CONF, "false")
        yield spark
        spark.conf.unset(NATIVE_SCAN_CONF)
        spark.conf.unset(CONF)
        delta_ds.unregister(spark)
        delta_ds.register(spark)

    def test_files_are_skipped_where_the_session_vouches(self, vouching: SparkSession, sales: str) -> None:
        want = DeltaLog(sales).snapshot().scan("country = 'DE' and quantity >= 5").to_arrow().num_rows
        remove_files(sales, "country <> 'DE'")
        assert read(vouching, sales).where("country = 'DE' and quantity >= 5").count() == want > 0

    def test_files_are_skipped_by_statistics_too(self, vouching: SparkSession, sales: str) -> None:
        predicate = "order_id >= 4000 and order_id < 5000"
        want = DeltaLog(sales).snapshot().scan(predicate).to_arrow().num_rows
        kept = set(DeltaLog(sales).snapshot().files(predicate)["path"].to_pylist())
        for file in set(DeltaLog(sales).snapshot().files()["path"].to_pylist()) - kept:
            Path(sales, file).unlink()
        assert read(vouching, sales).where(predicate).count() == want > 0

    def test_filters_that_keep_no_file_give_no_rows(self, vouching: SparkSession, sales: str) -> None:
        assert read(vouching, sales).where("country = 'XX'").collect() == []

    def test_switching_the_conf_off_again_reads_every_file(self, vouching: SparkSession, sales: str) -> None:
        vouching.conf.set(CONF, "false")
        want = DeltaLog(sales).snapshot().scan("country = 'DE'").to_arrow().num_rows
        assert read(vouching, sales).where("country = 'DE'").count() == want
        remove_files(sales, "country <> 'DE'")
        with pytest.raises(Exception, match="FILE_NOT_EXIST"):
            read(vouching, sales).where("country = 'DE'").count()

    @pytest.mark.skipif(plans_each_scan(), reason="this Spark plans each scan by itself")
    def test_conf_alone_does_not_skip_files(self, spark: SparkSession, sales: str) -> None:
        spark.conf.set(CONF, "true")
        try:
            remove_files(sales, "country <> 'DE'")
            with pytest.raises(Exception, match="FILE_NOT_EXIST"):
                read(spark, sales).where("country = 'DE'").count()
        finally:
            spark.conf.unset(CONF)


class TestReader:
    """What the source does in each of Spark's planning processes, played in this one."""

    @pytest.fixture
    def pushing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """This process passes for the one in which Spark pushes filters."""
        monkeypatch.setitem(sys.modules, PUSHDOWN_WORKER, types.ModuleType("worker"))

    def reader(self, source: type[DeltaSource], path: str) -> DeltaReader:
        instance = source({"path": path})
        reader = instance.reader(instance.schema())
        assert isinstance(reader, DeltaReader)
        return reader

    def test_reader_overrides_nothing_in_the_process_without_pushdown(self, sales: str) -> None:
        reader = self.reader(PushdownSource, sales)
        assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters

    @pytest.mark.usefixtures("pushing")
    def test_all_filters_go_back_to_spark(self, sales: str) -> None:
        reader = self.reader(PushdownSource, sales)
        pushed = [filters.EqualTo(("country",), "DE"), filters.StringContains(("product",), "e")]
        assert reader.pushFilters(list(pushed)) == pushed

    @pytest.mark.usefixtures("pushing")
    def test_pushed_filters_leave_only_files_that_may_match(self, sales: str) -> None:
        reader = self.reader(PushdownSource, sales)
        assert len(slices(reader)) == 18
        reader.pushFilters([filters.EqualTo(("country",), "DE"), filters.GreaterThan(("order_id",), 3999)])
        kept = DeltaLog(sales).snapshot().files("country = 'DE' and order_id > 3999")
        assert 0 < len(slices(reader)) == kept.num_rows < 6

    @pytest.mark.usefixtures("pushing")
    def test_filters_on_changes_are_left_to_spark(self, sales: str) -> None:
        source = PushdownSource({"path": sales, "readChangeFeed": "true", "startingVersion": "1"})
        reader = source.reader(source.schema())
        before = len(slices(reader))
        pushed = [filters.EqualTo(("_change_type",), "insert"), filters.EqualTo(("country",), "DE")]
        assert reader.pushFilters(list(pushed)) == pushed
        assert len(slices(reader)) == before > 0

    @pytest.mark.usefixtures("pushing")
    def test_spark_that_plans_each_scan_by_itself_needs_nobody_to_vouch(
        self, sales: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert not skips(self.reader(DeltaSource, sales)) or plans_each_scan()
        monkeypatch.setattr(DataSourceReader, "pushLimit", lambda self, limit: False, raising=False)
        assert skips(self.reader(DeltaSource, sales))


def slices(reader: DataSourceReader) -> list[object]:
    partitions = reader.partitions()
    assert all(isinstance(p, SlicePartition) for p in partitions)
    return [piece for p in partitions if isinstance(p, SlicePartition) for piece in p.slices]


def skips(reader: DeltaReader) -> bool:
    before = len(slices(reader))
    reader.pushFilters([filters.EqualTo(("country",), "DE")])
    return len(slices(reader)) < before
