"""Installing and uninstalling: whose calls are taken over, and that all others are Spark's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2

from delta_ds import DeltaLog
from delta_ds.spark.session.integration import install, is_installed, uninstall
from delta_ds.spark.session.writing import PathWriter

pytestmark = pytest.mark.spark

PATCHED = [
    (DataFrameReader, "load"),
    (DataFrameReader, "table"),
    (DataFrameWriter, "save"),
    (DataFrameWriter, "saveAsTable"),
    (DataFrameWriter, "insertInto"),
    (ClassicFrame, "writeTo"),
    (SparkSession, "table"),
    (DataFrameWriterV2, "using"),
    (Catalog, "createTable"),
]


def methods() -> list[Any]:
    return [owner.__dict__[name] for owner, name in PATCHED]


@pytest.fixture
def bare(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without the integration; as it was before, afterwards."""
    before = is_installed(spark)
    uninstall(spark)
    yield spark
    if before:
        install(spark)
    else:
        uninstall(spark)


def test_installing_twice_and_uninstalling_leaves_sparks_own_methods(bare: SparkSession) -> None:
    before = methods()
    install(bare)
    install(bare)
    assert is_installed(bare)
    assert not any(now is then for now, then in zip(methods(), before, strict=True))
    uninstall(bare)
    assert methods() == before
    assert not is_installed(bare)
    uninstall(bare)
    assert methods() == before


def test_methods_stay_replaced_while_another_session_needs_them(bare: SparkSession) -> None:
    before = methods()
    other = bare.newSession()
    install(bare)
    install(other)
    uninstall(bare)
    assert (is_installed(bare), is_installed(other)) == (False, True)
    assert methods() != before
    uninstall(other)
    assert methods() == before


def test_replaced_methods_look_like_sparks(bare: SparkSession) -> None:
    looks = [(inspect.signature(m), m.__doc__, m.__qualname__) for m in methods()]
    install(bare)
    assert [(inspect.signature(m), m.__doc__, m.__qualname__) for m in methods()] == looks


def test_other_sessions_and_formats_are_sparks(portable: SparkSession, tmp_path: Path) -> None:
    rows = portable.range(3)
    rows.write.partitionBy().parquet(str(tmp_path / "p"))
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        rows.write.save(str(tmp_path / "p"), format="parquet")
    rows.write.format("json").mode("ignore").save(str(tmp_path / "j"))
    assert portable.read.load(str(tmp_path / "p")).count() == 3
    assert portable.read.format("json").load([str(tmp_path / "j")]).count() == 3
    rows.write.saveAsTable("session_numbers", format="parquet")
    try:
        rows.write.insertInto("session_numbers")
        assert (
            portable.table("session_numbers").count() == portable.read.table("session_numbers").count() == 6
        )
        assert isinstance(rows.writeTo("session_numbers"), DataFrameWriterV2)
    finally:
        portable.sql("drop table session_numbers")
    other = portable.newSession()
    with pytest.raises(
        Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE|DATA_SOURCE_NOT_FOUND|not support"
    ):
        other.range(1).write.format("pydelta").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_another_handle_on_the_same_session_is_the_same(portable: SparkSession) -> None:
    handle = SparkSession(portable.sparkContext, portable._jsparkSession)  # type: ignore[attr-defined]
    assert handle is not portable
    assert is_installed(handle)
    assert isinstance(handle.range(1).writeTo("pydelta.`/nowhere`"), PathWriter)


def test_default_format_of_the_session_counts(portable: SparkSession, tmp_path: Path) -> None:
    portable.conf.set("spark.sql.sources.default", "pydelta")
    try:
        portable.range(3).write.save(str(tmp_path / "t"))
        assert portable.read.load(str(tmp_path / "t")).count() == 3
    finally:
        portable.conf.unset("spark.sql.sources.default")
    assert DeltaLog(tmp_path / "t").snapshot().version == 0


def test_batches_of_a_stream_are_written_by_the_same_calls(portable: SparkSession, tmp_path: Path) -> None:
    portable.range(5).write.parquet(str(tmp_path / "in"))

    def write(batch: DataFrame, number: int) -> None:
        batch.write.format("pydelta").save(str(tmp_path / "t"))

    stream = portable.readStream.schema("id long").parquet(str(tmp_path / "in"))
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert DeltaLog(tmp_path / "t").history()[0]["operationParameters"]["mode"] == "ErrorIfExists"
