"""What notebooks show of tables in a session: without a job, and without asking the table's store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable
from delta_ds.kernel.storage.local import LocalStorage


def jobs(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup())


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a store is asked for what is only to be shown")


def test_a_table_is_shown_without_a_job_and_without_its_store(
    spark: SparkSession, sales: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = DeltaTable.forPath(spark, sales)
    for name in ("read", "open", "status", "exists", "list_from"):
        monkeypatch.setattr(LocalStorage, name, refuse)
    before = jobs(spark)
    html = table._repr_html_()
    assert jobs(spark) == before
    for text in (sales, "version 7", "order_id", "decimal(10,2)", "country", "detail() and history()"):
        assert text in html
    assert repr(table) == f"DeltaTable('{sales}')"


def test_the_history_is_shown_with_its_rows(spark: SparkSession, sales: str) -> None:
    found: Any = DeltaTable.forPath(spark, sales).history(3)
    before = jobs(spark)
    html = found._repr_html_()
    assert jobs(spark) == before
    assert "History, 3 commits" in html and "MERGE" in html
    # What is made of it is a DataFrame like any other.
    assert not found.where("version = 6")._repr_html_()


def test_names_of_columns_and_paths_are_text(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "<script>")
    options = {"delta.columnMapping.mode": "name"}
    spark.range(1).withColumnRenamed("id", "<b>").write.format("pydelta").options(**options).save(path)
    html = DeltaTable.forPath(spark, path)._repr_html_()
    assert "&lt;script&gt;" in html and "&lt;b&gt;" in html and "<b>" not in html and "<script" not in html


def test_the_registration_is_shown_as_a_table(spark: SparkSession) -> None:
    registration = delta_ds.register(spark)
    html = registration._repr_html_()
    for name in ("native scan", "workers", "session integration", f"Spark {spark.version} (classic)"):
        assert name in html


def test_pictures_are_those_of_the_kernel_and_errors_are_of_spark(spark: SparkSession, sales: str) -> None:
    from pyspark.errors import PySparkException

    table = DeltaTable.forPath(spark, sales)
    before = jobs(spark)
    titles = [figure.axes[0].get_title() for figure in (table.plot.history(), table.plot.layout("amount"))]
    assert jobs(spark) == before
    kernel = delta_ds.DeltaLog(sales).plot
    assert titles == [each.axes[0].get_title() for each in (kernel.history(), kernel.layout("amount"))]
    with pytest.raises(delta_ds.SchemaError, match="did you mean 'amount'") as raised:
        table.plot.layout("amont")
    assert isinstance(raised.value, PySparkException)
