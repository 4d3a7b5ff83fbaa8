"""What is asked: programs, each of which leaves operations in the history of a table.

A program is a list of steps: statements of SQL, or functions that get a `Place`. In statements `{b}` is the table by its path, `{t}` its name
in the current schema, `{p}` its folder and `{o}` another folder. The records are those of the folder `{p}`, or of the managed table `{t}`
where there is nothing at `{p}`.
"""

from pyspark.sql import functions as F

NEW = "CREATE TABLE {b} (id BIGINT, v STRING) USING delta"
PART = "CREATE TABLE {b} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)"
ONE = "INSERT INTO {b} VALUES (1, 'a')"
TWO = "INSERT INTO {b} VALUES (1, 'a'), (2, 'b')"
NAMED = "CREATE TABLE {t} (id BIGINT, v STRING) USING delta"
INTO = "INSERT INTO {t} VALUES (1, 'a')"
VECTORS = "CREATE TABLE {b} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
MAPPED = "CREATE TABLE {b} (id BIGINT, v STRING, s STRUCT<a: INT, b: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
CDF = (
    "CREATE TABLE {b} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
)
CLUSTERED = "CREATE TABLE {b} (id BIGINT, v STRING) USING delta CLUSTER BY (id)"


def rows(place, text="SELECT 5L AS id, 'e' AS v"):
    return place.spark.sql(text)


def save(mode, partition=None, **options):
    def step(place):
        frame = rows(place, "SELECT 5L AS id, 'b' AS p") if partition else rows(place)
        writer = frame.write.format("delta").mode(mode).options(**options)
        (writer.partitionBy(partition) if partition else writer).save(place.folder)

    return step


def as_table(mode, partition=None, **options):
    def step(place):
        writer = rows(place).write.format("delta").mode(mode).options(**options)
        (writer.partitionBy(partition) if partition else writer).saveAsTable(place.name)

    return step


def save_query(query, mode, **options):
    return lambda place: (
        rows(place, query).write.format("delta").mode(mode).options(**options).save(place.folder)
    )


def stream(mode="append", query=None, **options):
    def step(place):
        source = place.spark.readStream.format("delta").load(place.other)
        if query:
            source = query(source)
        running = (
            source.writeStream.format("delta")
            .outputMode(mode)
            .options(**options)
            .option("checkpointLocation", place.folder + "-checkpoint")
            .trigger(availableNow=True)
            .start(place.folder)
        )
        running.awaitTermination()

    return step


def table(step):
    return lambda place: step(place.delta.forPath(place.spark, place.folder), place)


def merge(
    *clauses, query="SELECT 1L AS id, 'z' AS v UNION ALL SELECT 9L, 'y'", evolve=False, on="t.id = s.id"
):
    def step(place):
        builder = (
            place.delta.forPath(place.spark, place.folder).alias("t").merge(rows(place, query).alias("s"), on)
        )
        for name, how in clauses:
            builder = getattr(builder, name)(**how)
        (builder.withSchemaEvolution() if evolve else builder).execute()

    return step


def quiet_vacuum(text):
    def step(place):
        place.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        try:
            place.spark.sql(text.format(b=place.quoted))
        finally:
            place.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")

    return step


OTHER = "CREATE TABLE delta.`{o}` USING delta AS SELECT id, 'o' AS v FROM range(3)"
UPSERT = (("whenMatchedUpdateAll", {}), ("whenNotMatchedInsertAll", {}))

