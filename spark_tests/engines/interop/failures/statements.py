"""Statements and calls that a table which is there does not allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_tests.engines.interop.failures.failure import Engine, Failure


def _table(e: Engine, path: str) -> str:
    return f"{e.format}.`{path}`"


def _sql(*texts: str, of: str = "plain") -> Failure:
    """Statements, of which the last one fails: `{t}` is the table, `{p}` its path, `{n}` a name, `{f}` the format."""

    def run(e: Engine, path: str) -> Any:
        rows = None
        for text in texts:
            said = {"t": _table(e, path), "p": path, "n": Path(path).name, "f": e.format}
            rows = e.sql(text.format(**said)).collect()
        return rows

    return of, run


def _option(call: str, of: str = "plain", **options: Any) -> Failure:
    """A read, write or stream with options that it does not take."""

    def run(e: Engine, path: str) -> Any:
        if call == "read":
            return e.read(path, **options).count()
        if call == "stream":
            return _first_batch(e, path, options)
        return e.write(e.sql("SELECT 1 id, 'x' s"), path, call, **options)

    return of, run


def _first_batch(e: Engine, path: str, options: dict[str, Any]) -> None:
    rows = e.spark.readStream.format(e.format).options(**options).load(path)
    query = (
        rows.writeStream.format("noop")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{path}-state")
        .start()
    )
    query.awaitTermination(60)


def _call(do: Callable[[Engine, str], Any], of: str = "plain") -> Failure:
    return of, do


_MAPPED = (
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5')"
)
_NESTED = "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, m MAP<STRING, INT>) USING {f}"
_GENERATED = "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (id + 1)) USING {f}"
_IDENTITY = "CREATE TABLE {t} (i BIGINT GENERATED ALWAYS AS IDENTITY, id INT) USING {f}"
_MERGE = "MERGE INTO {t} t USING (SELECT 1 id, 'x' s) u ON t.id = u.id "

_COLUMNS: dict[str, Failure] = {
    "add a column that is there": _sql("ALTER TABLE {t} ADD COLUMN id INT"),
    "add a column of another case that is there": _sql("ALTER TABLE {t} ADD COLUMN ID INT"),
    "add two columns of one name": _sql("ALTER TABLE {t} ADD COLUMNS (x INT, X INT)"),
    "add a column after one that is not there": _sql("ALTER TABLE {t} ADD COLUMN x INT AFTER more"),
    "add a column that is not null": _sql("ALTER TABLE {t} ADD COLUMN x INT NOT NULL"),
    "add a column with a space": _sql("ALTER TABLE {t} ADD COLUMN `a b` INT"),
    "add a column to a struct that is not there": _sql("ALTER TABLE {t} ADD COLUMN more.x INT"),
    "add a field to a column that is no struct": _sql("ALTER TABLE {t} ADD COLUMN id.x INT"),
    "add a column with a default": _sql("ALTER TABLE {t} ADD COLUMN x INT DEFAULT 1"),
    "add an element to an array": _sql(_NESTED, "ALTER TABLE {t} ADD COLUMN l.x INT", of="nothing"),
    "add a nested field that is there": _sql(_NESTED, "ALTER TABLE {t} ADD COLUMN s.a INT", of="nothing"),
    "drop a column that is not there": _sql(_MAPPED, "ALTER TABLE {t} DROP COLUMN more"),
    "drop a column without mapping": _sql("ALTER TABLE {t} DROP COLUMN s"),
    "drop a nested field that is not there": _sql(
        _NESTED, _MAPPED, "ALTER TABLE {t} DROP COLUMN s.more", of="nothing"
    ),
    "drop all columns": _sql(_MAPPED, "ALTER TABLE {t} DROP COLUMNS (id, s)"),
    "drop a partition column": _sql(_MAPPED, "ALTER TABLE {t} DROP COLUMN id", of="partitioned"),
    "drop a column of a constraint": _sql(_MAPPED, "ALTER TABLE {t} DROP COLUMN id", of="guarded"),
    "drop a column of a generated one": _sql(
        _GENERATED, _MAPPED, "ALTER TABLE {t} DROP COLUMN id", of="nothing"
    ),
    "rename without mapping": _sql("ALTER TABLE {t} RENAME COLUMN s TO z"),
    "rename a column that is not there": _sql(_MAPPED, "ALTER TABLE {t} RENAME COLUMN more TO z"),
    "rename to a column that is there": _sql(_MAPPED, "ALTER TABLE {t} RENAME COLUMN s TO id"),
    "rename a column of a constraint": _sql(_MAPPED, "ALTER TABLE {t} RENAME COLUMN id TO z", of="guarded"),
    "rename a column of a generated one": _sql(
        _GENERATED, _MAPPED, "ALTER TABLE {t} RENAME COLUMN id TO z", of="nothing"
    ),
    "change a type": _sql("ALTER TABLE {t} ALTER COLUMN s TYPE INT"),
    "widen a type without the property": _sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT"),
    "change a column that is not there": _sql("ALTER TABLE {t} ALTER COLUMN more TYPE BIGINT"),
    "comment on a column that is not there": _sql("ALTER TABLE {t} ALTER COLUMN more COMMENT 'c'"),
    "change a column to not null": _sql("ALTER TABLE {t} ALTER COLUMN id SET NOT NULL"),
    "change a struct as a whole": _sql(
        _NESTED, "ALTER TABLE {t} ALTER COLUMN s TYPE STRUCT<a: INT>", of="nothing"
    ),
    "change an array as a whole": _sql(
        _NESTED, "ALTER TABLE {t} ALTER COLUMN l TYPE ARRAY<BIGINT>", of="nothing"
    ),
    "change a map as a whole": _sql(
        _NESTED, "ALTER TABLE {t} ALTER COLUMN m TYPE MAP<STRING, BIGINT>", of="nothing"
    ),
    "move a column after one that is not there": _sql("ALTER TABLE {t} ALTER COLUMN id AFTER more"),
    "a default without the feature": _sql("ALTER TABLE {t} ALTER COLUMN id SET DEFAULT 1"),
    "replace columns without mapping": _sql("ALTER TABLE {t} REPLACE COLUMNS (x INT)"),
    "rename a table by its path": _sql("ALTER TABLE {t} RENAME TO {n}"),
    "set the location of a path": _sql("ALTER TABLE {t} SET LOCATION '{p}'"),
    "set the location to no table": _sql(
        "CREATE TABLE {n} USING {f} LOCATION '{p}'", "ALTER TABLE {n} SET LOCATION '{p}-none'"
    ),
    "set the location to other columns": _sql(
        "CREATE TABLE {n} USING {f} LOCATION '{p}'",
        "CREATE TABLE {f}.`{p}-other` (x INT) USING {f}",
        "ALTER TABLE {n} SET LOCATION '{p}-other'",
    ),
    "set a serde": _sql("ALTER TABLE {t} SET SERDE 'x'"),
    "add a partition": _sql("ALTER TABLE {t} ADD PARTITION (id = 1)", of="partitioned"),
    "drop a partition": _sql("ALTER TABLE {t} DROP PARTITION (id = 1)", of="partitioned"),
    "recover partitions": _sql("ALTER TABLE {t} RECOVER PARTITIONS", of="partitioned"),
    "repair": _sql("MSCK REPAIR TABLE {t}", of="partitioned"),
}
_PROPERTIES: dict[str, Failure] = {
    "a property that is not known": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.nope' = '1')"),
    "a property of a wrong value": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')"),
    "a number of a wrong value": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '0')"),
    "an interval of a wrong value": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'a while')"
    ),
    "an interval of months": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 1 month')"
    ),
    "a property of a wrong value at creation": _sql(
        "CREATE TABLE {t} (id INT) USING {f} TBLPROPERTIES ('delta.appendOnly' = 'maybe')", of="nothing"
    ),
    "a property that is not known at creation": _sql(
        "CREATE TABLE {t} (id INT) USING {f} TBLPROPERTIES ('delta.nope' = '1')", of="nothing"
    ),
    "a reserved property": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('location' = '/x')"),
    "the provider as a property": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('provider' = 'x')"),
    "a constraint as a property": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.constraints.c' = 'id > 0')"
    ),
    "unset a constraint as a property": _sql(
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.constraints.positive')", of="guarded"
    ),
    "unset a property that is not there": _sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('nope')"),
    "a feature that is not known": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.nope' = 'supported')"
    ),
    "a feature of another status": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'enabled')"
    ),
    "a lower protocol": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '2')",
    ),
    "a protocol of the future": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = '99')"),
    "a protocol that is no number": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = 'x')"
    ),
    "column mapping from name to id": _sql(
        _MAPPED, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')"
    ),
    "column mapping of no mode": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'x')"),
    "column mapping to id": _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')"),
    "the highest column id": _sql(
        _MAPPED, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.maxColumnId' = '1')"
    ),
    "statistics of a column that is not there": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'more')"
    ),
    "row tracking suspended and on": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.rowTrackingSuspended' = 'true')"
    ),
    "in-commit timestamps as a property": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.inCommitTimestampEnablementVersion' = '1')"
    ),
    "clustering as a feature": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.clustering' = 'supported')"
    ),
    "change data with its columns": _sql(
        "CREATE TABLE {t} (id INT, _change_type STRING) USING {f} "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        of="nothing",
    ),
    "iceberg compatibility without column mapping": _sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')"
    ),
}
_CONSTRAINTS: dict[str, Failure] = {
    "a constraint that is there": _sql(
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 1)", of="guarded"
    ),
    "a constraint that rows break": _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 100)"),
    "a constraint of a column that is not there": _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (more > 1)"),
    "a constraint that is no condition": _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id + 1)"),
    "a constraint with an aggregate": _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (max(id) > 1)"),
    "a constraint with a subquery": _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id IN (SELECT 1))"),
    "a constraint of no SQL": _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id = = 1)"),
    "drop a constraint that is not there": _sql("ALTER TABLE {t} DROP CONSTRAINT more"),
    "insert what breaks a constraint": _sql("INSERT INTO {t} VALUES (-1, 'a')", of="guarded"),
    "insert null into not null": _sql("INSERT INTO {t} VALUES (null, 'a')", of="guarded"),
    "update to what breaks a constraint": _sql(
        "INSERT INTO {t} VALUES (1, 'a')", "UPDATE {t} SET id = -1", of="guarded"
    ),
    "merge what breaks a constraint": _sql(
        "MERGE INTO {t} t USING (SELECT -1 id, 'x' s) u ON t.id = u.id WHEN NOT MATCHED THEN INSERT *",
        of="guarded",
    ),
}
_OWN_VALUES: dict[str, Failure] = {
    "a generated column of one that is not there": _sql(
        "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (more + 1)) USING {f}", of="nothing"
    ),
    "a generated column of a generated one": _sql(
        "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (id + 1), h INT GENERATED ALWAYS AS (g + 1)) USING {f}",
        of="nothing",
    ),
    "a generated column of another type": _sql(
        "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (cast(id AS STRING))) USING {f}", of="nothing"
    ),
    "a generated column with an aggregate": _sql(
        "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (max(id))) USING {f}", of="nothing"
    ),
    "a generated column of chance": _sql(
        "CREATE TABLE {t} (id INT, g DOUBLE GENERATED ALWAYS AS (rand())) USING {f}", of="nothing"
    ),
    "a generated column with a subquery": _sql(
        "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS ((SELECT 1))) USING {f}", of="nothing"
    ),
    "another value for a generated column": _sql(_GENERATED, "INSERT INTO {t} VALUES (1, 5)", of="nothing"),
    "update a generated column wrongly": _sql(
        _GENERATED, "INSERT INTO {t} (id) VALUES (1)", "UPDATE {t} SET g = 5", of="nothing"
    ),
    "change the type under a generated column": _sql(
        _GENERATED,
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        of="nothing",
    ),
    "a value for an identity column": _sql(_IDENTITY, "INSERT INTO {t} VALUES (7, 1)", of="nothing"),
    "update an identity column": _sql(
        _IDENTITY, "INSERT INTO {t} (id) VALUES (1)", "UPDATE {t} SET i = 5", of="nothing"
    ),
    "merge into an identity column": _sql(
        _IDENTITY,
        "MERGE INTO {t} t USING (SELECT 1 id) u ON t.id = u.id WHEN NOT MATCHED THEN INSERT (i, id) VALUES (1, 1)",
        of="nothing",
    ),
    "an identity column of another type": _sql(
        "CREATE TABLE {t} (i INT GENERATED ALWAYS AS IDENTITY, id INT) USING {f}", of="nothing"
    ),
    "an identity column of step 0": _sql(
        "CREATE TABLE {t} (i BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 0), id INT) USING {f}",
        of="nothing",
    ),
    "partition by an identity column": _sql(
        "CREATE TABLE {t} (i BIGINT GENERATED ALWAYS AS IDENTITY, id INT) USING {f} PARTITIONED BY (i)",
        of="nothing",
    ),
    "sync identity of another column": _sql(
        _IDENTITY, "ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY", of="nothing"
    ),
    "change the type of an identity column": _sql(
        _IDENTITY, "ALTER TABLE {t} ALTER COLUMN i TYPE STRING", of="nothing"
    ),
    "insert a default that is not there": _sql("INSERT INTO {t} (id, s) VALUES (DEFAULT, 'a')", of="guarded"),
    "a default at creation without the feature": _sql(
        "CREATE TABLE {t} (id INT DEFAULT 1) USING {f}", of="nothing"
    ),
}
_WRITES: dict[str, Failure] = {
    "insert too few columns": _sql("INSERT INTO {t} VALUES (1)"),
    "insert too many columns": _sql("INSERT INTO {t} VALUES (1, 'a', 2)"),
    "insert a column that is not there": _sql("INSERT INTO {t} (id, more) VALUES (1, 2)"),
    "insert a column twice": _sql("INSERT INTO {t} (id, id) VALUES (1, 2)"),
    "insert what cannot be cast": _sql("INSERT INTO {t} VALUES ('x', 'a')"),
    "insert another type": _sql("INSERT INTO {t} VALUES (array(1), 'a')"),
    "insert by name a column that is not there": _sql("INSERT INTO {t} BY NAME SELECT 1 id, 2 more"),
    "insert a partition that is none": _sql("INSERT INTO {t} PARTITION (s = 'a') SELECT 1", of="partitioned"),
    "replace where with other rows": _sql("INSERT INTO {t} REPLACE WHERE id = 1 SELECT 2 id, 'a' s"),
    "overwriteSchema and dynamic partitions": _option(
        "overwrite", "partitioned", overwriteSchema="true", partitionOverwriteMode="dynamic"
    ),
    "partitionOverwriteMode of another value": _option(
        "overwrite", "partitioned", partitionOverwriteMode="x"
    ),
    "overwriteSchema that is no boolean": _option("overwrite", overwriteSchema="maybe"),
    "replaceWhere of no SQL": _option("overwrite", replaceWhere="id = = 1"),
    "replaceWhere and overwriteSchema": _option("overwrite", replaceWhere="id = 1", overwriteSchema="true"),
    "txnVersion that is no number": _option("append", txnAppId="a", txnVersion="x"),
    "maxRecordsPerFile that is no number": _option("append", maxRecordsPerFile="x"),
    "dataChange that is no boolean": _option("append", dataChange="maybe"),
    "write void": _call(lambda e, p: e.write(e.sql("SELECT null id"), p, "append"), "nothing"),
    "write an interval": _call(
        lambda e, p: e.write(e.sql("SELECT INTERVAL '1' YEAR id"), p, "append"), "nothing"
    ),
    "write two columns of one name": _call(
        lambda e, p: e.write(e.sql("SELECT 1 a, 2 a"), p, "append"), "nothing"
    ),
    "partition by a struct": _call(
        lambda e, p: e.sql("SELECT 1 id, struct(1 a) s").write.format(e.format).partitionBy("s").save(p),
        "nothing",
    ),
    "sort without buckets": _call(
        lambda e, p: e.sql("SELECT 1 id").write.format(e.format).sortBy("id").save(p), "nothing"
    ),
    "buckets": _call(
        lambda e, p: e.sql("SELECT 1 id").write.format(e.format).bucketBy(2, "id").save(p), "nothing"
    ),
    "insertInto with partitionBy": _call(
        lambda e, p: e.sql("SELECT 1 id, 'a' s").write.partitionBy("id").insertInto(_table(e, p)),
        "partitioned",
    ),
    "insertInto too few columns": _call(lambda e, p: e.sql("SELECT 1 id").write.insertInto(_table(e, p))),
    "create by writeTo what is there": _call(
        lambda e, p: e.sql("SELECT 1 id").writeTo(_table(e, p)).create()
    ),
    "overwrite by writeTo without a condition": _call(
        lambda e, p: e.sql("SELECT 1 id, 'a' s").writeTo(_table(e, p)).overwrite(_col("more"))
    ),
    "saveAsTable that is there": _call(
        lambda e, p: (
            e.sql(f"CREATE TABLE {Path(p).name} USING {e.format} LOCATION '{p}'"),
            e.sql("SELECT 1 id, 'a' s").write.format(e.format).saveAsTable(Path(p).name),
        )
    ),
}


def _col(name: str) -> Any:
    from pyspark.sql.functions import col

    return col(name) == 1


_ROWS: dict[str, Failure] = {
    "DELETE by a column that is not there": _sql("DELETE FROM {t} WHERE more = 1"),
    "DELETE by no condition": _sql("DELETE FROM {t} WHERE id + 1"),
    "DELETE with an aggregate": _sql("DELETE FROM {t} WHERE max(id) = 1"),
    "DELETE by chance": _sql("DELETE FROM {t} WHERE rand() < 2"),
    "UPDATE a column that is not there": _sql("UPDATE {t} SET more = 1"),
    "UPDATE a column twice": _sql("UPDATE {t} SET id = 1, id = 2"),
    "UPDATE a column and its field": _sql(
        _NESTED, "UPDATE {t} SET s = named_struct('a', 1, 'b', 'x'), s.a = 2", of="nothing"
    ),
    "UPDATE with an aggregate": _sql("UPDATE {t} SET id = max(id)"),
    "UPDATE by a column that is not there": _sql("UPDATE {t} SET id = 1 WHERE more = 1"),
    "UPDATE to another type": _sql("UPDATE {t} SET id = array(1)"),
    "DELETE from a table for appends": _sql("DELETE FROM {t} WHERE id = 1", of="append_only"),
    "UPDATE a table for appends": _sql("UPDATE {t} SET s = 'x'", of="append_only"),
    "overwrite a table for appends": _option("overwrite", "append_only"),
    "TRUNCATE a table for appends": _sql("TRUNCATE TABLE {t}", of="append_only"),
    "MERGE on a column that is not there": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id) u ON t.id = u.more WHEN MATCHED THEN DELETE"
    ),
    "MERGE on an ambiguous column": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id) u ON id = 1 WHEN MATCHED THEN DELETE"
    ),
    "MERGE that sets a column that is not there": _sql(_MERGE + "WHEN MATCHED THEN UPDATE SET more = u.id"),
    "MERGE that sets by a column that is not there": _sql(_MERGE + "WHEN MATCHED THEN UPDATE SET s = u.more"),
    "MERGE that inserts a column that is not there": _sql(
        _MERGE + "WHEN NOT MATCHED THEN INSERT (id, more) VALUES (u.id, 1)"
    ),
    "MERGE that inserts by a column of the table": _sql(
        _MERGE + "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (t.id, 'a')"
    ),
    "MERGE that sets a column twice": _sql(_MERGE + "WHEN MATCHED THEN UPDATE SET s = 'a', s = 'b'"),
    "MERGE that inserts a column twice": _sql(
        _MERGE + "WHEN NOT MATCHED THEN INSERT (id, id) VALUES (u.id, u.id)"
    ),
    "MERGE that inserts fewer values": _sql(_MERGE + "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id)"),
    "MERGE by star without a column": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *"
    ),
    "MERGE that inserts by star without a column": _sql(
        "MERGE INTO {t} t USING (SELECT 9 id) u ON t.id = u.id WHEN NOT MATCHED THEN INSERT *"
    ),
    "MERGE of several rows into one": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id UNION ALL SELECT 1) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = 'y'"
    ),
    "MERGE without clauses": _sql("MERGE INTO {t} t USING (SELECT 1 id) u ON t.id = u.id"),
    "MERGE with a clause that is never reached": _sql(
        _MERGE + "WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'y'"
    ),
    "MERGE with an insert that is never reached": _sql(
        _MERGE + "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED AND u.id = 1 THEN INSERT *"
    ),
    "MERGE with an aggregate": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id) u ON max(t.id) = u.id WHEN MATCHED THEN DELETE"
    ),
    "MERGE by chance": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id) u ON t.id = u.id AND rand() < 2 WHEN MATCHED THEN DELETE"
    ),
    "MERGE with a subquery": _sql(
        "MERGE INTO {t} t USING (SELECT 1 id) u ON t.id IN (SELECT 1) WHEN MATCHED THEN DELETE"
    ),
    "MERGE by source with a column of it": _sql(
        _MERGE + "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = u.s"
    ),
    "MERGE to another type": _sql(_MERGE + "WHEN MATCHED THEN UPDATE SET id = array(1)"),
    "MERGE into a table for appends": _sql(_MERGE + "WHEN MATCHED THEN DELETE", of="append_only"),
}
_VERSIONS: dict[str, Failure] = {
    "SELECT a version that is not there": _sql("SELECT * FROM {t} VERSION AS OF 99"),
    "SELECT a version below 0": _sql("SELECT * FROM {t} VERSION AS OF -1"),
    "SELECT a version that is no number": _sql("SELECT * FROM {t} VERSION AS OF 'x'"),
    "SELECT a moment to come": _sql("SELECT * FROM {t} TIMESTAMP AS OF '2999-01-01'"),
    "SELECT a moment before the table": _sql("SELECT * FROM {t} TIMESTAMP AS OF '1999-01-01'"),
    "SELECT a moment that is none": _sql("SELECT * FROM {t} TIMESTAMP AS OF 'x'"),
    "SELECT a moment of null": _sql("SELECT * FROM {t} TIMESTAMP AS OF null"),
    "SELECT a moment by a subquery": _sql("SELECT * FROM {t} TIMESTAMP AS OF (SELECT 'x')"),
    "SELECT a moment by a column": _sql("SELECT * FROM {t} TIMESTAMP AS OF id"),
    "read a version below 0": _option("read", versionAsOf=-1),
    "read a version with a fraction": _option("read", versionAsOf="1.5"),
    "read an empty version": _option("read", versionAsOf=""),
    "read an empty moment": _option("read", timestampAsOf=""),
    "a version in the path that is not there": _call(lambda e, p: e.read(f"{p}@v99").count()),
    "a moment in the path to come": _call(lambda e, p: e.read(f"{p}@29990101000000000").count()),
    "a version in the path and as an option": _call(lambda e, p: e.read(f"{p}@v0", versionAsOf=0).count()),
    "a version of a temporary view": _sql(
        "CREATE OR REPLACE TEMPORARY VIEW v_{n} AS SELECT * FROM {t}", "SELECT * FROM v_{n} VERSION AS OF 0"
    ),
    "RESTORE to a version that is not there": _sql("RESTORE TABLE {t} TO VERSION AS OF 99"),
    "RESTORE to a version below 0": _sql("RESTORE TABLE {t} TO VERSION AS OF -1"),
    "RESTORE to a moment to come": _sql("RESTORE TABLE {t} TO TIMESTAMP AS OF '2999-01-01'"),
    "RESTORE to a moment before the table": _sql("RESTORE TABLE {t} TO TIMESTAMP AS OF '1999-01-01'"),
    "RESTORE to a moment that is none": _sql("RESTORE TABLE {t} TO TIMESTAMP AS OF 'x'"),
    "restoreToVersion below 0": _call(lambda e, p: e.at(p).restoreToVersion(-1)),
    "restoreToTimestamp before the table": _call(lambda e, p: e.at(p).restoreToTimestamp("1999-01-01")),
    "restoreToTimestamp of no moment": _call(lambda e, p: e.at(p).restoreToTimestamp("x")),
    "clone a version that is not there": _sql("CREATE TABLE {f}.`{p}-c` SHALLOW CLONE {t} VERSION AS OF 99"),
    "clone a moment to come": _sql("CREATE TABLE {f}.`{p}-c` SHALLOW CLONE {t} TIMESTAMP AS OF '2999-01-01'"),
    "clone to a table that is there": _sql(
        "CREATE TABLE {f}.`{p}-c` (x INT) USING {f}", "CREATE TABLE {f}.`{p}-c` SHALLOW CLONE {t}"
    ),
    "clone to itself": _sql("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {t}"),
    "replace a table that is not there by a clone": _sql("REPLACE TABLE {f}.`{p}-c` SHALLOW CLONE {t}"),
    "clone a temporary view": _sql(
        "CREATE OR REPLACE TEMPORARY VIEW v_{n} AS SELECT * FROM {t}",
        "CREATE TABLE {f}.`{p}-c` SHALLOW CLONE v_{n}",
    ),
    "history of a negative number of versions": _sql("DESCRIBE HISTORY {t} LIMIT -1"),
}
_CHANGES: dict[str, Failure] = {
    "changes from a version below 0": _option(
        "read", "with_changes", readChangeFeed="true", startingVersion=-1
    ),
    "changes from no number": _option("read", "with_changes", readChangeFeed="true", startingVersion="x"),
    "changes from a moment that is none": _option(
        "read", "with_changes", readChangeFeed="true", startingTimestamp="x"
    ),
    "changes from a moment to come": _option(
        "read", "with_changes", readChangeFeed="true", startingTimestamp="2999-01-01"
    ),
    "changes from two starts": _option(
        "read", "with_changes", readChangeFeed="true", startingVersion=0, startingTimestamp="2024-01-01"
    ),
    "changes to two ends": _option(
        "read",
        "with_changes",
        readChangeFeed="true",
        startingVersion=0,
        endingVersion=0,
        endingTimestamp="2999-01-01",
    ),
    "changes to an end of no number": _option(
        "read", "with_changes", readChangeFeed="true", startingVersion=0, endingVersion="x"
    ),
    "changes at a version": _option(
        "read", "with_changes", readChangeFeed="true", startingVersion=0, versionAsOf=0
    ),
    "readChangeFeed that is no boolean": _option(
        "read", "with_changes", readChangeFeed="maybe", startingVersion=0
    ),
    "table_changes without a start": _sql("SELECT * FROM table_changes_by_path('{p}')", of="with_changes"),
    "table_changes from a version to come": _sql(
        "SELECT * FROM table_changes_by_path('{p}', 9)", of="with_changes"
    ),
    "table_changes backwards": _sql("SELECT * FROM table_changes_by_path('{p}', 3, 1)", of="with_changes"),
    "table_changes from null": _sql("SELECT * FROM table_changes_by_path('{p}', null)", of="with_changes"),
    "table_changes that were not recorded": _sql("SELECT * FROM table_changes_by_path('{p}', 0)"),
    "table_changes of five arguments": _sql(
        "SELECT * FROM table_changes_by_path('{p}', 0, 1, 2, 3)", of="with_changes"
    ),
    "table_changes from another type": _sql(
        "SELECT * FROM table_changes_by_path('{p}', array(1))", of="with_changes"
    ),
}
_STREAMS: dict[str, Failure] = {
    "stream from a version to come": _option("stream", startingVersion=9),
    "stream from a version below 0": _option("stream", startingVersion=-1),
    "stream from no number": _option("stream", startingVersion="x"),
    "stream from two starts": _option("stream", startingVersion=0, startingTimestamp="2024-01-01"),
    "stream from a moment that is none": _option("stream", startingTimestamp="x"),
    "stream from a moment to come": _option("stream", startingTimestamp="2999-01-01"),
    "stream of no files a batch": _option("stream", maxFilesPerTrigger=0),
    "stream of a wrong number of files": _option("stream", maxFilesPerTrigger="x"),
    "stream of a wrong number of bytes": _option("stream", maxBytesPerTrigger="x"),
    "stream of changes that were not recorded": _option("stream", readChangeFeed="true", startingVersion=0),
    "stream of a version": _option("stream", versionAsOf=0),
    "stream of a moment": _option("stream", timestampAsOf="2024-01-01"),
    "stream excludes by no expression": _option("stream", excludeRegex="("),
    "stream with ignoreDeletes that is no boolean": _option("stream", ignoreDeletes="maybe"),
    "stream with failOnDataLoss that is no boolean": _option("stream", failOnDataLoss="maybe"),
    "stream of removed rows": _call(
        lambda e, p: (e.sql(f"DELETE FROM {_table(e, p)}"), _first_batch(e, p, {"startingVersion": 0}))
    ),
    "stream of changed rows": _call(
        lambda e, p: (
            e.sql(f"UPDATE {_table(e, p)} SET s = 'x' WHERE id = 1"),
            _first_batch(e, p, {"startingVersion": 0}),
        )
    ),
    "stream with a schema": _call(lambda e, p: e.spark.readStream.format(e.format).schema("x INT").load(p)),
    "read with a schema": _call(lambda e, p: e.spark.read.format(e.format).schema("x INT").load(p)),
    "write a stream in mode update": _call(
        lambda e, p: (
            e.spark.readStream.format(e.format)
            .load(p)
            .writeStream.format(e.format)
            .outputMode("update")
            .option("checkpointLocation", f"{p}-state")
            .start(f"{p}-to")
        )
    ),
    "write a stream without checkpoint": _call(
        lambda e, p: e.spark.readStream.format(e.format).load(p).writeStream.format(e.format).start(f"{p}-to")
    ),
    "write a stream of other columns": _call(
        lambda e, p: (
            e.spark.readStream.format(e.format)
            .load(p)
            .selectExpr("id", "s", "1 more")
            .writeStream.format(e.format)
            .trigger(availableNow=True)
            .option("checkpointLocation", f"{p}-state")
            .start(p)
            .awaitTermination(60)
        )
    ),
    "write a stream without a path": _call(
        lambda e, p: (
            e.spark.readStream.format(e.format)
            .load(p)
            .writeStream.format(e.format)
            .option("checkpointLocation", f"{p}-state")
            .start()
        )
    ),
}
_CREATION: dict[str, Failure] = {
    "CREATE a table that is there with other columns": _sql("CREATE TABLE {t} (x INT) USING {f}"),
    "CREATE a table that is there": _sql("CREATE TABLE {t} (id INT, s STRING) USING {f}"),
    "CREATE a name over a table with other columns": _sql(
        "CREATE TABLE {n} (x INT) USING {f} LOCATION '{p}'"
    ),
    "CREATE a name over a table with other partitions": _sql(
        "CREATE TABLE {n} (id INT, s STRING) USING {f} PARTITIONED BY (id) LOCATION '{p}'"
    ),
    "CREATE a name over a table with other properties": _sql(
        "CREATE TABLE {n} USING {f} LOCATION '{p}' TBLPROPERTIES ('a' = 'b')"
    ),
    "CREATE a name over a table with other clustering": _sql(
        "CREATE TABLE {n} (id INT, s STRING) USING {f} CLUSTER BY (id) LOCATION '{p}'"
    ),
    "CREATE a name that is there": _sql(
        "CREATE TABLE {n} USING {f} LOCATION '{p}'", "CREATE TABLE {n} (id INT) USING {f}"
    ),
    "CREATE a table without columns": _sql("CREATE TABLE {n} USING {f}", of="nothing"),
    "CREATE a table with columns of one name": _sql(
        "CREATE TABLE {t} (a INT, A INT) USING {f}", of="nothing"
    ),
    "CREATE a table with a space in a column": _sql("CREATE TABLE {t} (`a b` INT) USING {f}", of="nothing"),
    "CREATE a table partitioned by what is not there": _sql(
        "CREATE TABLE {t} (id INT) USING {f} PARTITIONED BY (more)", of="nothing"
    ),
    "CREATE a table partitioned by all columns": _sql(
        "CREATE TABLE {t} (id INT) USING {f} PARTITIONED BY (id)", of="nothing"
    ),
    "CREATE a table partitioned by an expression": _sql(
        "CREATE TABLE {t} (id INT, d DATE) USING {f} PARTITIONED BY (years(d))", of="nothing"
    ),
    "CREATE a table clustered by what is not there": _sql(
        "CREATE TABLE {t} (id INT) USING {f} CLUSTER BY (more)", of="nothing"
    ),
    "CREATE a table clustered by five columns": _sql(
        "CREATE TABLE {t} (a INT, b INT, c INT, d INT, e INT) USING {f} CLUSTER BY (a, b, c, d, e)",
        of="nothing",
    ),
    "CREATE a table clustered by a boolean": _sql(
        "CREATE TABLE {t} (id BOOLEAN) USING {f} CLUSTER BY (id)", of="nothing"
    ),
    "CREATE a table clustered and partitioned": _sql(
        "CREATE TABLE {t} (id INT, s STRING) USING {f} PARTITIONED BY (s) CLUSTER BY (id)", of="nothing"
    ),
    "CREATE a table with buckets": _sql(
        "CREATE TABLE {t} (id INT) USING {f} CLUSTERED BY (id) INTO 2 BUCKETS", of="nothing"
    ),
    "CREATE a path at another location": _sql(
        "CREATE TABLE {t} (id INT) USING {f} LOCATION '{p}-x'", of="nothing"
    ),
    "CREATE an external table without location": _sql(
        "CREATE EXTERNAL TABLE {n} (id INT) USING {f}", of="nothing"
    ),
    "CREATE a table with a primary key": _sql(
        "CREATE TABLE {t} (id INT PRIMARY KEY) USING {f}", of="nothing"
    ),
    "CREATE a temporary table": _sql("CREATE TEMPORARY TABLE {n} (id INT) USING {f}", of="nothing"),
    "REPLACE a name that is not there": _sql("REPLACE TABLE {n} (id INT) USING {f}", of="nothing"),
    "REPLACE a path that is not there": _sql("REPLACE TABLE {t} (id INT) USING {f}", of="nothing"),
    "DROP a name that is not there": _sql("DROP TABLE {n}", of="nothing"),
    "DROP a path that is not there": _sql("DROP TABLE {t}", of="nothing"),
    "CREATE over a view": _sql(
        "CREATE OR REPLACE TEMPORARY VIEW {n} AS SELECT 1 id", "INSERT INTO {n} VALUES (1)", of="nothing"
    ),
    "a builder of a name and a path that is there": _call(
        lambda e, p: (
            e.table.create(e.spark).tableName(Path(p).name).location(p).addColumn("x", "INT").execute()
        )
    ),
    "a builder with a column twice": _call(
        lambda e, p: (
            e.table.create(e.spark).location(p).addColumn("x", "INT").addColumn("X", "INT").execute()
        ),
        "nothing",
    ),
    "a builder without columns": _call(lambda e, p: e.table.create(e.spark).location(p).execute(), "nothing"),
    "a builder with a type that is none": _call(
        lambda e, p: e.table.create(e.spark).location(p).addColumn("x", "nope").execute(), "nothing"
    ),
    "a builder partitioned by what is not there": _call(
        lambda e, p: (
            e.table.create(e.spark).location(p).addColumn("x", "INT").partitionedBy("more").execute()
        ),
        "nothing",
    ),
    "a builder of partitions and clustering": _call(
        lambda e, p: (
            e.table.create(e.spark)
            .location(p)
            .addColumn("x", "INT")
            .addColumn("y", "INT")
            .partitionedBy("x")
            .clusterBy("y")
            .execute()
        ),
        "nothing",
    ),
    "a builder with a property that is not known": _call(
        lambda e, p: (
            e.table.create(e.spark).location(p).addColumn("x", "INT").property("delta.nope", "1").execute()
        ),
        "nothing",
    ),
    "a builder with a generated column of nothing": _call(
        lambda e, p: (
            e.table.create(e.spark).location(p).addColumn("x", "INT", generatedAlwaysAs="more + 1").execute()
        ),
        "nothing",
    ),
}
_MAINTENANCE: dict[str, Failure] = {
    "VACUUM too early": _sql("VACUUM {t} RETAIN 0 HOURS"),
    "VACUUM lite too early": _sql("VACUUM {t} LITE RETAIN 0 HOURS"),
    "OPTIMIZE by a column that is not there": _sql("OPTIMIZE {t} ZORDER BY (more)"),
    "OPTIMIZE by a partition column": _sql("OPTIMIZE {t} ZORDER BY (id)", of="partitioned"),
    "OPTIMIZE where of a column that is no partition": _sql("OPTIMIZE {t} WHERE id = 1"),
    "OPTIMIZE where of a column that is not there": _sql("OPTIMIZE {t} WHERE more = 1"),
    "OPTIMIZE FULL of a table without clustering": _sql("OPTIMIZE {t} FULL"),
    "OPTIMIZE by a column of a clustered table": _sql(
        "CREATE TABLE {t} (id INT, s STRING) USING {f} CLUSTER BY (id)",
        "OPTIMIZE {t} ZORDER BY (s)",
        of="nothing",
    ),
    "OPTIMIZE where of a clustered table": _sql(
        "CREATE TABLE {t} (id INT, s STRING) USING {f} CLUSTER BY (id)",
        "OPTIMIZE {t} WHERE id = 1",
        of="nothing",
    ),
    "cluster a partitioned table": _sql("ALTER TABLE {t} CLUSTER BY (s)", of="partitioned"),
    "cluster by what is not there": _sql("ALTER TABLE {t} CLUSTER BY (more)"),
    "cluster a table without clustering": _sql("ALTER TABLE {t} CLUSTER BY (id)"),
    "GENERATE something else": _sql("GENERATE something FOR TABLE {t}"),
    "DROP FEATURE that is not known": _sql("ALTER TABLE {t} DROP FEATURE nope"),
    "DROP FEATURE that is not there": _sql("ALTER TABLE {t} DROP FEATURE deletionVectors"),
    "DROP FEATURE that cannot be dropped": _sql("ALTER TABLE {t} DROP FEATURE appendOnly"),
    "SHOW PARTITIONS of a table without": _sql("SHOW PARTITIONS {t}"),
    "SHOW PARTITIONS of a column that is none": _sql(
        "SHOW PARTITIONS {t} PARTITION (s = 'a')", of="partitioned"
    ),
    "TRUNCATE a partition": _sql("TRUNCATE TABLE {t} PARTITION (id = 1)", of="partitioned"),
    "ANALYZE": _sql("ANALYZE TABLE {t} COMPUTE STATISTICS"),
    "CREATE INDEX": _sql("CREATE INDEX i ON {t} (id)"),
    "REORG to a wrong purpose": _sql("REORG TABLE {t} APPLY (NOPE)"),
    "convert a table of ours": _sql("CONVERT TO DELTA {t}"),
    "convert partitions without their types": _call(
        lambda e, p: (
            e.sql("SELECT 1 id, 'a' s").write.partitionBy("s").parquet(f"{p}-files"),
            e.sql(f"CONVERT TO DELTA parquet.`{p}-files`"),
        ),
        "nothing",
    ),
    "convert with partitions that are none": _sql(
        "CONVERT TO DELTA parquet.`{p}` PARTITIONED BY (x INT)", of="parquet_files"
    ),
    "upgrade to no protocol": _call(lambda e, p: e.at(p).upgradeTableProtocol(99, 99)),
    "upgrade to a lower protocol": _call(
        lambda e, p: (e.at(p).upgradeTableProtocol(3, 7), e.at(p).upgradeTableProtocol(1, 2))
    ),
    "detail of a table of a later Delta": _call(lambda e, p: e.at(p).detail().collect(), "of_the_future"),
    "write to a table of a later Delta": _option("append", "of_the_future"),
}

FAILURES: dict[str, Failure] = {
    **_COLUMNS,
    **_PROPERTIES,
    **_CONSTRAINTS,
    **_OWN_VALUES,
    **_WRITES,
    **_ROWS,
    **_VERSIONS,
    **_CHANGES,
    **_STREAMS,
    **_CREATION,
    **_MAINTENANCE,
}
