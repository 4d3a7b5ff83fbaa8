"""What users do with a table, and what comes out in every kind of session: the same, but where a way says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_ds import DeltaTable
from delta_ds.spark.errors.translation import as_delta_error
from spark_tests.behaviour.spark.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's own reader and writer; tasks with this package, in a classic session; a client of a server that has no
# catalog for tables of ours.
NATIVE, PORTABLE, CONNECT = KINDS = ("native", "portable", "connect")
PATHS = ("spark.pydelta.nativeScan", "spark.pydelta.nativeWrite", "spark.pydelta.arrowWrite")
_CASE, _NO_ANSI = {"spark.sql.caseSensitive": "true"}, {"spark.sql.ansi.enabled": "false"}
_LEGACY = {"spark.sql.storeAssignmentPolicy": "LEGACY", **_NO_ANSI}
_STRICT = {"spark.sql.storeAssignmentPolicy": "STRICT"}
_REFUSED = {"spark.pydelta.unknownOptions": "refuse"}


@dataclass(frozen=True)
class Way:
    """One thing to do.

    Attributes
    ----------
    name
        For the table of `docs/connect.md`.
    run
        Does it with a session and the path of a table of two rows, `id` 1 and 2, `s` 'x' and '7'. What it gives counts,
        or the condition of its error.
    outcome
        In all kinds of sessions, but for those of `others`.
    others
        Outcomes by kind.
    settings
        Of the session.
    """

    name: str
    run: Callable[[SparkSession, str], Any]
    outcome: Any
    others: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def in_kind(self, kind: str) -> Any:
        """Its outcome in a kind of session."""
        return self.others.get(kind, self.outcome)


def outcome(spark: SparkSession, number: int, folder: str) -> Any:
    """What a way gives in a session: values, or the condition of its error."""
    way, path = WAYS[number], f"{folder}/t"
    rows = spark.sql("SELECT * FROM VALUES (1L, 'x'), (2L, '7') AS t(id, s)").coalesce(1)
    rows.write.format("pydelta").save(path)
    with session_settings(spark, way.settings):
        try:
            return way.run(spark, path)
        except Exception as error:
            ours = as_delta_error(error)
            if ours is not None:
                return ours.condition
            condition = getattr(error, "getCondition", lambda: None)()
            if condition is None:
                raise
            return condition


def _read(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def _rows(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in _read(spark, path).collect()), key=str)


def _save(query: str, mode: str = "append", **options: str) -> Callable[[SparkSession, str], Any]:
    def run(spark: SparkSession, path: str) -> Any:
        spark.sql(query).write.format("pydelta").mode(mode).options(**options).save(path)
        return _rows(spark, path)

    return run


def _write_to(query: str) -> Callable[[SparkSession, str], Any]:
    def run(spark: SparkSession, path: str) -> Any:
        spark.sql(query).writeTo(f"pydelta.`{path}`").append()
        return _rows(spark, path)

    return run


def _changed(change: Callable[[SparkSession, DeltaTable], Any]) -> Callable[[SparkSession, str], Any]:
    def run(spark: SparkSession, path: str) -> Any:
        change(spark, DeltaTable.forPath(spark, path))
        return _rows(spark, path)

    return run


def _merge(condition: str, **values: str) -> Callable[[SparkSession, DeltaTable], Any]:
    def run(spark: SparkSession, table: DeltaTable) -> Any:
        source = spark.sql("SELECT 1L AS k, 'neu' AS v")
        merge = table.alias("t").merge(source.alias("s"), condition)
        return merge.whenMatchedUpdate(set=values).execute()

    return run


def _constrained(condition: str, query: str) -> Callable[[SparkSession, str], Any]:
    def run(spark: SparkSession, path: str) -> Any:
        target = f"{path} constrained"
        spark.sql(f"SELECT * FROM ({query}) LIMIT 0").write.format("pydelta").save(target)
        DeltaTable.forPath(spark, target).addConstraint("c", condition)
        return _save(query)(spark, target)

    return run


def _sql(text: str) -> Callable[[SparkSession, str], Any]:
    def run(spark: SparkSession, path: str) -> Any:
        return sorted(tuple(row) for row in spark.sql(text.format(path=path)).collect())

    return run


def _feed(spark: SparkSession, path: str) -> Any:
    DeltaTable.forPath(spark, path).setProperties({"delta.enableChangeDataFeed": "true"})
    DeltaTable.forPath(spark, path).delete("id = 1")
    feed = _read(spark, path, readChangeFeed="true", startingVersion="1")
    return [tuple(row) for row in feed.select("id", "_change_type").collect()]


def _load_partition(spark: SparkSession, path: str) -> Any:
    _read(spark, path).write.format("pydelta").partitionBy("s").save(f"{path} parts")
    return _rows(spark, f"{path} parts/s=7")


def _stream(spark: SparkSession, path: str) -> Any:
    read = spark.readStream.format("pydelta").load(path).where("id = 2")
    writer = read.writeStream.format("pydelta").option("checkpointLocation", f"{path} checkpoint")
    assert writer.trigger(availableNow=True).start(f"{path} copy").awaitTermination(300)
    return _rows(spark, f"{path} copy")


def _unknown_of_stream(spark: SparkSession, path: str) -> Any:
    spark.readStream.format("pydelta").option("foo", "1").load(path).schema  # noqa: B018


_BOTH = [(1, "x"), (2, "7")]
_UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
_INVALID = "CAST_INVALID_INPUT"

WAYS = (
    Way("read a version", lambda spark, path: len(_read(spark, path, versionAsOf="0").collect()), 2),
    Way("read the change data feed", _feed, [(1, "delete")]),
    Way("read and write a stream", _stream, [(2, "7")]),
    Way("`load` of the folder of a partition", _load_partition, [(2, "7")], {CONNECT: "PATH_NOT_FOUND"}),
    Way("columns that `spark.read.schema` names", lambda spark, path: (
        spark.read.format("pydelta").schema("ID BIGINT").load(path).columns
    ), ["ID"]),
    Way("`_metadata.row_index` without an option", lambda spark, path: (
        sorted(row[0] for row in _read(spark, path).select("_metadata.row_index").collect())
    ), [0, 1], {PORTABLE: _UNRESOLVED, CONNECT: _UNRESOLVED}),
    Way("`df.inputFiles()`", lambda spark, path: len(_read(spark, path).inputFiles()) > 0, True, {
        PORTABLE: False, CONNECT: False,
    }),
    Way("save into a table with `mode('error')`", _save("SELECT 3L AS id", "error"), "DELTA_PATH_EXISTS"),
    Way("replaceWhere", _save("SELECT 3L AS id, 'x' AS s", "overwrite", replaceWhere="s = 'x'"), [(2, "7"), (3, "x")]),
    Way("rows that break a constraint", _constrained("id > 0", "SELECT -1L AS id"),
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    Way("UPDATE", _changed(lambda _, t: t.update("id = 1", {"s": "concat(s, id)"})), [(1, "x1"), (2, "7")]),
    Way("DELETE", _changed(lambda _, t: t.delete("s = '7'")), [(1, "x")]),
    Way("MERGE", _changed(_merge("t.id = s.k", s="s.v")), [(1, "neu"), (2, "7")]),
    Way("statements of Delta's own on paths", lambda spark, path: (
        spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()[0].version
    ), 0),
    Way("queries of tables by path", _sql("SELECT id FROM delta.`{path}` VERSION AS OF 0"), [(1,), (2,)]),
    Way("the SQL function `pydelta`", _sql("SELECT id FROM pydelta('{path}')"), [(1,), (2,)], {
        CONNECT: "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    }),
    # --- what a session says
    Way("options that do not exist, refused by the session: reads", lambda spark, path: (
        _read(spark, path, foo="1").columns
    ), "DELTA_ILLEGAL_OPTION", settings=_REFUSED),
    Way("the same: `DeltaTable.forPath`", lambda spark, path: DeltaTable.forPath(spark, path, {"foo": "1"}),
        "DELTA_ILLEGAL_OPTION", settings=_REFUSED),
    Way("the same: writes", _save("SELECT 3L AS id, 'x' AS s", foo="1"), "DELTA_ILLEGAL_OPTION", settings=_REFUSED),
    Way("the same: streams", _unknown_of_stream, "DELTA_ILLEGAL_OPTION", settings=_REFUSED),
    Way("case counts: columns of rows", _save("SELECT 3L AS ID, 'y' AS S"), [*_BOTH, (3, "y")], settings=_CASE),
    Way("case counts: columns of `writeTo`", _write_to("SELECT 3L AS ID, 'y' AS S"), [*_BOTH, (3, "y")],
        settings=_CASE),
    Way("case counts: conditions of DELETE", _changed(lambda _, t: t.delete("ID = 1")), _UNRESOLVED, settings=_CASE),
    Way("case counts: values of UPDATE", _changed(lambda _, t: t.update(set={"s": "S"})), _UNRESOLVED, settings=_CASE),
    Way("case counts: columns that UPDATE sets", _changed(lambda _, t: t.update(set={"S": "'z'"})), _UNRESOLVED,
        settings=_CASE),
    Way("case counts: conditions of MERGE", _changed(_merge("t.ID = s.k", s="s.v")),
        "DELTA_MERGE_UNRESOLVED_EXPRESSION", settings=_CASE),
    Way("case counts: conditions of `replaceWhere`",
        _save("SELECT 3L AS id, 'x' AS s", "overwrite", replaceWhere="S = 'x'"), [(2, "7"), (3, "x")], settings=_CASE),
    Way("no ANSI: values of UPDATE", _changed(lambda _, t: t.update(set={"id": "CAST(s AS BIGINT)"})),
        [(7, "7"), (None, "x")], settings=_NO_ANSI),
    Way("no ANSI: conditions of DELETE", _changed(lambda _, t: t.delete("CAST(s AS INT) IS NULL")), [(2, "7")],
        settings=_NO_ANSI),
    Way("no ANSI: values that a column cannot hold, UPDATE", _changed(lambda _, t: t.update(set={"id": "s"})),
        _INVALID, settings=_NO_ANSI),
    Way("no ANSI: the same, `writeTo`", _write_to("SELECT 'y' AS id, 'y' AS s"), _INVALID, settings=_NO_ANSI),
    Way("no ANSI: constraints", _constrained("CAST(s AS INT) IS NULL", "SELECT 'x' AS s"), _INVALID,
        settings=_NO_ANSI),
    Way("store assignment LEGACY: `writeTo`", _write_to("SELECT '3' AS id, 5 AS s"), [*_BOTH, (3, "5")],
        settings=_LEGACY),
    Way("store assignment STRICT: `writeTo`", _write_to("SELECT '3' AS id, 'y' AS s"),
        "CANNOT_UP_CAST_DATATYPE", settings=_STRICT),
)  # fmt: skip
