"""`spark.read` and `spark.table`, and which way a read goes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvalidOptionError, NotADeltaTableError, SchemaError
from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF
from delta_ds.spark.engines.classic import load
from delta_ds.spark.engines.classic.jvm import NotNative
from delta_ds.spark.session.reading import read

pytestmark = pytest.mark.spark


def test_every_form_of_a_read_gives_the_rows(session: SparkSession, sales: str) -> None:
    whole = DeltaLog(sales).snapshot().scan().to_arrow().num_rows
    for df in (
        session.read.format("pydelta").load(sales),
        session.read.format("PYDELTA").option("path", sales).load(),
        session.read.load(sales, format="pydelta"),
        session.read.format("pydelta").load([sales]),
        session.read.table(f"pydelta.`{sales}`"),
        session.table(f"pydelta.`{sales}`"),
        session.table(f"spark_catalog.PYDELTA.`{sales}`"),
        DeltaTable.forPath(session, sales).toDF(),
    ):
        assert df.count() == whole


@pytest.mark.parametrize(
    ("schema", "condition"),
    [("amount int", "DELTA_FAILED_TO_MERGE_FIELDS"), ("amuont string", "DELTA_CANNOT_RESOLVE_COLUMN")],
)
@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true", "startingVersion": "1"}])
def test_a_given_schema_is_compared_where_it_is_loaded(
    session: SparkSession, sales: str, schema: str, condition: str, options: dict[str, str]
) -> None:
    with pytest.raises(SchemaError) as raised:
        session.read.format("pydelta").schema(schema).options(**options).load(sales)
    assert raised.value.condition == condition


def test_options_and_schema_reach_the_read(session: SparkSession, sales: str) -> None:
    second = DeltaLog(sales).snapshot(2).scan().to_arrow().num_rows
    assert session.read.format("pydelta").option("versionAsOf", 2).load(sales).count() == second
    assert session.read.load(sales, format="pydelta", versionAsOf=2).count() == second
    assert session.read.option("versionAsOf", 2).table(f"pydelta.`{sales}`").count() == second
    assert session.table(f"pydelta.`{sales}@v2`").count() == second
    df = session.read.format("pydelta").schema("country string, order_id long").load(sales)
    assert df.columns == ["country", "order_id"]
    assert session.read.load(sales, format="pydelta", schema="order_id long").columns == ["order_id"]


def test_read_that_makes_no_sense_is_refused(session: SparkSession, sales: str, tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError):
        session.read.format("pydelta").load(str(tmp_path / "none"))
    with pytest.raises(NotADeltaTableError):
        session.table(f"pydelta.`{tmp_path / 'none'}`")
    with pytest.raises(InvalidOptionError, match="path is given twice"):
        session.read.format("pydelta").option("path", sales).load(sales)
    with pytest.raises(InvalidOptionError, match="several paths"):
        session.read.format("pydelta").load([sales, sales])
    with pytest.raises(InvalidOptionError, match="'path' is missing"):
        session.read.format("pydelta").load()
    with pytest.raises(InvalidOptionError, match="schema cannot be given"):
        session.read.schema("order_id long").table(f"pydelta.`{sales}`")
    with pytest.raises(InvalidOptionError, match="did you mean 'versionAsOf'"):
        session.read.format("pydelta").option("versionAsOff", 1).load(sales)


def test_portable_read_says_in_its_plan_and_log_why(
    spark: SparkSession, sales: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def refuse(*_: object, **__: object) -> None:
        raise NotNative("Spark 9 is not known")

    monkeypatch.setattr(load, "load", refuse)
    with caplog.at_level(logging.WARNING, "delta_ds"):
        df = read(spark, {"path": sales})
    df.explain(extended=True)
    analyzed, optimized = capsys.readouterr().out.split("== Optimized Logical Plan ==")
    assert "Spark 9 is not known" in analyzed
    assert "Spark 9 is not known" not in optimized
    assert 'portable_scan reason="Spark 9 is not known' in caplog.text
    assert df.count() == DeltaLog(sales).snapshot().scan().to_arrow().num_rows


def test_native_scan_can_be_turned_off(
    portable: SparkSession, sales: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(load, "load", lambda spark, options, schema, **_: asked.append((options, schema)))
    for text in ("false", "FALSE "):
        portable.conf.set(NATIVE_SCAN_CONF, text)
        assert read(portable, {"path": sales}).columns
    assert not asked
    portable.conf.unset(NATIVE_SCAN_CONF)
    read(portable, {"path": sales})
    assert asked == [({"path": sales}, None)]


def test_view_of_a_read_is_read_in_sql(session: SparkSession, sales: str) -> None:
    session.read.format("pydelta").load(sales).createOrReplaceTempView("sales_view")
    try:
        assert session.sql("select count(*) from sales_view where country = 'DE'").first()[0] > 0
    finally:
        session.catalog.dropTempView("sales_view")
