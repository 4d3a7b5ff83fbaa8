"""A Spark application whose every read, write and statement is given a marked secret; it says where any was seen.

A program of its own: the event log belongs to an application, and the secrets of other tests are not to be in it.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK = re.compile(r"Marked(?P<way>[a-z]+)Secret")
NAMES = (
    "fs.azure.account.key.account.dfs.core.windows.net", "fs.azure.sas.fixed.token", "fs.s3a.encryption.key",
    "fs.s3a.secret.key", "fs.s3a.session.token", "fs.gs.auth.service.account.private.key", "azure_storage_account_key",
    "AWS_SECRET_ACCESS_KEY", "storage.AWS_SESSION_TOKEN",
)  # fmt: skip
SETTINGS = {
    "spark.eventLog.enabled": "true", "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false",
    "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}  # fmt: skip


class Application:
    """The session, the folder of its tables, and what was shown of each way."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.table = str(folder / "t")
        self.folder = folder
        self.failed: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.way = ""

    @property
    def options(self) -> dict[str, str]:
        """One option of each kind, all with the mark of the way."""
        return {name: f"Marked{self.way}Secret/{number}+x=" for number, name in enumerate(NAMES)}

    @property
    def equal(self) -> str:
        """The same as WITH has them."""
        return ", ".join(f"'{name}' = '{value}'" for name, value in self.options.items())

    @property
    def listed(self) -> str:
        """The same as OPTIONS has them."""
        return self.equal.replace("' = '", "' '")

    @property
    def arguments(self) -> str:
        """The same as a function has them."""
        return self.equal.replace("' = '", "', '")

    def explain(self, frame: DataFrame) -> None:
        """Print all that Spark says of a DataFrame."""
        for mode in ("simple", "extended", "codegen", "cost", "formatted"):
            frame.explain(mode=mode)
        execution = frame._jdf.queryExecution()  # type: ignore[operator]
        print(repr(frame), frame._jdf.toString(), execution.toString(), frame.inputFiles())  # type: ignore[operator]
        for plan in (
            execution.logical(),
            execution.analyzed(),
            execution.optimizedPlan(),
            execution.executedPlan(),
        ):
            with contextlib.suppress(Exception):
                print(plan.toJSON())
            print(plan.treeString(), plan.toString())

    def run(self, way: str, action: Callable[[Application], None], fails: bool = False) -> None:
        """Run one way, and keep what it prints and raises."""
        self.way = way
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                action(self)
        except Exception as error:
            out.write(traceback.format_exc() + repr(error) + str(vars(error)))
            if not fails:
                self.failed[way] = f"{type(error).__name__}: {error}"
        self.shown[way] = out.getvalue()


# --- the ways


def native_write(app: Application) -> None:
    app.spark.range(3).write.format("pydelta").options(**app.options).mode("append").save(app.table)


def native_read(app: Application) -> None:
    frame = app.spark.read.format("pydelta").options(**app.options).load(app.table)
    app.explain(frame)
    app.explain(frame.where("id > 0").groupBy("id").count())
    assert frame.count()


def old_version(app: Application) -> None:
    app.explain(
        app.spark.read.format("pydelta").options(**app.options).option("versionAsOf", 0).load(app.table)
    )


def portable(app: Application) -> None:
    for name in ("spark.pydelta.nativeScan", "spark.pydelta.nativeWrite"):
        app.spark.conf.set(name, "false")
    native_write(app)
    native_read(app)
    for name in ("spark.pydelta.nativeScan", "spark.pydelta.nativeWrite"):
        app.spark.conf.unset(name)


def streams(app: Application) -> None:
    rows = app.spark.readStream.format("pydelta").options(**app.options).load(app.table)
    writer = rows.writeStream.format("pydelta").options(**app.options).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(app.folder / "cp")).start(str(app.folder / "ts"))
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress, query.status, query.exception())


