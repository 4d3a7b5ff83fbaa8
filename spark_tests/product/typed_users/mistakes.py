"""Mistakes of users, each with the word that a type checker says of it. Nothing runs this file."""
# ruff: noqa

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds import DeltaLog, DeltaTable, Snapshot
from delta_ds import DeltaTabel  # mistake: attr-defined
from delta_ds.testing import TableBuilder


def session(spark: SparkSession) -> None:
    delta_ds.registre(spark)  # mistake: attr-defined
    delta_ds.register()  # mistake: call-arg
    delta_ds.register(spark, True)  # mistake: call-arg
    delta_ds.register(spark).native_scna  # mistake: attr-defined
    delta_ds.register("local")  # mistake: arg-type


def table(spark: SparkSession, source: DataFrame) -> None:
    DeltaTable.forPath("/data/sales")  # mistake: call-arg arg-type
    DeltaTable("/data/sales")  # mistake: arg-type
    table = DeltaTable.forPath(spark, "/data/sales")
    table.optimise()  # mistake: attr-defined
    table.delete(3)  # mistake: arg-type
    table.update("id = 1", "name = 'x'")  # mistake: arg-type
    table.update({"name": "'x'"})  # mistake: arg-type
    table.merge("source", "t.id = s.id")  # mistake: arg-type
    table.merge(source)  # mistake: call-arg
    table.merge(source, "t.id = s.id").whenMatchedUpdateAl()  # mistake: attr-defined
    table.merge(source, "t.id = s.id").whenMatchedUpdate("s.id > 1", "name")  # mistake: arg-type
    table.optimize().executeZOrderBy(1)  # mistake: arg-type
    table.vacuum("7 days")  # mistake: arg-type
    table.restoreToVersion("3")  # mistake: arg-type
    table.renameColumn("a")  # mistake: call-arg
    table.setProperties({"delta.appendOnly": True})  # mistake: dict-item
    found: int = table.isDeltaTable(spark, "/data/sales").lower()  # mistake: attr-defined
    version: int = table.toDF()  # mistake: assignment
    DeltaTable.create(spark).addColumn("id")  # mistake: call-arg
    DeltaTable.create(spark).partitonedBy("id")  # mistake: attr-defined
    DeltaTable.create(spark).execute().merj  # mistake: attr-defined


def kernel(log: DeltaLog) -> Snapshot:
    log.snapshot("3")  # mistake: arg-type
    log.snapshot().scan(columns="id", predicat="id = 1")  # mistake: call-arg
    log.snapshot().scan("id = 1").to_arow()  # mistake: attr-defined
    log.history()[0]["version"].startswith, log.history().first()  # mistake: attr-defined attr-defined
    TableBuilder("/data/sales").checkpoint("v3")  # mistake: arg-type
    return log  # mistake: return-value
