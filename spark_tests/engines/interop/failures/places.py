"""Statements and calls on what is no table: each of them, on every kind of place and name where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_tests.engines.interop.failures.failure import Engine, Failure

# How each place is named: by its path, or by a name that is made for it.
Place = Callable[[Any, str], str]


def _by_path(e: Engine, path: str) -> str:
    return f"{e.format}.`{path}`"


def _name(path: str) -> str:
    return Path(path).name.replace("-", "_")


def _unknown(e: Engine, path: str) -> str:
    return _name(path)


def _parquet_table(e: Engine, path: str) -> str:
    e.sql(f"CREATE TABLE {_name(path)} USING parquet LOCATION '{path}' AS SELECT 1 id, 'a' s")
    return _name(path)


def _view(e: Engine, path: str) -> str:
    e.sql(f"CREATE OR REPLACE TEMPORARY VIEW {_name(path)} AS SELECT 1 id, 'a' s")
    return _name(path)


def _gone(e: Engine, path: str, what: str) -> str:
    e.sql(f"CREATE TABLE {_name(path)} USING {e.format} LOCATION '{path}'")
    shutil.rmtree(Path(path) / what)
    if e.format == "delta":  # which remembers tables
        e.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    return _name(path)


def _without_folder(e: Engine, path: str) -> str:
    return _gone(e, path, "")


def _without_log(e: Engine, path: str) -> str:
    return _gone(e, path, "_delta_log")


PLACES: dict[str, tuple[str, Place]] = {
    "a path that is not there": ("nothing", _by_path),
    "an empty folder": ("folder", _by_path),
    "a folder of Parquet files": ("parquet_files", _by_path),
    "a name that is not there": ("nothing", _unknown),
    "a table of Parquet files": ("nothing", _parquet_table),
    "a temporary view": ("nothing", _view),
}
# An entry of the catalog whose table is gone; what Spark resolves by itself is told apart by paths only.
_GONE = {
    "a table whose folder is gone": _without_folder,
    "a table whose log is gone": _without_log,
}
_ON_GONE = (
    "SELECT", "DELETE", "UPDATE", "MERGE", "INSERT", "INSERT OVERWRITE", "DESCRIBE HISTORY", "DESCRIBE DETAIL",
    "OPTIMIZE", "VACUUM", "REORG", "GENERATE", "ADD CONSTRAINT", "DROP CONSTRAINT", "DROP FEATURE", "a view",
)  # fmt: skip
STATEMENTS = {
    "SELECT": "SELECT * FROM {t}",
    "DELETE": "DELETE FROM {t} WHERE id = 1",
    "UPDATE": "UPDATE {t} SET id = 1",
    "MERGE": "MERGE INTO {t} t USING (SELECT 1 id) u ON t.id = u.id WHEN MATCHED THEN DELETE",
    "INSERT": "INSERT INTO {t} VALUES (1, 'a')",
    "INSERT OVERWRITE": "INSERT OVERWRITE {t} VALUES (1, 'a')",
    "TRUNCATE": "TRUNCATE TABLE {t}",
    "DESCRIBE": "DESCRIBE TABLE {t}",
    "DESCRIBE EXTENDED": "DESCRIBE TABLE EXTENDED {t}",
    "DESCRIBE HISTORY": "DESCRIBE HISTORY {t}",
    "DESCRIBE DETAIL": "DESCRIBE DETAIL {t}",
    "OPTIMIZE": "OPTIMIZE {t}",
    "VACUUM": "VACUUM {t}",
    "VACUUM DRY RUN": "VACUUM {t} DRY RUN",
    "REORG": "REORG TABLE {t} APPLY (PURGE)",
    "GENERATE": "GENERATE symlink_format_manifest FOR TABLE {t}",
    "RESTORE": "RESTORE TABLE {t} TO VERSION AS OF 0",
    "SHALLOW CLONE": "CREATE TABLE {f}.`{p}_clone` SHALLOW CLONE {t}",
    "VERSION AS OF": "SELECT * FROM {t} VERSION AS OF 0",
    "ALTER ADD COLUMN": "ALTER TABLE {t} ADD COLUMN z INT",
    "ALTER DROP COLUMN": "ALTER TABLE {t} DROP COLUMN s",
    "ALTER RENAME COLUMN": "ALTER TABLE {t} RENAME COLUMN s TO z",
    "ALTER COLUMN COMMENT": "ALTER TABLE {t} ALTER COLUMN s COMMENT 'c'",
    "ALTER SET TBLPROPERTIES": "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
    "ALTER UNSET TBLPROPERTIES": "ALTER TABLE {t} UNSET TBLPROPERTIES ('a')",
    "ADD CONSTRAINT": "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)",
    "DROP CONSTRAINT": "ALTER TABLE {t} DROP CONSTRAINT c",
    "DROP FEATURE": "ALTER TABLE {t} DROP FEATURE deletionVectors",
    "CLUSTER BY": "ALTER TABLE {t} CLUSTER BY (id)",
    "SHOW TBLPROPERTIES": "SHOW TBLPROPERTIES {t}",
    "SHOW COLUMNS": "SHOW COLUMNS IN {t}",
    "SHOW CREATE TABLE": "SHOW CREATE TABLE {t}",
    "SHOW PARTITIONS": "SHOW PARTITIONS {t}",
    "COMMENT ON": "COMMENT ON TABLE {t} IS 'c'",
    "ANALYZE": "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "REFRESH": "REFRESH TABLE {t}",
    "CREATE TABLE LIKE": "CREATE TABLE {f}.`{p}_like` LIKE {t}",
    "a view": "CREATE TEMPORARY VIEW v_{n} AS SELECT * FROM {t}",
}


def _statement(place: Place, text: str) -> Callable[[Engine, str], Any]:
    def run(e: Engine, path: str) -> Any:
        return e.sql(
            text.format(t=place(e, path), p=path, f=e.format, n=Path(path).name.replace("-", "_"))
        ).collect()

    return run


def _rows(e: Engine) -> Any:
    return e.sql("SELECT 1 id, 'x' s")


CALLS: dict[str, Failure] = {
    "forPath of an empty folder": ("folder", lambda e, p: e.at(p)),
    "forPath of a folder of Parquet files": ("parquet_files", lambda e, p: e.at(p)),
    "forName of a name that is not there": ("nothing", lambda e, p: e.table.forName(e.spark, _name(p))),
    "forName of a table of Parquet files": (
        "nothing",
        lambda e, p: e.table.forName(e.spark, _parquet_table(e, p)),
    ),
    "forName of a view": ("nothing", lambda e, p: e.table.forName(e.spark, _view(e, p))),
    "forName of a path that is not there": ("nothing", lambda e, p: e.table.forName(e.spark, _by_path(e, p))),
    "read a folder of Parquet files": ("parquet_files", lambda e, p: e.read(p).count()),
    "read a version of a path that is not there": ("nothing", lambda e, p: e.read(p, versionAsOf=0).count()),
    "read a moment of a path that is not there": (
        "nothing",
        lambda e, p: e.read(p, timestampAsOf="2024-01-01").count(),
    ),
    "read a version of an empty folder": ("folder", lambda e, p: e.read(p, versionAsOf=0).count()),
    "changes of a path that is not there": (
        "nothing",
        lambda e, p: e.read(p, readChangeFeed="true", startingVersion=0).count(),
    ),
    "changes of an empty folder": (
        "folder",
        lambda e, p: e.read(p, readChangeFeed="true", startingVersion=0).count(),
    ),
    "table_changes_by_path of a path that is not there": (
        "nothing",
        lambda e, p: e.sql(f"SELECT * FROM table_changes_by_path('{p}', 0)").collect(),
    ),
    "table_changes_by_path of an empty folder": (
        "folder",
        lambda e, p: e.sql(f"SELECT * FROM table_changes_by_path('{p}', 0)").collect(),
    ),
    "table_changes of a name that is not there": (
        "nothing",
        lambda e, p: e.sql(f"SELECT * FROM table_changes('{_name(p)}', 0)").collect(),
    ),
    "table_changes of a table of Parquet files": (
        "nothing",
        lambda e, p: e.sql(f"SELECT * FROM table_changes('{_parquet_table(e, p)}', 0)").collect(),
    ),
    "spark.table of a path that is not there": (
        "nothing",
        lambda e, p: e.spark.table(_by_path(e, p)).count(),
    ),
    "spark.table of an empty folder": ("folder", lambda e, p: e.spark.table(_by_path(e, p)).count()),
    "stream a path that is not there": ("nothing", lambda e, p: e.spark.readStream.format(e.format).load(p)),
    "stream an empty folder": ("folder", lambda e, p: e.spark.readStream.format(e.format).load(p)),
    "stream a folder of Parquet files": (
        "parquet_files",
        lambda e, p: e.spark.readStream.format(e.format).load(p),
    ),
    "stream a name that is not there": ("nothing", lambda e, p: e.spark.readStream.table(_name(p))),
    "stream a path as a name": ("nothing", lambda e, p: e.spark.readStream.table(_by_path(e, p))),
    "insertInto a path that is not there": (
        "nothing",
        lambda e, p: _rows(e).write.insertInto(_by_path(e, p)),
    ),
    "insertInto an empty folder": ("folder", lambda e, p: _rows(e).write.insertInto(_by_path(e, p))),
    "insertInto a name that is not there": ("nothing", lambda e, p: _rows(e).write.insertInto(_name(p))),
    "writeTo append to an empty folder": (
        "folder",
        lambda e, p: _rows(e).writeTo(_by_path(e, p)).append(),
    ),
    "writeTo append to a name that is not there": (
        "nothing",
        lambda e, p: _rows(e).writeTo(_name(p)).append(),
    ),
    "writeTo replace of a path that is not there": (
        "nothing",
        lambda e, p: _rows(e).writeTo(_by_path(e, p)).replace(),
    ),
    "writeTo replace of a name that is not there": (
        "nothing",
        lambda e, p: _rows(e).writeTo(_name(p)).using(e.format).replace(),
    ),
    "writeTo overwritePartitions of a path that is not there": (
        "nothing",
        lambda e, p: _rows(e).writeTo(_by_path(e, p)).overwritePartitions(),
    ),
    "saveAsTable over a table of Parquet files": (
        "nothing",
        lambda e, p: _rows(e).write.format(e.format).mode("append").saveAsTable(_parquet_table(e, p)),
    ),
    "save to a folder of Parquet files": (
        "parquet_files",
        lambda e, p: e.write(_rows(e), p, "append"),
    ),
    "overwrite a folder of Parquet files": (
        "parquet_files",
        lambda e, p: e.write(_rows(e), p, "overwrite"),
    ),
    "create a table over Parquet files": (
        "parquet_files",
        lambda e, p: e.sql(f"CREATE TABLE {_name(p)} (id INT) USING {e.format} LOCATION '{p}'"),
    ),
    "create a table without columns over Parquet files": (
        "parquet_files",
        lambda e, p: e.sql(f"CREATE TABLE {_name(p)} USING {e.format} LOCATION '{p}'"),
    ),
    "convert a path that is not there": (
        "nothing",
        lambda e, p: e.sql(f"CONVERT TO DELTA parquet.`{p}`"),
    ),
    "convert a name that is not there": ("nothing", lambda e, p: e.sql(f"CONVERT TO DELTA {_name(p)}")),
    "convert a view": ("nothing", lambda e, p: e.sql(f"CONVERT TO DELTA {_view(e, p)}")),
    "read without a path": ("nothing", lambda e, p: e.spark.read.format(e.format).load()),
    "stream without a path": ("nothing", lambda e, p: e.spark.readStream.format(e.format).load()),
    "save without a path": ("nothing", lambda e, p: _rows(e).write.format(e.format).save()),
    "merge with a source that is not there": (
        "plain",
        lambda e, p: e.sql(
            f"MERGE INTO {_by_path(e, p)} t USING {_name(p)} u ON t.id = u.id WHEN MATCHED THEN DELETE"
        ),
    ),
    "merge with a path as source that is not there": (
        "plain",
        lambda e, p: e.sql(
            f"MERGE INTO {_by_path(e, p)} t USING {_by_path(e, p + '_none')} u ON t.id = u.id WHEN MATCHED THEN DELETE"
        ),
    ),
}

# Where Spark itself fails over what it finds, whoever reads Delta.
_OF_SPARK = {("DELETE", "a temporary view")}
FAILURES: dict[str, Failure] = {
    **{
        f"{kind} on {where}": (table, _statement(place, text))
        for where, (table, place) in PLACES.items()
        for kind, text in STATEMENTS.items()
        if (kind, where) not in _OF_SPARK
    },
    **{
        f"{kind} on {where}": ("plain", _statement(place, STATEMENTS[kind]))
        for where, place in _GONE.items()
        for kind in _ON_GONE
    },
    **CALLS,
}