def commands(app: Application) -> None:
    from delta_ds import DeltaTable

    table = DeltaTable.forPath(app.spark, app.table, app.options)
    print(table, repr(table), vars(table), table._repr_html_())
    app.explain(table.toDF())
    table.update("id = 1", {"id": "2"})
    table.delete("id = 0")
    merge = table.alias("t").merge(app.spark.range(5).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.clone(str(app.folder / "shallow"), isShallow=True)
    table.optimize().executeCompaction()
    table.history().show(truncate=False)
    table.detail().show(truncate=False)


def named_writes(app: Application) -> None:
    app.spark.range(3).write.format("pydelta").options(**app.options).saveAsTable("named")
    app.spark.range(3).write.format("pydelta").options(**app.options).mode("append").saveAsTable("named")
    app.spark.range(3).write.format("pydelta").options(**app.options).mode("overwrite").saveAsTable("named")
    app.spark.range(3).write.options(**app.options).insertInto("named")
    app.spark.range(3).writeTo("other").using("pydelta").options(**app.options).create()
    app.spark.range(3).writeTo("other").options(**app.options).append()
    app.spark.range(3).writeTo("other").using("pydelta").options(**app.options).createOrReplace()


def named_reads(app: Application) -> None:
    app.explain(app.spark.read.options(**app.options).table("named"))
    app.explain(app.spark.sql(f"SELECT * FROM named WITH ({app.equal})"))
    common = f"WITH x AS (SELECT * FROM named WITH ({app.equal})) SELECT * FROM x WHERE id IN"
    app.explain(app.spark.sql(f"{common} (SELECT id FROM other WITH ({app.equal}))"))


def statements(app: Application) -> None:
    options, pairs = app.listed, app.equal
    app.spark.sql(f"CREATE TABLE made (id LONG) USING pydelta OPTIONS ({options})")
    app.spark.sql(f"CREATE OR REPLACE TABLE made USING delta OPTIONS ({options}) AS SELECT 1L AS id")
    app.explain(app.spark.sql(f"INSERT INTO made WITH ({pairs}) SELECT 2L"))
    for text in (
        f"CREATE TABLE x (id LONG) USING delta OPTIONS ({options})",
        f"INSERT INTO made WITH ({pairs}) SELECT 3L",
    ):
        app.spark.sql(f"EXPLAIN EXTENDED {text}").show(truncate=False)
    for text in ("SHOW CREATE TABLE made", "DESCRIBE EXTENDED made", "DESCRIBE HISTORY made", "DESCRIBE DETAIL made",
                 "SHOW TBLPROPERTIES made"):  # fmt: skip
        app.spark.sql(text).show(100, truncate=False)
    entry = (
        app.spark._jsparkSession.sessionState()
        .catalog()
        .getTableMetadata(  # type: ignore[attr-defined]
            app.spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier("made")  # type: ignore[union-attr]
        )
    )
    print(entry.toString(), app.spark.catalog.getTable("made"))


def views(app: Application) -> None:
    options = app.listed
    app.spark.sql(f"CREATE TEMPORARY VIEW seen USING pydelta OPTIONS (path '{app.table}', {options})")
    app.explain(app.spark.sql("SELECT * FROM seen"))
    app.spark.sql("DESCRIBE EXTENDED seen").show(100, truncate=False)
    app.spark.sql(
        f"EXPLAIN EXTENDED CREATE TEMPORARY VIEW w USING pydelta OPTIONS (path '{app.table}', {options})"
    ).show(truncate=False)


def functions(app: Application) -> None:
    app.explain(app.spark.sql(f"SELECT * FROM pydelta('{app.table}', {app.arguments})"))


def missing_tables(app: Application) -> None:
    for call in (
        lambda: app.spark.read.options(**app.options).table("missing"),
        lambda: app.spark.sql(f"SELECT * FROM missing WITH ({app.equal})"),
        lambda: app.spark.sql(f"SELECT nosuch FROM named WITH ({app.equal})"),
        lambda: app.spark.sql(f"INSERT INTO missing WITH ({app.equal}) SELECT 1"),
        lambda: app.spark.range(1).writeTo("missing").options(**app.options).append(),
        lambda: app.spark.read.format("pydelta").options(**app.options).load(f"{app.table}-missing"),
    ):
        _tell(call)


def logins(app: Application) -> None:
    address = f"s3a://AKIA:Marked{app.way}Secret@bucket/t"
    for text in (
        f"CREATE TABLE l (id LONG) USING delta LOCATION '{address}'", f"CREATE TABLE delta.`{address}` (id LONG)",
        f"CREATE TABLE l USING delta LOCATION '{address}' AS SELECT 1L AS id", f"SELECT * FROM delta.`{address}`",
        f"SELECT * FROM pydelta('{address}')", f"ALTER TABLE named SET LOCATION '{address}'",
        f"DESCRIBE HISTORY delta.`{address}`", f"INSERT INTO delta.`{address}` SELECT 1",
        f"DELETE FROM delta.`{address}`", f"ALTER TABLE missing SET LOCATION '{address}'",
    ):  # fmt: skip
        _tell(lambda text=text: app.explain(app.spark.sql(text)))
    _tell(lambda: app.spark.read.format("pydelta").load(address))
    _tell(lambda: app.spark.range(1).write.format("pydelta").save(address))
    _tell(lambda: app.spark.range(1).write.format("pydelta").option("path", address).saveAsTable("l"))


def other_sources(app: Application) -> None:
    """Options of others reach them: a reader of text files that is told how they are encoded, by an odd name."""
    (app.folder / "texts").mkdir()
    (app.folder / "texts" / "a.csv").write_text("a;b\n")
    app.spark.sql(f"CREATE TABLE texts (x STRING, y STRING) USING csv LOCATION '{app.folder}/texts'")
    rows = app.spark.sql(f"SELECT * FROM texts WITH ('sep' = ';', {app.equal})").collect()
    assert [tuple(row) for row in rows] == [("a", "b")], rows


WAYS = {
    "nativewrite": native_write, "nativeread": native_read, "oldversion": old_version, "portable": portable,
    "streams": streams, "commands": commands, "namedwrites": named_writes, "namedreads": named_reads,
    "statements": statements, "views": views, "functions": functions, "missing": missing_tables, "logins": logins,
}  # fmt: skip


def _tell(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as error:
        print(traceback.format_exc(), repr(error), str(vars(error)))


# --- where it was seen


def seen_in(text: str) -> Iterator[str]:
    for found in MARK.finditer(text):
        yield found["way"]


def events(folder: Path) -> Iterator[tuple[str, str]]:
    """Each way that the event log shows, with the kind of the event and the field."""
    (file,) = folder.glob("local-*")
    for line in file.read_text(errors="replace").splitlines():
        for name, value in json.loads(line).items():
            for way in seen_in(json.dumps(value)):
                yield way, f"event log: {json.loads(line)['Event'].rpartition('.')[2]}.{name}"


def main(folder: Path) -> None:
    """Run all ways in a folder; print what was seen of each, what failed, and what reached the tables."""
    from pyspark.sql import SparkSession

    import delta_ds
    from delta_ds.kernel.storage.filesystem import Storage

    reached: set[str] = set()
    made = Storage.__init__

    def noted(self: Any, address: Any, options: Any = None) -> None:
        reached.update(way for value in (options or {}).values() for way in seen_in(str(value)))
        made(self, address, options)

    Storage.__init__ = noted  # type: ignore[method-assign]
    log = io.StringIO()
    logging.getLogger("delta_ds").addHandler(logging.StreamHandler(log))
    logging.getLogger("delta_ds").setLevel(logging.DEBUG)
    places = {
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    (folder / "events").mkdir()
    spark = SparkSession.builder.master("local[1]").config(map={**SETTINGS, **places}).getOrCreate()
    delta_ds.register(spark)
    app = Application(spark, folder)
    for way, action in WAYS.items():
        app.run(way, action)
    app.run("others", other_sources)
    found: dict[str, list[str]] = {way: [] for way in WAYS}
    for way, text in app.shown.items():
        if way != "others" and MARK.search(text):
            at = MARK.search(text).start()  # type: ignore[union-attr]
            found[way].append(f"told: ...{text[max(at - 300, 0) : at + 40]}...")
    app.way = "conf"
    listed = json.dumps(dict(spark.conf.getAll))
    spark.stop()
    for way, where in events(folder / "events"):
        if way in found and where not in found[way]:
            found[way].append(where)
    for way in {*seen_in(log.getvalue()), *seen_in(listed)} & found.keys():
        found[way].append("log lines or settings")
    for file in folder.rglob("*"):
        if file.is_file() and file.parent.name != "events":
            for way in {*seen_in(f"{file} {file.read_bytes().decode('latin-1')}")} & found.keys():
                found[way].append(f"file: {file}")
    print(json.dumps({"seen": found, "failed": app.failed, "reached": sorted(reached)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
