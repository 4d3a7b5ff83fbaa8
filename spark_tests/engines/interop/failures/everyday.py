"""What goes wrong in everyday use, as calls that delta-spark and this package have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_tests.engines.interop.failures.failure import Engine, Failure

_BOTH = "t.id = u.id"


def _updates(e: Engine) -> DataFrame:
    return e.sql("SELECT 1 id, 'x' s")


def _merge(e: Engine, path: str, on: str = _BOTH) -> Any:
    return e.at(path).alias("t").merge(_updates(e).alias("u"), on)


FAILURES: dict[str, Failure] = {
    # reading
    "read a path that is not there": ("nothing", lambda e, p: e.read(p).count()),
    "read a folder that is no table": ("folder", lambda e, p: e.read(p).count()),
    "forPath of a path that is not there": ("nothing", lambda e, p: e.at(p)),
    "read a version that is not there": ("plain", lambda e, p: e.read(p, versionAsOf=99).count()),
    "read a moment to come": ("plain", lambda e, p: e.read(p, timestampAsOf="2999-01-01").count()),
    "read a moment before the table": ("plain", lambda e, p: e.read(p, timestampAsOf="1999-01-01").count()),
    "read a version that is no number": ("plain", lambda e, p: e.read(p, versionAsOf="x").count()),
    "read a moment that is none": ("plain", lambda e, p: e.read(p, timestampAsOf="x").count()),
    "read a version and a moment": (
        "plain",
        lambda e, p: e.read(p, versionAsOf=0, timestampAsOf="2024-01-01").count(),
    ),
    "read a table of a later Delta": ("of_the_future", lambda e, p: e.read(p).count()),
    "changes that were not recorded": (
        "plain",
        lambda e, p: e.read(p, readChangeFeed="true", startingVersion=0).count(),
    ),
    "changes from nowhere": ("with_changes", lambda e, p: e.read(p, readChangeFeed="true").count()),
    "changes backwards": (
        "with_changes",
        lambda e, p: e.read(p, readChangeFeed="true", startingVersion=3, endingVersion=1).count(),
    ),
    "changes to come": (
        "with_changes",
        lambda e, p: e.read(p, readChangeFeed="true", startingVersion=9).count(),
    ),
    # writing
    "append another column": ("plain", lambda e, p: e.write(e.sql("SELECT 1 id, 'x' s, 2 more"), p)),
    "append another type": ("plain", lambda e, p: e.write(e.sql("SELECT array(1) id, 'x' s"), p)),
    "merge schemas that do not go together": (
        "plain",
        lambda e, p: e.write(e.sql("SELECT array(1) id"), p, mergeSchema="true"),
    ),
    "overwrite with another schema": (
        "plain",
        lambda e, p: e.write(e.sql("SELECT 1 id, 2 more"), p, "overwrite"),
    ),
    "write over a table that is there": ("plain", lambda e, p: e.write(_updates(e), p, "error")),
    "partition a table anew": (
        "plain",
        lambda e, p: _updates(e).write.format(e.format).mode("append").partitionBy("id").save(p),
    ),
    "partition by a column that is not there": (
        "nothing",
        lambda e, p: _updates(e).write.format(e.format).partitionBy("more").save(p),
    ),
    "partition by all columns": (
        "nothing",
        lambda e, p: _updates(e).write.format(e.format).partitionBy("id", "s").save(p),
    ),
    "replaceWhere with other rows": (
        "plain",
        lambda e, p: e.write(_updates(e), p, "overwrite", replaceWhere="id = 2"),
    ),
    "replaceWhere of a column that is not there": (
        "plain",
        lambda e, p: e.write(_updates(e), p, "overwrite", replaceWhere="more = 2"),
    ),
    "replaceWhere of partitions written dynamically": (
        "partitioned",
        lambda e, p: e.write(
            _updates(e), p, "overwrite", replaceWhere="id = 1", partitionOverwriteMode="dynamic"
        ),
    ),
    "mergeSchema that is no boolean": ("plain", lambda e, p: e.write(_updates(e), p, mergeSchema="maybe")),
    "a transaction without version": ("plain", lambda e, p: e.write(_updates(e), p, txnAppId="a")),
    "columns of one name": ("plain", lambda e, p: e.write(e.sql("SELECT 1 id, 2 ID"), p)),
    "a column name with a space": ("nothing", lambda e, p: e.write(e.sql("SELECT 1 `a b`"), p)),
    "break a constraint": ("guarded", lambda e, p: e.write(e.sql("SELECT -1 id, 'x' s"), p)),
    "break NOT NULL and a constraint": (
        "guarded",
        lambda e, p: e.write(e.sql("SELECT if(rand() < 2, null, 1) id, 'x' s"), p),
    ),
    "writeTo append to nothing": (
        "nothing",
        lambda e, p: _updates(e).writeTo(f"{e.format}.`{p}`").append(),
    ),
    # rows
    "delete by a column that is not there": ("plain", lambda e, p: e.at(p).delete("more = 1")),
    "delete by no condition": ("plain", lambda e, p: e.at(p).delete("id + 1")),
    "delete by no SQL": ("plain", lambda e, p: e.at(p).delete("id = = 1")),
    "delete from a table for appends": ("append_only", lambda e, p: e.at(p).delete("id = 1")),
    "update by a column that is not there": ("plain", lambda e, p: e.at(p).update("more = 1", {"s": "'y'"})),
    "update a column that is not there": ("plain", lambda e, p: e.at(p).update("id = 1", {"more": "'y'"})),
    "update by an expression of nothing": ("plain", lambda e, p: e.at(p).update("id = 1", {"s": "more"})),
    "update to what is no number": ("plain", lambda e, p: e.at(p).update("id = 1", {"id": "s"})),
    "merge on a column that is not there": (
        "plain",
        lambda e, p: _merge(e, p, "t.id = u.more").whenMatchedDelete().execute(),
    ),
    "merge on an ambiguous column": (
        "plain",
        lambda e, p: _merge(e, p, "id = 1").whenMatchedDelete().execute(),
    ),
    "merge that updates by nothing": (
        "plain",
        lambda e, p: _merge(e, p).whenMatchedUpdate(set={"s": "u.more"}).execute(),
    ),
    "merge that inserts a column that is not there": (
        "plain",
        lambda e, p: _merge(e, p).whenNotMatchedInsert(values={"more": "u.id"}).execute(),
    ),
    "merge of several rows into one": (
        "plain",
        lambda e, p: (
            e.at(p)
            .alias("t")
            .merge(e.sql("SELECT 1 id UNION ALL SELECT 1").alias("u"), _BOTH)
            .whenMatchedUpdate(set={"s": "'y'"})
            .execute()
        ),
    ),
    "merge without clauses": ("plain", lambda e, p: _merge(e, p).execute()),
    "merge with a clause that is never reached": (
        "plain",
        lambda e, p: _merge(e, p).whenMatchedDelete().whenMatchedUpdateAll().execute(),
    ),
    # the table
    "vacuum too early": ("plain", lambda e, p: e.at(p).vacuum(0)),
    "vacuum the future": ("plain", lambda e, p: e.at(p).vacuum(-1)),
    "restore a version that is not there": ("plain", lambda e, p: e.at(p).restoreToVersion(99)),
    "restore a moment to come": ("plain", lambda e, p: e.at(p).restoreToTimestamp("2999-01-01")),
    "optimize by a column of no partition": (
        "plain",
        lambda e, p: e.at(p).optimize().where("id = 1").executeCompaction(),
    ),
    "arrange by a column that is not there": (
        "plain",
        lambda e, p: e.at(p).optimize().executeZOrderBy("more"),
    ),
    "arrange by a partition column": ("partitioned", lambda e, p: e.at(p).optimize().executeZOrderBy("id")),
    "generate something else": ("plain", lambda e, p: e.at(p).generate("something")),
    "support no feature": ("plain", lambda e, p: e.at(p).addFeatureSupport("timeMachine")),
    "drop a feature that is not there": (
        "plain",
        lambda e, p: e.at(p).dropFeatureSupport("deletionVectors"),
    ),
    "create a table that is there": (
        "plain",
        lambda e, p: e.table.create(e.spark).location(p).addColumn("id", "int").execute(),
    ),
    "create a table nowhere": (
        "nothing",
        lambda e, p: e.table.create(e.spark).addColumn("id", "int").execute(),
    ),
    "replace a table that is not there": (
        "nothing",
        lambda e, p: e.table.replace(e.spark).location(p).addColumn("id", "int").execute(),
    ),
    "convert what is no folder of Parquet files": (
        "folder",
        lambda e, p: e.table.convertToDelta(e.spark, f"json.`{p}`"),
    ),
    "convert an empty folder": ("folder", lambda e, p: e.table.convertToDelta(e.spark, f"parquet.`{p}`")),
}
