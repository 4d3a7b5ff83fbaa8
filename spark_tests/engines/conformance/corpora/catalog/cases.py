"""What is asked of the catalog: statements, and calls of `spark.catalog`, in this order, of the tables that `TABLES` makes.

    python cases.py FOLDER catalog.json

writes the answers of the session that `getOrCreate` gives, for which spark-submit or its settings name delta-spark. In
statements `{f}` is a folder. Answers tell `F` for the folder, and `TIME` for every time.
"""

import json
import re
import sys

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

SCHEMA = "catalog_answers"
TABLES = """
CREATE SCHEMA catalog_answers COMMENT 'a schema' LOCATION '{f}/schema'
USE catalog_answers
CREATE TABLE managed (id INT NOT NULL COMMENT 'the id', name STRING) USING delta
INSERT INTO managed VALUES (1, 'a'), (2, NULL)
CREATE TABLE ext (id INT, v DOUBLE) USING delta LOCATION '{f}/ext'
CREATE TABLE part (id BIGINT, d DATE, p STRING COMMENT 'part') USING delta PARTITIONED BY (d, p) COMMENT 'partitioned' TBLPROPERTIES ('k' = 'v', 'delta.appendOnly' = 'false')
INSERT INTO part VALUES (1, DATE'2024-01-01', 'x'), (2, DATE'2024-01-02', 'y'), (3, NULL, 'z')
CREATE TABLE clus (a INT, b STRUCT<c: INT, d: STRING>) USING delta CLUSTER BY (a, b.c) COMMENT 'it''s clustered'
CREATE TABLE feat (id INT DEFAULT 7, g INT GENERATED ALWAYS AS (id + 1), i BIGINT GENERATED ALWAYS AS IDENTITY, m MAP<STRING, INT>, c CHAR(3)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.columnMapping.mode' = 'name')
CREATE TABLE others (id INT, p INT) USING parquet PARTITIONED BY (p)
CREATE VIEW vw (x COMMENT 'cx') COMMENT 'a view' AS SELECT id FROM part
CREATE TEMPORARY VIEW tv AS SELECT * FROM managed
"""
OF_EACH = (
    "DESCRIBE {t}", "DESCRIBE EXTENDED {t}", "DESCRIBE TABLE EXTENDED {t} AS JSON", "DESCRIBE EXTENDED {t} id",
    "DESCRIBE {t} nowhere", "SHOW PARTITIONS {t}", "SHOW COLUMNS IN {t}", "SHOW TBLPROPERTIES {t}",
    "SHOW TBLPROPERTIES {t} ('k')", "REFRESH TABLE {t}", "CACHE TABLE {t}", "UNCACHE TABLE {t}",
    "ANALYZE TABLE {t} COMPUTE STATISTICS NOSCAN", "ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS",
)  # fmt: skip
NAMES = ("managed", "ext", "part", "clus", "feat", "nowhere", "delta.`{f}/ext`")
SCHEMA_WIDE = """
SHOW TABLES
SHOW TABLES IN catalog_answers LIKE 'm*|e*'
SHOW VIEWS
SHOW VIEWS IN catalog_answers LIKE 'v*'
DESCRIBE SCHEMA EXTENDED catalog_answers
SHOW TABLE EXTENDED LIKE '*'
SHOW TABLE EXTENDED IN catalog_answers LIKE 'part'
SHOW TABLE EXTENDED IN catalog_answers LIKE 'nowhere'
SHOW TABLES EXTENDED LIKE 'part'
SHOW TABLE EXTENDED LIKE 'part' PARTITION (d = DATE'2024-01-01', p = 'x')
"""
MORE = """
DESCRIBE EXTENDED clus b
DESCRIBE EXTENDED clus b.c
DESCRIBE part PARTITION (d = DATE'2024-01-01', p = 'x')
DESCRIBE managed AS JSON
SHOW PARTITIONS part PARTITION (p = 'x')
SHOW PARTITIONS part PARTITION (id = 1)
SHOW COLUMNS IN managed IN catalog_answers
SHOW COLUMNS IN managed IN nowhere
MSCK REPAIR TABLE part
ALTER TABLE part RECOVER PARTITIONS
ALTER TABLE part ADD PARTITION (d = DATE'2024-02-01', p = 'q')
ALTER TABLE part DROP PARTITION (d = DATE'2024-01-01', p = 'x')
TRUNCATE TABLE part PARTITION (p = 'x')
ALTER TABLE managed SET SERDE 'x'
ALTER TABLE managed RENAME TO renamed
DESCRIBE EXTENDED renamed
SELECT * FROM renamed ORDER BY id
ALTER TABLE renamed RENAME TO managed
ALTER TABLE ext RENAME TO part
ALTER TABLE nowhere RENAME TO ext2
COMMENT ON TABLE ext IS 'a comment'
ALTER TABLE ext SET TBLPROPERTIES ('a.b' = 'c d', 'delta.logRetentionDuration' = 'interval 10 days')
ALTER TABLE ext UNSET TBLPROPERTIES IF EXISTS ('nowhere')
SHOW TBLPROPERTIES ext
DESCRIBE EXTENDED ext
ALTER TABLE clus CLUSTER BY NONE
SHOW TBLPROPERTIES clus
DROP VIEW managed
ALTER VIEW managed AS SELECT 1
CREATE TABLE managed (id INT) USING delta
CREATE TABLE twice (id INT, ID INT) USING delta
CREATE VIEW managed AS SELECT 1
CREATE TABLE alike LIKE part
DESCRIBE EXTENDED alike
DROP TABLE alike
DROP TABLE IF EXISTS alike
DROP TABLE alike
"""