CASES = {
    # Rows
    "save new": [save("append")],
    "save new overwrite": [save("overwrite")],
    "save new errorifexists": [save("errorifexists")],
    "save new partitioned": [save("append", "p")],
    "save new clustered": [
        lambda place: rows(place).write.format("delta").clusterBy("id").save(place.folder)
    ],
    "save append": [NEW, save("append")],
    "save append partitionBy": [PART, save("append", "p")],
    "save append mergeSchema": [
        NEW,
        save_query("SELECT 5L AS id, 'e' AS v, 1 AS x", "append", mergeSchema="true"),
    ],
    "save overwrite": [NEW, ONE, save("overwrite")],
    "save overwrite of nothing": [NEW, save("overwrite")],
    "save overwrite overwriteSchema": [
        NEW,
        ONE,
        save_query("SELECT 1 AS x", "overwrite", overwriteSchema="true"),
    ],
    "save overwrite partitioned": [PART, TWO, save("overwrite", "p")],
    "save overwrite vectors": [VECTORS, TWO, "DELETE FROM {b} WHERE id = 1", save("overwrite")],
    "save overwrite change feed": [CDF, TWO, save("overwrite")],
    "save overwrite dataChange": [NEW, ONE, save("overwrite", dataChange="false")],
    "save userMetadata": [NEW, save("append", userMetadata="told")],
    "save txn": [NEW, save("append", txnAppId="app", txnVersion="1")],
    "save replaceWhere partition": [PART, TWO, save("overwrite", "p", replaceWhere="p = 'b'")],
    "save replaceWhere rows": [NEW, TWO, save("overwrite", replaceWhere="id = 5 OR id = 1")],
    "save replaceWhere two conditions": [
        PART,
        TWO,
        save("overwrite", "p", replaceWhere="p = 'b' AND id > 1"),
    ],
    "save replaceWhere vectors": [VECTORS, TWO, save("overwrite", replaceWhere="id = 5 OR id = 1")],
    "save replaceWhere change feed": [CDF, TWO, save("overwrite", replaceWhere="id = 5 OR id = 1")],
    "save dynamic": [PART, TWO, save("overwrite", "p", partitionOverwriteMode="dynamic")],
    "save dynamic by table's partitions": [
        PART,
        TWO,
        save_query("SELECT 5L AS id, 'b' AS p", "overwrite", partitionOverwriteMode="dynamic"),
    ],
    "save dynamic unpartitioned": [NEW, TWO, save("overwrite", partitionOverwriteMode="dynamic")],
    "saveAsTable new": [as_table("errorifexists")],
    "saveAsTable new append": [as_table("append")],
    "saveAsTable new overwrite": [as_table("overwrite")],
    "saveAsTable new ignore": [as_table("ignore")],
    "saveAsTable new partitioned": [as_table("append", "v")],
    "saveAsTable new property": [as_table("append", **{"delta.appendOnly": "false"})],
    "saveAsTable append": [NAMED, as_table("append")],
    "saveAsTable overwrite": [NAMED, INTO, as_table("overwrite")],
    "saveAsTable overwrite overwriteSchema": [NAMED, INTO, as_table("overwrite", overwriteSchema="true")],
    "saveAsTable overwrite replaceWhere": [NAMED, INTO, as_table("overwrite", replaceWhere="id = 5")],
    "saveAsTable overwrite dynamic": [
        "CREATE TABLE {t} (id BIGINT, v STRING) USING delta PARTITIONED BY (v)",
        INTO,
        as_table("overwrite", partitionOverwriteMode="dynamic"),
    ],
    "insertInto": [NAMED, lambda place: rows(place).write.insertInto(place.name)],
    "insertInto overwrite": [
        NAMED,
        INTO,
        lambda place: rows(place).write.insertInto(place.name, overwrite=True),
    ],
    "writeTo append": [NAMED, lambda place: rows(place).writeTo(place.name).append()],
    "writeTo overwrite": [
        NAMED,
        INTO,
        lambda place: rows(place).writeTo(place.name).overwrite(F.col("id") == 5),
    ],
    "writeTo overwrite true": [
        NAMED,
        INTO,
        lambda place: rows(place).writeTo(place.name).overwrite(F.lit(True)),
    ],
    "writeTo overwritePartitions": [
        "CREATE TABLE {t} (id BIGINT, v STRING) USING delta PARTITIONED BY (v)",
        INTO,
        lambda place: rows(place).writeTo(place.name).overwritePartitions(),
    ],
    "writeTo create": [lambda place: rows(place).writeTo(place.name).using("delta").create()],
    "writeTo create partitioned": [
        lambda place: (
            rows(place)
            .writeTo(place.name)
            .using("delta")
            .partitionedBy(F.col("v"))
            .tableProperty("own", "1")
            .create()
        )
    ],
    "writeTo replace": [NAMED, INTO, lambda place: rows(place).writeTo(place.name).using("delta").replace()],
    "writeTo createOrReplace": [
        NAMED,
        INTO,
        lambda place: rows(place).writeTo(place.name).using("delta").createOrReplace(),
    ],
    "writeTo createOrReplace new": [
        lambda place: rows(place).writeTo(place.name).using("delta").createOrReplace()
    ],
    "INSERT INTO": [NEW, ONE],
    "INSERT INTO named": [NAMED, INTO],
    "INSERT INTO partitioned": [PART, TWO],
    "INSERT OVERWRITE": [NEW, TWO, "INSERT OVERWRITE {b} VALUES (3, 'c')"],
    "INSERT OVERWRITE named": [NAMED, INTO, "INSERT OVERWRITE {t} VALUES (3, 'c')"],
    "INSERT OVERWRITE PARTITION": [PART, TWO, "INSERT OVERWRITE {b} PARTITION (p = 'b') SELECT 3L"],
    "INSERT OVERWRITE dynamic": [
        PART,
        TWO,
        "SET spark.sql.sources.partitionOverwriteMode = dynamic",
        "INSERT OVERWRITE {b} VALUES (3, 'b')",
        "RESET spark.sql.sources.partitionOverwriteMode",
    ],
    "INSERT REPLACE WHERE": [NEW, TWO, "INSERT INTO {b} REPLACE WHERE id = 1 VALUES (1, 'c')"],
    "INSERT REPLACE WHERE partition": [PART, TWO, "INSERT INTO {b} REPLACE WHERE p = 'b' VALUES (1, 'b')"],
    "INSERT schema evolution": [
        NEW,
        "SET spark.databricks.delta.schema.autoMerge.enabled = true",
        "INSERT INTO {b} SELECT 1L AS id, 'a' AS v, 2 AS x",
        "RESET spark.databricks.delta.schema.autoMerge.enabled",
    ],
    # DELETE, UPDATE, MERGE
    "DELETE": [NEW, TWO, "DELETE FROM {b} WHERE id = 1"],
    "DELETE nothing": [NEW, TWO, "DELETE FROM {b} WHERE id = 77"],
    "DELETE all": [NEW, TWO, "DELETE FROM {b}"],
    "DELETE true": [NEW, TWO, "DELETE FROM {b} WHERE true"],
    "DELETE partition": [PART, TWO, "DELETE FROM {b} WHERE p = 'b'"],
    "DELETE partition and rows": [PART, TWO, "DELETE FROM {b} WHERE p = 'b' AND id > 1"],
    "DELETE vectors": [VECTORS, TWO, "DELETE FROM {b} WHERE id = 1"],
    "DELETE vectors again": [
        VECTORS,
        "INSERT INTO {b} SELECT id, 'a' FROM range(5)",
        "DELETE FROM {b} WHERE id = 1",
        "DELETE FROM {b} WHERE id = 2",
    ],
    "DELETE change feed": [CDF, TWO, "DELETE FROM {b} WHERE id = 1"],
    "DELETE all change feed": [CDF, TWO, "DELETE FROM {b}"],
    "DELETE words": [
        NEW,
        TWO,
        "DELETE FROM {b} WHERE v LIKE 'a%' OR v IN ('x', 'y') OR id BETWEEN 8 AND 9 OR v IS NULL",
    ],
    "DELETE subquery": [NEW, TWO, "DELETE FROM {b} WHERE id IN (SELECT 1L)"],
    "delete by method": [NEW, TWO, table(lambda t, place: t.delete("id = 1"))],
    "delete by column": [NEW, TWO, table(lambda t, place: t.delete(F.col("id") == 1))],
    "delete all by method": [NEW, TWO, table(lambda t, place: t.delete())],
    "TRUNCATE": [NAMED, INTO, "TRUNCATE TABLE {t}"],
    "UPDATE": [NEW, TWO, "UPDATE {b} SET v = 'q' WHERE id = 1"],
    "UPDATE all": [NEW, TWO, "UPDATE {b} SET v = 'q'"],
    "UPDATE nothing": [NEW, TWO, "UPDATE {b} SET v = 'q' WHERE id = 77"],
    "UPDATE vectors": [VECTORS, TWO, "UPDATE {b} SET v = 'q' WHERE id = 1"],
    "UPDATE change feed": [CDF, TWO, "UPDATE {b} SET v = 'q' WHERE id = 1"],
    "UPDATE partition": [PART, TWO, "UPDATE {b} SET id = 7 WHERE p = 'b' AND id > 1"],
    "update by method": [NEW, TWO, table(lambda t, place: t.update("id = 1", {"v": "'q'"}))],
    "merge upsert": [NEW, TWO, merge(*UPSERT)],
    "merge nothing": [NEW, TWO, merge(("whenMatchedDelete", {"condition": "s.v = 'no'"}))],
    "merge insert only": [NEW, TWO, merge(("whenNotMatchedInsertAll", {}))],
    "merge clauses": [
        NEW,
        TWO,
        merge(
            ("whenMatchedUpdate", {"condition": "s.v = 'z'", "set": {"v": "s.v"}}),
            ("whenMatchedDelete", {}),
            ("whenNotMatchedInsert", {"condition": "s.id > 3", "values": {"id": "s.id"}}),
            ("whenNotMatchedBySourceUpdate", {"condition": "t.id > 100", "set": {"v": "'w'"}}),
            ("whenNotMatchedBySourceDelete", {}),
        ),
    ],
    "merge vectors": [VECTORS, TWO, merge(*UPSERT)],
    "merge change feed": [CDF, TWO, merge(*UPSERT)],
    "merge partitioned": [
        PART,
        TWO,
        merge(*UPSERT, query="SELECT 1L AS id, 'a' AS p", on="t.id = s.id AND t.p = 'a'"),
    ],
    "merge evolution": [NEW, TWO, merge(*UPSERT, query="SELECT 1L AS id, 'z' AS v, 1 AS x", evolve=True)],
    "MERGE": [
        NEW,
        TWO,
        "MERGE INTO {b} t USING (SELECT 1L AS id, 'z' AS v) s ON t.id = s.id WHEN MATCHED AND t.v = 'a' THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    ],
    "MERGE without clauses that match": [
        NEW,
        TWO,
        "MERGE INTO {b} t USING (SELECT 1L AS id, 'z' AS v) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    ],
    # Tables
    "CREATE TABLE": [NEW],
    "CREATE TABLE all": [
        "CREATE TABLE {b} (id BIGINT NOT NULL COMMENT 'number', v STRING) USING delta PARTITIONED BY (v) COMMENT 'about it' TBLPROPERTIES ('own' = '1', 'delta.appendOnly' = 'true')"
    ],
    "CREATE TABLE clustered": [CLUSTERED],
    "CREATE TABLE named": [NAMED],
    "CREATE TABLE LOCATION": ["CREATE TABLE {t} (id BIGINT) USING delta LOCATION '{p}'"],
    "CREATE TABLE generated": [
        "CREATE TABLE {b} (id BIGINT GENERATED ALWAYS AS IDENTITY, g BIGINT GENERATED ALWAYS AS (id * 2)) USING delta"
    ],
    "CREATE TABLE LIKE": [OTHER, "CREATE TABLE {t} LIKE delta.`{o}` USING delta LOCATION '{p}'"],
    "CREATE OR REPLACE TABLE new": ["CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta"],
    "CREATE OR REPLACE TABLE": [NAMED, INTO, "CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta"],
    "REPLACE TABLE": [NAMED, INTO, "REPLACE TABLE {t} (id BIGINT) USING delta COMMENT 'anew'"],
    "REPLACE TABLE clustered": [NAMED, INTO, "REPLACE TABLE {t} (id BIGINT) USING delta CLUSTER BY (id)"],
    "CTAS": ["CREATE TABLE {t} USING delta AS SELECT 1 AS id"],
    "CTAS by path": ["CREATE TABLE {b} USING delta AS SELECT 1 AS id"],
    "CTAS LOCATION": [
        "CREATE TABLE {t} USING delta PARTITIONED BY (id) COMMENT 'c' LOCATION '{p}' TBLPROPERTIES ('own' = '1') AS SELECT 1 AS id, 2 AS w"
    ],
    "CTAS clustered": ["CREATE TABLE {t} USING delta CLUSTER BY (id) AS SELECT 1 AS id"],
    "RTAS": [NAMED, INTO, "REPLACE TABLE {t} USING delta AS SELECT 1 AS id"],
    "RTAS by path": [NEW, ONE, "REPLACE TABLE {b} USING delta AS SELECT 1 AS id"],
    "CREATE OR REPLACE AS": [
        NAMED,
        INTO,
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (id) AS SELECT 1 AS id, 2 AS w",
    ],
    "CREATE OR REPLACE AS new": ["CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id"],
    "builder create": [
        lambda place: (
            place.delta.create(place.spark)
            .location(place.folder)
            .addColumn("id", "bigint")
            .comment("c")
            .property("own", "1")
            .execute()
        )
    ],
    "builder create named": [
        lambda place: (
            place.delta.create(place.spark)
            .tableName(place.name)
            .addColumn("id", "bigint")
            .partitionedBy("id")
            .addColumn("v", "string")
            .execute()
        )
    ],
    "builder createIfNotExists": [
        lambda place: (
            place.delta.createIfNotExists(place.spark)
            .location(place.folder)
            .addColumn("id", "bigint")
            .clusterBy("id")
            .execute()
        )
    ],
    "builder replace": [
        NEW,
        ONE,
        lambda place: (
            place.delta.replace(place.spark).location(place.folder).addColumn("id", "bigint").execute()
        ),
    ],
    "builder createOrReplace": [
        NEW,
        ONE,
        lambda place: (
            place.delta.createOrReplace(place.spark)
            .location(place.folder)
            .addColumn("id", "bigint")
            .execute()
        ),
    ],
    "builder createOrReplace new": [
        lambda place: (
            place.delta.createOrReplace(place.spark)
            .location(place.folder)
            .addColumn("id", "bigint")
            .execute()
        )
    ],
    "CREATE TABLE CLONE": [OTHER, "CREATE TABLE {b} SHALLOW CLONE delta.`{o}`"],
    "CREATE TABLE CLONE VERSION": [
        OTHER,
        "INSERT INTO delta.`{o}` VALUES (9, 'n')",
        "CREATE TABLE {b} SHALLOW CLONE delta.`{o}` VERSION AS OF 0",
    ],
    "CREATE TABLE CLONE named": [
        OTHER,
        "CREATE TABLE {t} SHALLOW CLONE delta.`{o}` TBLPROPERTIES ('own' = '1')",
    ],
    "CREATE OR REPLACE TABLE CLONE": [OTHER, NEW, "CREATE OR REPLACE TABLE {b} SHALLOW CLONE delta.`{o}`"],
    "CREATE TABLE CLONE of a name": [
        OTHER,
        "CREATE TABLE {t} USING delta LOCATION '{o}'",
        "CREATE TABLE {b} SHALLOW CLONE {t}",
    ],
    "CREATE TABLE CLONE of Parquet": [
        lambda place: rows(place).write.parquet(place.other),
        "CREATE TABLE {b} SHALLOW CLONE parquet.`{o}`",
    ],
    "clone by method": [
        OTHER,
        lambda place: place.delta.forPath(place.spark, place.other).clone(place.folder, isShallow=True),
    ],
    "cloneAtVersion": [
        OTHER,
        lambda place: place.delta.forPath(place.spark, place.other).cloneAtVersion(
            0, place.folder, isShallow=True
        ),
    ],
    "CONVERT": [lambda place: rows(place).write.parquet(place.folder), "CONVERT TO DELTA parquet.`{p}`"],
    "CONVERT partitioned": [
        lambda place: rows(place).write.partitionBy("v").parquet(place.folder),
        "CONVERT TO DELTA parquet.`{p}` PARTITIONED BY (v STRING)",
    ],
    "CONVERT NO STATISTICS": [
        lambda place: rows(place).write.parquet(place.folder),
        "CONVERT TO DELTA parquet.`{p}` NO STATISTICS",
    ],
    "CONVERT named": [
        lambda place: rows(place).write.format("parquet").saveAsTable(place.name),
        "CONVERT TO DELTA {t}",
    ],
    "convertToDelta": [
        lambda place: rows(place).write.parquet(place.folder),
        lambda place: place.delta.convertToDelta(place.spark, f"parquet.`{place.folder}`"),
    ],
    "RESTORE version": [NEW, TWO, "RESTORE TABLE {b} TO VERSION AS OF 0"],
    "RESTORE forwards": [NEW, TWO, "DELETE FROM {b}", "RESTORE TABLE {b} TO VERSION AS OF 1"],
    "RESTORE timestamp": [
        NEW,
        TWO,
        lambda place: place.spark.sql(
            f"RESTORE TABLE {place.quoted} TO TIMESTAMP AS OF '{place.delta.forPath(place.spark, place.folder).history().where('version = 0').first().timestamp}'"
        ),
    ],
    "restoreToVersion": [
        VECTORS,
        TWO,
        "DELETE FROM {b} WHERE id = 1",
        table(lambda t, place: t.restoreToVersion(1)),
    ],
    # Files
    "OPTIMIZE": [NEW, ONE, ONE, "OPTIMIZE {b}"],
    "OPTIMIZE WHERE": [PART, TWO, TWO, "OPTIMIZE {b} WHERE p = 'b'"],
    "OPTIMIZE ZORDER": [NEW, ONE, ONE, "OPTIMIZE {b} ZORDER BY (id, v)"],
    "OPTIMIZE vectors": [VECTORS, TWO, TWO, "DELETE FROM {b} WHERE id = 1", "OPTIMIZE {b}"],
    "OPTIMIZE clustered": [CLUSTERED, ONE, ONE, "OPTIMIZE {b}"],
    "OPTIMIZE FULL": [CLUSTERED, ONE, ONE, "OPTIMIZE {b} FULL"],
    "optimize by method": [
        PART,
        TWO,
        TWO,
        table(lambda t, place: t.optimize().where("p = 'b'").executeCompaction()),
    ],
    "optimize zorder by method": [NEW, ONE, ONE, table(lambda t, place: t.optimize().executeZOrderBy("id"))],
    "auto compaction": [
        "CREATE TABLE {b} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')",
        "SET spark.databricks.delta.autoCompact.minNumFiles = 2",
        ONE,
        ONE,
        ONE,
        "RESET spark.databricks.delta.autoCompact.minNumFiles",
    ],
    "REORG PURGE": [VECTORS, TWO, "DELETE FROM {b} WHERE id = 1", "REORG TABLE {b} APPLY (PURGE)"],
    "REORG PURGE WHERE": [
        "CREATE TABLE {b} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {b} VALUES (1, 'b'), (2, 'b')",
        "DELETE FROM {b} WHERE id = 1",
        "REORG TABLE {b} WHERE p = 'b' APPLY (PURGE)",
    ],
    "VACUUM": [NEW, TWO, "VACUUM {b}"],
    "VACUUM RETAIN": [NEW, TWO, "DELETE FROM {b} WHERE id = 1", "VACUUM {b} RETAIN 200 HOURS"],
    "VACUUM RETAIN 0": [NEW, TWO, "DELETE FROM {b} WHERE id = 1", quiet_vacuum("VACUUM {b} RETAIN 0 HOURS")],
    "VACUUM DRY RUN": [NEW, TWO, "VACUUM {b} DRY RUN"],
    "vacuum by method": [NEW, TWO, table(lambda t, place: t.vacuum(169))],
    # Descriptions
    "SET TBLPROPERTIES": [
        NEW,
        "ALTER TABLE {b} SET TBLPROPERTIES ('own' = '1', 'delta.appendOnly' = 'true')",
    ],
    "SET TBLPROPERTIES comment": [NEW, "ALTER TABLE {b} SET TBLPROPERTIES ('comment' = 'about it')"],
    "SET TBLPROPERTIES vectors": [
        NEW,
        "ALTER TABLE {b} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
    ],
    "SET TBLPROPERTIES column mapping": [
        NEW,
        "ALTER TABLE {b} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    ],
    "SET TBLPROPERTIES column mapping none": [
        MAPPED,
        "INSERT INTO {b} VALUES (1, 'a', NULL)",
        "ALTER TABLE {b} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
    ],
    "SET TBLPROPERTIES row tracking": [
        NEW,
        ONE,
        "ALTER TABLE {b} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    ],
    "SET TBLPROPERTIES row tracking off": [
        "CREATE TABLE {b} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        ONE,
        "ALTER TABLE {b} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')",
    ],
    "SET TBLPROPERTIES feature": [
        NEW,
        "ALTER TABLE {b} SET TBLPROPERTIES ('delta.feature.v2Checkpoint' = 'supported')",
    ],
    "UNSET TBLPROPERTIES": [
        NEW,
        "ALTER TABLE {b} SET TBLPROPERTIES ('own' = '1')",
        "ALTER TABLE {b} UNSET TBLPROPERTIES ('own')",
    ],
    "UNSET TBLPROPERTIES IF EXISTS": [NEW, "ALTER TABLE {b} UNSET TBLPROPERTIES IF EXISTS ('own', 'more')"],
    "COMMENT ON TABLE": [NAMED, "COMMENT ON TABLE {t} IS 'about it'"],
    "ADD COLUMN": [NEW, "ALTER TABLE {b} ADD COLUMN (x INT)"],
    "ADD COLUMNS": [
        NEW,
        "ALTER TABLE {b} ADD COLUMNS (x INT COMMENT 'an x' FIRST, y STRUCT<a: INT> AFTER id)",
    ],
    "ADD COLUMNS nested": [MAPPED, "ALTER TABLE {b} ADD COLUMNS (s.c DOUBLE AFTER a)"],
    "DROP COLUMN": [MAPPED, "ALTER TABLE {b} DROP COLUMN v"],
    "DROP COLUMNS": [MAPPED, "ALTER TABLE {b} DROP COLUMNS (v, s.a)"],
    "RENAME COLUMN": [MAPPED, "ALTER TABLE {b} RENAME COLUMN v TO w"],
    "RENAME COLUMN nested": [MAPPED, "ALTER TABLE {b} RENAME COLUMN s.a TO c"],
    "ALTER COLUMN COMMENT": [NEW, "ALTER TABLE {b} ALTER COLUMN v COMMENT 'a v'"],
    "ALTER COLUMN AFTER": [NEW, "ALTER TABLE {b} ALTER COLUMN id AFTER v"],
    "ALTER COLUMN FIRST": [NEW, "ALTER TABLE {b} ALTER COLUMN v FIRST"],
    "ALTER COLUMN NOT NULL": [
        "CREATE TABLE {b} (id BIGINT NOT NULL) USING delta",
        "ALTER TABLE {b} ALTER COLUMN id DROP NOT NULL",
    ],
    "ALTER COLUMN TYPE": [
        "CREATE TABLE {b} (id INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE {b} ALTER COLUMN id TYPE BIGINT",
    ],
    "ALTER COLUMN nested": [MAPPED, "ALTER TABLE {b} ALTER COLUMN s.a COMMENT 'an a'"],
    "ALTER COLUMN SET DEFAULT": [
        "CREATE TABLE {b} (id BIGINT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {b} ALTER COLUMN id SET DEFAULT 3",
        "ALTER TABLE {b} ALTER COLUMN id DROP DEFAULT",
    ],
    "ALTER COLUMN SYNC IDENTITY": [
        "CREATE TABLE {b} (id BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT) USING delta",
        "INSERT INTO {b} VALUES (7, 1)",
        "ALTER TABLE {b} ALTER COLUMN id SYNC IDENTITY",
    ],
    "ALTER two columns": [NEW, "ALTER TABLE {b} ALTER COLUMN id COMMENT 'number', v COMMENT 'a v'"],
    "CHANGE COLUMN": [NEW, "ALTER TABLE {b} CHANGE COLUMN v v STRING COMMENT 'a v' FIRST"],
    "REPLACE COLUMNS": [NEW, "ALTER TABLE {b} REPLACE COLUMNS (id BIGINT COMMENT 'number', v STRING, x INT)"],
    "ADD CONSTRAINT": [NEW, "ALTER TABLE {b} ADD CONSTRAINT c CHECK (id > 0 and v <> 'no')"],
    "DROP CONSTRAINT": [
        NEW,
        "ALTER TABLE {b} ADD CONSTRAINT c CHECK (id > 0)",
        "ALTER TABLE {b} DROP CONSTRAINT c",
    ],
    "DROP CONSTRAINT IF EXISTS": [NEW, "ALTER TABLE {b} DROP CONSTRAINT IF EXISTS c"],
    "CLUSTER BY": [CLUSTERED, "ALTER TABLE {b} CLUSTER BY (v)"],
    "CLUSTER BY of a plain table": [NEW, "ALTER TABLE {b} CLUSTER BY (v)"],
    "CLUSTER BY NONE": [CLUSTERED, "ALTER TABLE {b} CLUSTER BY NONE"],
    "DROP FEATURE": [VECTORS, "ALTER TABLE {b} DROP FEATURE deletionVectors"],
    "DROP FEATURE writer": [
        "CREATE TABLE {b} (id BIGINT) USING delta TBLPROPERTIES ('delta.feature.domainMetadata' = 'supported')",
        "ALTER TABLE {b} DROP FEATURE domainMetadata",
    ],
    "DROP FEATURE with rows": [
        VECTORS,
        TWO,
        "DELETE FROM {b} WHERE id = 1",
        "ALTER TABLE {b} DROP FEATURE deletionVectors",
    ],
    "upgradeTableProtocol": [
        "CREATE TABLE {b} (id BIGINT) USING delta",
        table(lambda t, place: t.upgradeTableProtocol(3, 7)),
    ],
    "upgradeTableProtocol of old": [
        "CREATE TABLE {b} (id BIGINT) USING delta TBLPROPERTIES ('delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '2')",
        table(lambda t, place: t.upgradeTableProtocol(1, 4)),
    ],
    "addFeatureSupport": [NEW, table(lambda t, place: t.addFeatureSupport("v2Checkpoint"))],
    "dropFeatureSupport": [VECTORS, table(lambda t, place: t.dropFeatureSupport("deletionVectors"))],
    "ANALYZE": [NAMED, INTO, "ANALYZE TABLE {t} COMPUTE DELTA STATISTICS"],
    # Streams
    "stream append": [OTHER, stream()],
    "stream into a table": [OTHER, NEW, stream()],
    "stream complete": [OTHER, stream("complete", lambda source: source.groupBy("v").count())],
    "stream userMetadata": [OTHER, NEW, stream(userMetadata="told")],
    "stream mergeSchema": [OTHER, "CREATE TABLE {b} (id BIGINT) USING delta", stream(mergeSchema="true")],
}
