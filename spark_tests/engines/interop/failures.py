"""What goes wrong in everyday use, as calls that delta-spark and this package have alike, on tables of the kernel."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import INTEGER, STRING, StructField, StructType
from delta_ds.kernel.transaction.alter import definitions
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.testing import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", "c"]})


@dataclass(frozen=True)
class Engine:
    """A session in which tables are of one of the two.

    Attributes
    ----------
    spark
        The session.
    format
        `delta` or `pydelta`.
    table
        The class `DeltaTable`.
    """

    spark: SparkSession
    format: str
    table: Any

    def read(self, path: str, **options: Any) -> DataFrame:
        return self.spark.read.format(self.format).options(**options).load(path)

    def write(self, rows: DataFrame, path: str, mode: str = "append", **options: Any) -> None:
        rows.write.format(self.format).mode(mode).options(**options).save(path)

    def at(self, path: str) -> Any:
        return self.table.forPath(self.spark, path)

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text)


# --- tables


def plain(path: Path) -> None:
    log = DeltaLog(path)
    log.write(_ROWS)
    log.write(_ROWS)


def partitioned(path: Path) -> None:
    DeltaLog(path).write(_ROWS, options={"partitionBy": "id"})


def guarded(path: Path) -> None:
    schema = StructType((StructField("id", INTEGER, False), StructField("s", STRING)))
    create_table(DeltaLog(path), schema)
    definitions.add_constraint(DeltaLog(path), "positive", "id > 0", lambda _: None)


def append_only(path: Path) -> None:
    DeltaLog(path).write(_ROWS, options={"delta.appendOnly": "true"})


def with_changes(path: Path) -> None:
    DeltaLog(path).write(_ROWS, options={"delta.enableChangeDataFeed": "true"})


def of_the_future(path: Path) -> None:
    TableBuilder(path).create(_ROWS.schema, reader_features=["timeMachine"])


def nothing(path: Path) -> None:
    pass


def folder(path: Path) -> None:
    path.mkdir()


TABLES: dict[str, Callable[[Path], None]] = {
    made.__name__: made
    for made in (plain, partitioned, guarded, append_only, with_changes, of_the_future, nothing, folder)
}

# --- failures: the table, and what is done to it

Failure = tuple[str, Callable[[Engine, str], Any]]

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


class Tables:
    """The tables that failures happen on: made once, copied for each."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name, make in TABLES.items():
            make(root / name)

    def of(self, failure: str) -> Path:
        """A table of its own for a failure."""
        made = self._root / FAILURES[failure][0]
        path = self._root / f"of-{list(FAILURES).index(failure)}"
        if made.exists():
            shutil.copytree(made, path)
        return path


def raised(engine: Engine, tables: Tables, failure: str) -> Exception | None:
    """What a failure raises; None: nothing."""
    path = tables.of(failure)
    try:
        FAILURES[failure][1](engine, str(path))
    except Exception as error:
        return error
    return None