def calls(spark, folder):
    """Calls of `spark.catalog`, by what they are called in the record."""
    catalog = spark.catalog
    columns = StructType().add("id", "integer", False).add("x", "string", True, {"comment": "cx"})
    names = ["managed", f"{SCHEMA}.part", f"spark_catalog.{SCHEMA}.clus", "feat", "vw", "tv", "nowhere"]
    for name in names:
        for call in ("getTable", "tableExists", "listColumns", "isCached", "cacheTable", "isCached",
                     "refreshTable", "uncacheTable", "isCached", "recoverPartitions"):  # fmt: skip
            yield f"{call}({name})", lambda call=call, name=name: getattr(catalog, call)(name)
    yield "listTables()", lambda: catalog.listTables()
    yield f"listTables({SCHEMA}, p*)", lambda: catalog.listTables(SCHEMA, "p*")
    yield "listTables(nowhere)", lambda: catalog.listTables("nowhere")
    yield f"tableExists(managed, {SCHEMA})", lambda: catalog.tableExists("managed", SCHEMA)
    yield "tableExists(managed, nowhere)", lambda: catalog.tableExists("managed", "nowhere")
    yield f"listColumns(managed, {SCHEMA})", lambda: catalog.listColumns("managed", SCHEMA)
    yield "refreshByPath", lambda: catalog.refreshByPath(f"{folder}/ext")
    new = {
        "made": {"schema": columns, "description": "a table", "k": "v"},
        "made_at": {"schema": columns, "path": f"{folder}/made_at"},
        "found": {"path": f"{folder}/ext"},
        "other": {"schema": columns, "path": f"{folder}/ext"},
    }
    for name, how in new.items():
        yield (
            f"createTable({name})",
            lambda name=name, how=how: catalog.createTable(name, source="delta", **how).columns,
        )
        yield f"getTable({name})", lambda name=name: catalog.getTable(name)
        yield f"listColumns({name})", lambda name=name: catalog.listColumns(name)
    yield (
        "createTable(made), again",
        lambda: catalog.createTable("made", source="delta", schema=columns).columns,
    )
    yield "SHOW TBLPROPERTIES made", lambda: spark.sql("SHOW TBLPROPERTIES made")
    yield "saveAsTable(saved)", lambda: spark.range(3).write.format("delta").saveAsTable("saved")
    yield "getTable(saved)", lambda: catalog.getTable("saved")
    yield "cacheTable(saved), DROP TABLE, CREATE TABLE", lambda: cached_and_dropped(spark)


def cached_and_dropped(spark):
    """Whether a table is cached that was made under the name of one that was."""
    spark.catalog.cacheTable("saved")
    spark.sql("DROP TABLE saved")
    spark.range(3).write.format("delta").saveAsTable("saved")
    return spark.catalog.isCached("saved")


def answers(spark, folder):
    """Every question with its answer, and at the end nothing of it is left in the catalog."""

    def normal(text):
        text = str(text).replace(f"file:{folder}", "F").replace(str(folder), "F")
        text = re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ \d{4}", "TIME", text)
        return re.sub(r"Created By: Spark [\w.-]+", "Created By: Spark", text)

    def answer(ask):
        try:
            found = ask()
        except Exception as error:
            return {"error": getattr(error, "getCondition", lambda: None)()}
        if hasattr(found, "collect"):
            return {
                "columns": found.columns,
                "rows": sorted(normal(tuple(row.asDict().values())) for row in found.collect()),
            }
        return {"value": sorted(map(normal, found)) if isinstance(found, list) else normal(found)}

    def statements(text):
        for line in text.strip().splitlines():
            yield line, lambda line=line: spark.sql(line.format(f=folder))

    def questions():
        yield from statements(TABLES + SCHEMA_WIDE)
        for name in NAMES:
            yield from statements("\n".join(line.format(t=name) for line in OF_EACH))
        yield from statements(MORE)
        yield from calls(spark, folder)

    try:
        return [[label, answer(ask)] for label, ask in questions()]
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        spark.catalog.dropTempView("tv")


if __name__ == "__main__":
    said = answers(SparkSession.builder.getOrCreate(), sys.argv[1])
    with open(sys.argv[2], "w") as record:
        json.dump(said, record, indent=0, ensure_ascii=False)
        record.write("\n")
