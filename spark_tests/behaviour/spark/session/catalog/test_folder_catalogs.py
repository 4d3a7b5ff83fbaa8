"""A folder as a catalog under a name of its own: namespaces in namespaces, and tables below them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import delta_ds
from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DeltaError
from spark_tests.full_form import examples

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(params=["folder", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake(spark: Any, tmp_path: Path, kind: str) -> Iterator[Any]:
    yield from _session(spark, kind, tmp_path / ("lake" if kind == "folder" else "lake.db"))


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> Iterator[Any]:
    yield from _session(spark, "folder", tmp_path / "lake")


def _session(spark: Any, kind: str, uri: Path) -> Iterator[Any]:
    own = spark.newSession()
    own.conf.set("spark.pydelta.catalog.lake.type", kind)
    own.conf.set("spark.pydelta.catalog.lake.uri", str(uri))
    delta_ds.register(own)
    yield own
    own.sql("USE spark_catalog.default")
    delta_ds.unregister(own)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def names(session: Any, statement: str) -> list[str]:
    return sorted(row[0] for row in session.sql(statement).collect())


def refused(session: Any, statement: str, condition: str) -> None:
    with pytest.raises(Exception, match=condition):
        session.sql(statement).collect()


# --- namespaces, of every catalog that keeps them


def test_namespaces_lie_in_namespaces(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake.a.b")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.a.b")
    lake.sql("CREATE SCHEMA lake.c")
    refused(lake, "CREATE NAMESPACE lake.a.b", "SCHEMA_ALREADY_EXISTS")
    assert names(lake, "SHOW NAMESPACES IN lake") == ["a", "c"]
    assert names(lake, "SHOW NAMESPACES IN lake.a") == ["a.b"]
    assert names(lake, "SHOW NAMESPACES IN lake.a.b") == []
    refused(lake, "SHOW NAMESPACES IN lake.none", "SCHEMA_NOT_FOUND")
    assert rows(lake.sql("DESCRIBE NAMESPACE lake.a.b"))[0][1] == "lake"


def test_namespace_goes_only_when_it_is_empty_or_with_all_that_is_in_it(
    lake: Any, tmp_path: Path, kind: str
) -> None:
    lake.sql("CREATE NAMESPACE lake.a.b")
    at = f"LOCATION '{tmp_path}/t'" if kind == "sqlite" else ""
    lake.sql(f"CREATE TABLE lake.a.b.t (id INT) USING delta {at}")
    refused(lake, "DROP NAMESPACE lake.a", "SCHEMA_NOT_EMPTY")
    refused(lake, "DROP NAMESPACE lake.a.b", "SCHEMA_NOT_EMPTY")
    assert rows(lake.sql("SHOW TABLES IN lake.a.b").select("tableName")) == [("t",)]
    lake.sql("DROP NAMESPACE lake.a CASCADE")
    assert names(lake, "SHOW NAMESPACES IN lake") == []
    refused(lake, "SELECT * FROM lake.a.b.t", "TABLE_OR_VIEW_NOT_FOUND")
    lake.sql("DROP NAMESPACE IF EXISTS lake.a")
    refused(lake, "DROP NAMESPACE lake.a", "SCHEMA_NOT_FOUND")


def test_properties_of_a_namespace_are_refused(lake: Any) -> None:
    refused(lake, "CREATE NAMESPACE lake.a COMMENT 'c'", "DELTA_CATALOG_CANNOT")
    assert names(lake, "SHOW NAMESPACES IN lake") == []


# --- tables below them


def test_statements_on_tables_below_namespaces(folder: Any, tmp_path: Path) -> None:
    sql = folder.sql
    sql("CREATE NAMESPACE lake.a.b")
    sql("CREATE TABLE lake.a.b.t (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    sql("INSERT INTO lake.a.b.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql("UPDATE lake.a.b.t SET p = 'z' WHERE id = 1")
    sql("DELETE FROM lake.a.b.t WHERE id = 2")
    sql("MERGE INTO lake.a.b.t USING (SELECT 5L id, 'm' p) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert rows(sql("SELECT id, p FROM lake.a.b.t")) == [(1, "z"), (3, "c"), (5, "m")]
    assert sql("SELECT * FROM lake.a.b.t VERSION AS OF 1").count() == 3
    sql("ALTER TABLE lake.a.b.t ADD COLUMN n INT")
    sql("CREATE OR REPLACE TABLE lake.a.b.c AS SELECT id FROM lake.a.b.t")
    sql("OPTIMIZE lake.a.b.t")
    assert sql("DESCRIBE HISTORY lake.a.b.t").first().operation == "ADD COLUMNS"
    assert DeltaLog(tmp_path / "lake" / "a" / "b" / "t").snapshot().scan().count() == 3
    assert sql("DESCRIBE DETAIL lake.a.b.t").first().name == "lake.a.b.t"
    sql("DROP TABLE lake.a.b.t")
    assert not (tmp_path / "lake" / "a" / "b" / "t").exists()
    assert rows(sql("SHOW TABLES IN lake.a.b").select("tableName")) == [("c",)]


def test_names_after_use_are_those_of_the_namespace(folder: Any, tmp_path: Path) -> None:
    folder.sql("CREATE NAMESPACE lake.a.b")
    folder.sql("USE lake.a.b")
    folder.sql("CREATE TABLE t (id INT) USING delta")
    folder.range(3).selectExpr("cast(id as int) id").write.mode("append").format("delta").saveAsTable("t")
    made = DeltaTable.create(folder).tableName("built").addColumn("id", "long").execute()
    assert made.toDF().columns == ["id"]
    DeltaTable.forName(folder, "t").delete("id = 1")
    assert rows(folder.table("t")) == [(0,), (2,)]
    assert (tmp_path / "lake" / "a" / "b" / "built" / "_delta_log").is_dir()
    folder.sql("CREATE TABLE copied SHALLOW CLONE t")
    assert folder.table("lake.a.b.copied").count() == 2
    refused(folder, "USE lake.none", "SCHEMA_NOT_FOUND")


def test_tables_that_others_wrote_are_there(folder: Any, tmp_path: Path) -> None:
    DeltaLog(tmp_path / "lake" / "x" / "y" / "t").write(pa.table({"id": [1, 2]}))
    (tmp_path / "lake" / "x" / "_temporary").mkdir()
    assert names(folder, "SHOW NAMESPACES IN lake.x") == ["x.y"]
    assert folder.table("lake.x.y.t").count() == 2
    assert folder.catalog.tableExists("lake.x.y.t") and not folder.catalog.tableExists("lake.x.y.none")


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("CREATE TABLE lake.none.t (id INT) USING delta", "SCHEMA_NOT_FOUND"),
        ("CREATE TABLE lake.a.t (id INT) USING parquet", "DELTA_CATALOG_FORMAT"),
        ("CREATE TABLE lake.a.t (id INT) USING delta LOCATION '/data/t'", "DELTA_CATALOG_CANNOT"),
        ("CREATE TABLE lake.a.`_t` (id INT) USING delta", "DELTA_CATALOG_NAME"),
        ("CREATE TABLE lake.a.`t/u` (id INT) USING delta", "DELTA_CATALOG_NAME"),
        ("CREATE NAMESPACE lake.`..`", "DELTA_CATALOG_NAME"),
        ("CREATE NAMESPACE lake.a.there.below", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE lake.a.there (id INT) USING delta", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("ALTER TABLE lake.a.there RENAME TO lake.a.here", "DELTA_CATALOG_CANNOT"),
        ("SELECT * FROM lake.a.`../a/there`", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DROP NAMESPACE lake.a.there CASCADE", "SCHEMA_NOT_FOUND"),
    ],
)
def test_what_a_folder_cannot_is_refused(folder: Any, tmp_path: Path, statement: str, condition: str) -> None:
    folder.sql("CREATE NAMESPACE lake.a")
    folder.sql("CREATE TABLE lake.a.there (id INT) USING delta")
    before = sorted(path.name for path in (tmp_path / "lake" / "a").iterdir())
    refused(folder, statement, condition)
    assert sorted(path.name for path in (tmp_path / "lake" / "a").iterdir()) == before


def test_files_of_others_keep_a_namespace(folder: Any, tmp_path: Path) -> None:
    folder.sql("CREATE NAMESPACE lake.a")
    (tmp_path / "lake" / "a" / "notes.txt").write_text("mine")
    refused(folder, "DROP NAMESPACE lake.a CASCADE", "SCHEMA_NOT_EMPTY")
    assert (tmp_path / "lake" / "a" / "notes.txt").read_text() == "mine"


# --- a table takes no folder of a namespace, and nothing in a table has a name

_WAYS_TO_MAKE = {
    "CREATE TABLE": lambda s, name: s.sql(f"CREATE TABLE {name} (b INT) USING delta"),
    "CREATE TABLE IF NOT EXISTS": lambda s, name: s.sql(f"CREATE TABLE IF NOT EXISTS {name} (b INT)"),
    "CREATE TABLE AS SELECT": lambda s, name: s.sql(f"CREATE TABLE {name} AS SELECT 2 b"),
    "CREATE TABLE LIKE": lambda s, name: s.sql(f"CREATE TABLE {name} LIKE lake.a.other"),
    "CREATE OR REPLACE TABLE": lambda s, name: s.sql(f"CREATE OR REPLACE TABLE {name} (b INT)"),
    "CREATE OR REPLACE TABLE AS SELECT": lambda s, name: s.sql(
        f"CREATE OR REPLACE TABLE {name} AS SELECT 2 b"
    ),
    "REPLACE TABLE": lambda s, name: s.sql(f"REPLACE TABLE {name} (b INT)"),
    "REPLACE TABLE AS SELECT": lambda s, name: s.sql(f"REPLACE TABLE {name} AS SELECT 2 b"),
    "SHALLOW CLONE": lambda s, name: s.sql(f"CREATE TABLE {name} SHALLOW CLONE lake.a.other"),
    "OR REPLACE SHALLOW CLONE": lambda s, name: s.sql(
        f"CREATE OR REPLACE TABLE {name} SHALLOW CLONE lake.a.other"
    ),
    "writeTo.create": lambda s, name: s.range(2).writeTo(name).create(),
    "writeTo.replace": lambda s, name: s.range(2).writeTo(name).replace(),
    "writeTo.createOrReplace": lambda s, name: s.range(2).writeTo(name).createOrReplace(),
    "saveAsTable": lambda s, name: s.range(2).write.format("delta").saveAsTable(name),
    "saveAsTable append": lambda s, name: s.range(2).write.format("delta").mode("append").saveAsTable(name),
    "saveAsTable overwrite": lambda s, name: (
        s.range(2).write.format("delta").mode("overwrite").saveAsTable(name)
    ),
    "saveAsTable ignore": lambda s, name: s.range(2).write.format("delta").mode("ignore").saveAsTable(name),
    "create": lambda s, name: _built(DeltaTable.create(s), name),
    "createIfNotExists": lambda s, name: _built(DeltaTable.createIfNotExists(s), name),
    "replace": lambda s, name: _built(DeltaTable.replace(s), name),
    "createOrReplace": lambda s, name: _built(DeltaTable.createOrReplace(s), name),
}


def _built(builder: Any, name: str) -> None:
    builder.tableName(name).addColumn("b", "int").execute()


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def nested(folder: Any, tmp_path: Path) -> Any:
    """A namespace `lake.a.x` with a table in it, and a table beside it."""
    folder.sql("CREATE NAMESPACE lake.a.x")
    folder.sql("CREATE TABLE lake.a.x.t AS SELECT 1 a")
    folder.sql("CREATE TABLE lake.a.other AS SELECT 1 a")
    return folder


@pytest.mark.sampled
@pytest.mark.parametrize("way", _WAYS_TO_MAKE)
@pytest.mark.parametrize("name", ["lake.a.x", "lake.a.other.below"])
def test_no_table_comes_over_a_namespace_or_into_a_table(
    nested: Any, tmp_path: Path, way: str, name: str
) -> None:
    before = _files(tmp_path / "lake")
    expected = "NON_EMPTY_LOCATION|TABLE_OR_VIEW_NOT_FOUND|DELTA_CANNOT_REPLACE_MISSING_TABLE"
    if name != "lake.a.x":
        expected = "SCHEMA_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND|DELTA_CANNOT_REPLACE_MISSING_TABLE"
    with pytest.raises(Exception, match=expected):
        _WAYS_TO_MAKE[way](nested, name)
    assert _files(tmp_path / "lake") == before
    assert rows(nested.table("lake.a.x.t")) == [(1,)]


def test_table_takes_the_folder_of_an_empty_namespace(folder: Any) -> None:
    folder.sql("CREATE NAMESPACE lake.a.x")
    folder.sql("CREATE OR REPLACE TABLE lake.a.x AS SELECT 2 b")
    assert rows(folder.table("lake.a.x")) == [(2,)]
    assert names(folder, "SHOW NAMESPACES IN lake.a") == []


def test_what_lies_in_the_folder_of_a_table_has_no_name(folder: Any, tmp_path: Path) -> None:
    table = tmp_path / "lake" / "a" / "t"
    DeltaLog(table).write(pa.table({"id": [1]}))
    DeltaLog(table / "in" / "ner").write(pa.table({"id": [2]}))
    refused(folder, "SELECT * FROM lake.a.t.in.ner", "TABLE_OR_VIEW_NOT_FOUND")
    refused(folder, "DROP TABLE lake.a.t.in.ner", "TABLE_OR_VIEW_NOT_FOUND")
    assert not folder.catalog.tableExists("lake.a.t.in.ner")
    assert (table / "in" / "ner" / "_delta_log").is_dir()


@pytest.mark.parametrize(
    "held", ["_checkpoints/q", "x/deep/.hidden/f", "x/notes.txt", "x/_delta_log/_last_checkpoint"]
)
def test_namespace_goes_with_all_that_is_in_it_or_nothing_goes(
    nested: Any, tmp_path: Path, held: str
) -> None:
    path = tmp_path / "lake" / "a" / held
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = _files(tmp_path / "lake")
    refused(nested, "DROP NAMESPACE lake.a CASCADE", "SCHEMA_NOT_EMPTY")
    assert _files(tmp_path / "lake") == before
    assert rows(nested.table("lake.a.x.t")) == [(1,)]
    path.unlink()
    while path.parent.name not in ("a", "x"):
        path = path.parent
        path.rmdir()
    nested.sql("DROP NAMESPACE lake.a CASCADE")
    assert _files(tmp_path / "lake") == []


# --- a log without versions is no table


@pytest.mark.parametrize("way", ["CREATE TABLE", "CREATE TABLE AS SELECT", "saveAsTable", "create"])
def test_table_is_made_where_a_log_has_no_version(folder: Any, tmp_path: Path, way: str) -> None:
    folder.sql("CREATE NAMESPACE lake.a")
    (tmp_path / "lake" / "a" / "t" / "_delta_log").mkdir(parents=True)
    assert not folder.catalog.tableExists("lake.a.t")
    assert folder.sql("SHOW TABLES IN lake.a").count() == 0
    refused(folder, "SELECT * FROM lake.a.t", "TABLE_OR_VIEW_NOT_FOUND")
    _WAYS_TO_MAKE[way](folder, "lake.a.t")
    assert folder.table("lake.a.t").count() in (0, 1, 2)
    assert names(folder, "SHOW TABLES IN lake.a") == ["a"]


def test_log_without_files_keeps_no_namespace(folder: Any, tmp_path: Path) -> None:
    folder.sql("CREATE NAMESPACE lake.a")
    (tmp_path / "lake" / "a" / "t" / "_delta_log").mkdir(parents=True)
    folder.sql("DROP NAMESPACE lake.a CASCADE")
    assert _files(tmp_path / "lake") == []


def test_table_whose_commits_are_cleaned_up_is_there(folder: Any, tmp_path: Path) -> None:
    folder.sql("CREATE NAMESPACE lake.a")
    folder.sql("CREATE TABLE lake.a.t AS SELECT 1 a")
    folder.sql("INSERT INTO lake.a.t VALUES (2)")
    log = tmp_path / "lake" / "a" / "t"
    DeltaLog(log).checkpoint()
    for commit in (log / "_delta_log").glob("*.json"):
        if commit.stem != f"{1:020}":
            commit.unlink()
    assert rows(folder.table("lake.a.t")) == [(1,), (2,)]


def test_settings_that_a_folder_has_not_are_refused(spark: Any) -> None:
    from delta_ds.spark.session.catalog.named import named_catalogs

    own = spark.newSession()
    for key, text in {"type": "folder", "uri": "/data/lake", "token": "t"}.items():
        own.conf.set(f"spark.pydelta.catalog.odd.{key}", text)
    with pytest.raises(DeltaError, match="DELTA_UNKNOWN_CATALOG_SETTING"):
        named_catalogs(own)


_names = st.text("abcxyzäж 01-`", min_size=1, max_size=6).map(lambda text: text.strip(" `") or "n")


@settings(
    max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.lists(_names, min_size=1, max_size=4))
def test_every_namespace_that_was_made_is_listed_in_the_one_above(lake: Any, path: list[str]) -> None:
    from delta_ds.spark.session.catalog.named import named_catalog

    catalog = named_catalog(lake, "lake")
    catalog.create_namespace(path, {})
    for depth in range(len(path)):
        assert path[depth] in catalog.namespaces(path[:depth])
        assert catalog.has_namespace(path[: depth + 1])
    assert catalog.drop_namespace(path[:1], True)
    assert not catalog.has_namespace(path[:1])
