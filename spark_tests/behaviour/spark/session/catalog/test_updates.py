"""`catalog.update.enabled`: entries of the metastore tell the columns and properties of the log."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StructType

import delta_ds
from delta_ds import DeltaTable
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.entries import Entry, Metastore
from spark_tests.full_form import examples

pytestmark = [pytest.mark.spark, pytest.mark.long]

SETTING = "spark.databricks.delta.catalog.update.enabled"
LONGEST = "spark.databricks.delta.catalog.update.longFieldTruncationThreshold"


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """A session that wants entries to tell of logs, and an empty schema."""
    own = spark.newSession()
    own.conf.set(SETTING, "true")
    delta_ds.register(own)
    own.sql("CREATE SCHEMA told")
    own.sql("USE told")
    yield own
    own.sql("USE default")
    own.sql("DROP SCHEMA told CASCADE")
    delta_ds.unregister(own)


def entry(session: Any, name: str = "t") -> Any:
    return session._jsparkSession.sharedState().externalCatalog().getTable("told", name)


def columns(session: Any, name: str = "t") -> list[str]:
    return [field["name"] for field in json.loads(entry(session, name).schema().json())["fields"]]


def properties(session: Any, name: str = "t") -> dict[str, str]:
    found = entry(session, name).properties()
    return dict(session._jvm.scala.jdk.javaapi.CollectionConverters.asJava(found))


def test_new_entry_tells_columns_and_properties(session: Any) -> None:
    session.sql(
        "CREATE TABLE t (id INT NOT NULL COMMENT 'the id', p STRING) USING delta PARTITIONED BY (p) "
        "COMMENT 'a comment' TBLPROPERTIES ('k' = 'v')"
    )
    (first, second) = json.loads(entry(session).schema().json())["fields"]
    assert (first["name"], first["nullable"], first["metadata"]) == ("id", False, {"comment": "the id"})
    assert second["name"] == "p"
    # All are columns of data: Hive's metastore never lets go of partition columns.
    assert entry(session).partitionColumnNames().isEmpty()
    assert entry(session).comment().get() == "a comment"
    told = properties(session)
    assert int(told.pop("delta.lastCommitTimestamp")) > 0
    assert told == {
        "k": "v", "delta.minReaderVersion": "1", "delta.minWriterVersion": "2", "delta.lastUpdateVersion": "0",
    }  # fmt: skip
    session.range(2).write.format("delta").saveAsTable("rows")
    DeltaTable.create(session).tableName("built").addColumn("x", "int").execute()
    session.sql("CREATE TABLE copied SHALLOW CLONE rows")
    session.sql("CREATE TABLE alike LIKE rows")
    for name, expected in (("rows", "id"), ("built", "x"), ("copied", "id"), ("alike", "id")):
        assert columns(session, name) == [expected]


_CHANGES = {
    "ALTER TABLE ADD COLUMN": lambda s: s.sql("ALTER TABLE t ADD COLUMN c INT"),
    "DeltaTable.addColumns": lambda s: DeltaTable.forName(s, "t").addColumns(StructType().add("c", IntegerType())),
    "an append that evolves": lambda s: (
        s.sql("SELECT 5 id, 6 c").write.format("delta").mode("append").option("mergeSchema", "true")
        .saveAsTable("t")
    ),
    "writeTo": lambda s: s.sql("SELECT 5 id, 6 c").writeTo("t").option("mergeSchema", "true").append(),
    "MERGE": lambda s: s.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 9 id, 6 c) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    ),
    "an overwrite of the schema": lambda s: (
        s.sql("SELECT 5 id, 6 c").write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        .saveAsTable("t")
    ),
    "CREATE OR REPLACE TABLE": lambda s: s.sql("CREATE OR REPLACE TABLE t (id INT, c INT) USING delta"),
    "REPLACE TABLE AS SELECT": lambda s: s.sql("REPLACE TABLE t USING delta AS SELECT 5 id, 6 c"),
}  # fmt: skip


@pytest.mark.parametrize("change", _CHANGES)
def test_entry_tells_the_columns_after_every_change(session: Any, change: str) -> None:
    session.sql("CREATE TABLE t (id INT) USING delta")
    assert columns(session) == ["id"]
    _CHANGES[change](session)
    assert columns(session) == ["id", "c"]
    assert properties(session)["delta.lastUpdateVersion"] == "1"


def test_entry_without_the_setting_stays_as_it_is(session: Any) -> None:
    session.conf.set(SETTING, "false")
    session.sql("CREATE TABLE t (id INT) USING delta COMMENT 'kept' TBLPROPERTIES ('k' = 'v')")
    session.sql("ALTER TABLE t ADD COLUMN c INT")
    assert (columns(session), properties(session)) == ([], {})
    assert entry(session).comment().get() == "kept"
    session.conf.set(SETTING, "true")
    session.sql("ALTER TABLE t ADD COLUMN d INT")
    assert columns(session) == ["id", "c", "d"]
    session.conf.set(SETTING, "false")
    session.sql("ALTER TABLE t ADD COLUMN e INT")
    assert columns(session) == ["id", "c", "d"]


def test_rows_alone_are_no_reason_to_change_an_entry(session: Any) -> None:
    session.sql("CREATE TABLE t (id INT) USING delta")
    session.sql("INSERT INTO t VALUES (1)")
    session.sql("DELETE FROM t")
    assert properties(session)["delta.lastUpdateVersion"] == "0"
    session.sql("ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')")
    assert (properties(session)["delta.lastUpdateVersion"], properties(session)["k"]) == ("3", "v")
    session.sql("ALTER TABLE t UNSET TBLPROPERTIES ('k')")
    session.sql("RESTORE TABLE t TO VERSION AS OF 0")
    session.sql("ALTER TABLE t ADD COLUMN c INT")
    assert "k" not in properties(session)


def test_entry_tells_of_properties_that_are_gone_and_of_comments(session: Any) -> None:
    session.sql("CREATE TABLE t (id INT) USING delta COMMENT 'first' TBLPROPERTIES ('k' = 'v', 'l' = 'w')")
    before = properties(session)
    session.sql("ALTER TABLE t UNSET TBLPROPERTIES ('k')")
    told = properties(session)
    assert told["delta.lastUpdateVersion"] == "1"
    assert told.keys() == before.keys() - {"k"}
    session.sql("COMMENT ON TABLE t IS 'second'")
    assert entry(session).comment().get() == "second"
    assert properties(session)["delta.lastUpdateVersion"] == "2"
    session.sql("COMMENT ON TABLE t IS NULL")
    assert entry(session).comment().isEmpty()
    session.sql("INSERT INTO t VALUES (1)")
    assert properties(session)["delta.lastUpdateVersion"] == "3"


@pytest.mark.parametrize("change", ["ADD COLUMN c INT", "SET TBLPROPERTIES ('k' = 'new')"])
def test_older_version_does_not_replace_a_newer_one_in_the_entry(
    session: Any, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    session.sql("CREATE TABLE t (id INT) USING delta")
    _in_between(monkeypatch, lambda: session.sql(f"ALTER TABLE t {change}"))
    session.sql("ALTER TABLE t SET TBLPROPERTIES ('k' = 'old')")
    assert columns(session) == session.table("t").columns
    assert properties(session)["delta.lastUpdateVersion"] == "2"
    assert properties(session)["k"] == ("new" if "k" in change else "old")


def test_table_that_is_made_anew_in_its_place_is_told_of(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE t (id INT) USING delta LOCATION '{tmp_path}/t'")
    session.sql("ALTER TABLE t ADD COLUMN c INT")
    shutil.rmtree(tmp_path / "t")
    session.sql("SELECT 1 z").write.format("delta").save(f"{tmp_path}/t")
    session.sql("REFRESH TABLE t")
    assert session.table("t").columns == ["z"]
    session.sql("ALTER TABLE t ADD COLUMN y INT")
    assert (columns(session), properties(session)["delta.lastUpdateVersion"]) == (["z", "y"], "1")


@pytest.mark.parametrize("change", ["ADD COLUMN c INT", "SET TBLPROPERTIES ('k' = 'v')"])
def test_location_that_is_set_meanwhile_stays(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    session.sql(f"CREATE TABLE t (id INT) USING delta LOCATION '{tmp_path}/a'")
    session.sql("SELECT 1 id, 2 c WHERE false").write.format("delta").save(f"{tmp_path}/b")
    session.sql("ALTER TABLE t ADD COLUMN c INT")
    assert columns(session) == ["id", "c"]
    metastore = Metastore(Jvm.of(session))
    _in_between(monkeypatch, lambda: metastore.move(["told"], "t", f"{tmp_path}/b"))
    session.sql(f"ALTER TABLE t {change.replace(' c ', ' d ')}")
    assert entry(session).location().getPath() == f"{tmp_path}/b"
    assert columns(session) == ["id", "c"] and "k" not in properties(session)


def _in_between(monkeypatch: pytest.MonkeyPatch, what: Callable[[], object]) -> None:
    """Do something once after a commit was made, and its version read, before the entry is written."""
    from delta_ds.spark.session.catalog import updates

    read = updates.description_of

    def reading(*arguments: Any) -> Any:
        monkeypatch.setattr(updates, "description_of", read)
        description = read(*arguments)
        what()
        return description

    monkeypatch.setattr(updates, "description_of", reading)


def test_session_that_is_gone_takes_no_entry_of_one_with_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_ds.spark.session.catalog import updates

    class Session:
        sparkContext = SimpleNamespace(_jsc=object())

    def follow(session: Any, table: str) -> None:
        snapshot: Any = SimpleNamespace(storage=SimpleNamespace(url=table))
        updates.follow(session, Entry("s", table, table, "delta", True), {}, snapshot)

    def committed(table: str) -> None:
        report: Any = SimpleNamespace(error=None, table=table)
        updates._renew(report)

    renewed: list[str] = []
    monkeypatch.setattr(updates, "_named", {})
    monkeypatch.setattr(updates, "_following", [])
    monkeypatch.setattr(updates, "keeps_entries", lambda spark: True)
    monkeypatch.setattr(updates, "renew", lambda spark, entry, options: renewed.append(entry.name))
    monkeypatch.setattr(updates, "id", lambda session: 1, raising=False)  # as if it was given out anew
    gone, alive = Session(), Session()
    follow(gone, "old")
    follow(alive, "new")
    del gone
    gc.collect()
    committed("old")
    committed("new")
    assert renewed == ["new"]
    updates.forget(alive)  # type: ignore[arg-type]
    committed("new")
    assert renewed == ["new"] and not updates._following


def test_entry_tells_the_clustering_columns(session: Any) -> None:
    session.sql("CREATE TABLE t (a INT, b STRUCT<c: INT>) USING delta CLUSTER BY (a)")
    assert properties(session)["clusteringColumns"] == '[["a"]]'
    session.sql("ALTER TABLE t CLUSTER BY (b.c, a)")
    assert properties(session)["clusteringColumns"] == '[["b","c"],["a"]]'


@pytest.mark.parametrize(
    ("columns_said", "reason"),
    [("`\u0436` INT", "non-latin"), ("id INT, s STRUCT<a_field: INT, another_field: INT>", "very long")],
)
def test_columns_that_hive_cannot_hold_are_left_out_with_the_reason(
    session: Any, columns_said: str, reason: str
) -> None:
    session.conf.set(LONGEST, "20")
    session.sql(
        f"CREATE TABLE t ({columns_said}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    assert columns(session) == []
    assert reason in properties(session)["delta.catalogUpdateError"]
    assert session.table("t").columns[0] in ("\u0436", "id")


def test_entry_of_another_place_or_none_is_left_alone(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE t (id INT) USING delta LOCATION '{tmp_path}/a'")
    table = DeltaTable.forName(session, "t")
    session.sql("DROP TABLE t")
    session.sql(f"CREATE TABLE t (other INT) USING delta LOCATION '{tmp_path}/b'")
    table.addColumns(StructType().add("c", IntegerType()))
    assert columns(session) == ["other"]
    session.sql("DROP TABLE t")
    table.addColumns(StructType().add("d", IntegerType()))
    assert table.toDF().columns == ["id", "c", "d"]


def test_commit_stands_where_the_entry_cannot_be_renewed(
    session: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session.sql("CREATE TABLE t (id INT) USING delta")

    def failing(*arguments: Any, **keywords: Any) -> None:
        raise OSError("the metastore is away")

    with monkeypatch.context() as patched:
        patched.setattr(Metastore, "describe", failing)
        session.sql("ALTER TABLE t ADD COLUMN c INT")
    assert "entry_not_renewed" in caplog.text and "the metastore is away" in caplog.text
    assert session.table("t").columns == ["id", "c"] and columns(session) == ["id"]
    session.sql("INSERT INTO t VALUES (1, 2)")
    assert columns(session) == ["id", "c"]


@settings(
    max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.sampled_from(["add", "drop", "rename", "set", "comment", "rows", "restore"]), max_size=6
    )
)
def test_entry_tells_the_newest_columns_whatever_was_done(session: Any, steps: list[str]) -> None:
    session.sql(
        "CREATE OR REPLACE TABLE t (id INT, x INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    for number, step in enumerate(steps):
        last = session.table("t").columns[-1]
        statement = {
            "add": f"ALTER TABLE t ADD COLUMN n{number} INT",
            "drop": f"ALTER TABLE t DROP COLUMN {last}" if last != "id" else "INSERT INTO t (id) VALUES (1)",
            "rename": f"ALTER TABLE t RENAME COLUMN {last} TO r{number}" if last != "id" else "OPTIMIZE t",
            "set": f"ALTER TABLE t SET TBLPROPERTIES ('p{number}' = 'v')",
            "comment": f"ALTER TABLE t ALTER COLUMN id COMMENT 'c{number}'",
            "rows": "INSERT INTO t (id) VALUES (1)",
            "restore": "RESTORE TABLE t TO VERSION AS OF 0",
        }[step]
        session.sql(statement)
        told = json.loads(entry(session).schema().json())["fields"]
        assert [field["name"] for field in told] == session.table("t").columns
        shown = {row.key: row.value for row in session.sql("SHOW TBLPROPERTIES t").collect()}
        assert (
            properties(session).items() >= {k: v for k, v in shown.items() if k.startswith("delta.")}.items()
        )
