"""Settings of delta-spark: what each does, that none is passed over in silence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable
from delta_ds.exceptions import DeltaError, InvalidOptionError
from delta_ds.kernel.format.options.ignored_settings import MACHINERY, SETTINGS
from delta_ds.kernel.format.options.settings import (
    AUTO_MERGE,
    DEFAULTS_PREFIX,
    DROP_IF_EXISTS,
    OPTIMIZE_WRITE,
    OVERWRITE_MODE,
    SETTING_PREFIX,
)
from delta_ds.spark.base.kinds import session_facts
from delta_ds.spark.base.kinds.session_facts import without_effect
from spark_tests.behaviour.spark.session_settings import session_settings

FEED = "delta.enableChangeDataFeed"


def test_every_setting_is_there_once() -> None:
    every = (*SETTINGS, *MACHINERY)
    assert len(every) == len({setting.name for setting in every})


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("schema.autoMerge.enabled", "true", None),
        ("properties.defaults.enableChangeDataFeed", "true", None),
        ("properties.defaults.feature.deletionVectors", "supported", None),
        ("properties.defaults.EnableChangeDataFeed", "true", "properties.defaults.enableChangeDataFeed?"),
        ("properties.defaults.myOwn", "true", "it has no effect"),
        ("stalenessLimit", "1h", "newest version"),
        ("stalenessLimit", "0ms", None),
        ("stats.skipping", "TRUE", None),
        ("schema.automerge.enabled", "true", "did you mean spark.databricks.delta.schema.autoMerge.enabled?"),
        ("never.heard.of", "1", "it has no effect here"),
        ("isDeltaTable.strictCheck", "false", "it is of delta-spark's own machinery, which is not here"),
        ("isDeltaTable.strictCheck", "true", None),
        (
            "uniform.iceberg.sync.convert.enabled",
            "true",
            "metadata of Iceberg is written by rules of its own",
        ),
    ],
)
def test_what_has_no_effect_is_told_with_what_to_do(name: str, text: str, told: str | None) -> None:
    found = without_effect({SETTING_PREFIX + name: text})
    assert list(found) == ([] if told is None else [SETTING_PREFIX + name])
    assert told is None or told in found[SETTING_PREFIX + name]


@pytest.mark.parametrize("name", ["preview.enabled", "rowLevelConcurrency.enabled", "io.cache.enabled"])
def test_a_setting_that_is_like_no_other_suggests_none(name: str) -> None:
    assert list(without_effect({SETTING_PREFIX + name: "true"}).values()) == ["it has no effect here"]


def _with(spark: SparkSession, **said: Any) -> AbstractContextManager[None]:
    """A session with settings; names with `__` for dots."""
    return session_settings(
        spark, {SETTING_PREFIX + name.replace("__", "."): str(text) for name, text in said.items()}
    )


@contextmanager
def _portable(spark: SparkSession) -> Iterator[None]:
    """Writes by the data source."""
    spark.conf.set("spark.pydelta.nativeWrite", "false")
    try:
        yield
    finally:
        spark.conf.unset("spark.pydelta.nativeWrite")


def _properties(spark: SparkSession, path: Path) -> dict[str, str]:
    return dict(DeltaTable.forPath(spark, str(path)).detail().first().properties)


def test_setting_without_effect_is_told_once_a_session(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _with(spark, never__heard__of=1), caplog.at_level(logging.WARNING, logger="delta_ds"):
        told = delta_ds.register(spark).settings_without_effect
        for _ in range(2):
            spark.range(1).write.format("pydelta").mode("append").save(str(tmp_path / "t"))
            DeltaTable.forPath(spark, str(tmp_path / "t")).delete("id = 7")
    assert list(told) == [SETTING_PREFIX + "never.heard.of"]
    events = [r.getMessage() for r in caplog.records if "setting_without_effect" in r.getMessage()]
    assert len(events) == 1 and "name=spark.databricks.delta.never.heard.of" in events[0]


def test_new_tables_take_the_default_properties_however_they_are_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(3)
    old = tmp_path / "old"
    rows.write.format("pydelta").save(str(old))
    rows.write.parquet(str(tmp_path / "converted"))
    with _with(spark, properties__defaults__enableChangeDataFeed="true", properties__defaults__unknown="1"):
        rows.write.format("pydelta").save(str(tmp_path / "saved"))
        with _portable(spark):
            rows.write.format("pydelta").save(str(tmp_path / "portable"))
        rows.writeTo(f"pydelta.`{tmp_path / 'written'}`").create()
        rows.write.saveAsTable(f"pydelta.`{tmp_path / 'named'}`")
        DeltaTable.create(spark).location(str(tmp_path / "built")).addColumn("id", "long").execute()
        DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'converted'}`")
        stream = spark.readStream.format("pydelta").load(str(old)).writeStream.format("pydelta")
        stream = stream.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
        stream.start(str(tmp_path / "streamed")).awaitTermination()
        # What the call says goes before, and tables that are there stay as they are; so do clones.
        rows.write.format("pydelta").option(FEED, "false").save(str(tmp_path / "told"))
        rows.write.format("pydelta").mode("overwrite").save(str(old))
        DeltaTable.forPath(spark, str(old)).clone(str(tmp_path / "cloned"), isShallow=True)
    made = ("saved", "portable", "written", "named", "built", "converted", "streamed")
    found = {name: _properties(spark, tmp_path / name).get(FEED) for name in made}
    assert found == dict.fromkeys(made, "true")
    assert _properties(spark, tmp_path / "told") == {FEED: "false"}
    assert _properties(spark, old) == _properties(spark, tmp_path / "cloned") == {}


_RETENTIONS = "vacuum__enforceDeletedFileAndLogRetentionDurationCompatibility"


@pytest.mark.parametrize(
    ("name", "text", "allowed", "condition"),
    [
        ("delta.logRetentionDuration", "interval 1 day", {_RETENTIONS: "false"}, "DELTA_ILLEGAL_OPTION"),
        ("delta.made.up", "1", {"allowArbitraryProperties__enabled": "true"}, "DELTA_UNKNOWN_CONFIGURATION"),
    ],
)
def test_properties_are_those_that_the_session_allows_however_they_are_set(
    spark: SparkSession, tmp_path: Path, name: str, text: str, allowed: dict[str, str], condition: str
) -> None:
    rows, old = spark.range(3), tmp_path / "old"
    rows.write.format("pydelta").save(str(old))
    table = DeltaTable.forPath(spark, str(old))
    said = f"TBLPROPERTIES ('{name}' = '{text}')"

    def portable() -> None:
        with _portable(spark):
            rows.write.format("pydelta").option(name, text).save(str(tmp_path / "portable"))

    def at(place: str) -> str:
        return f"pydelta.`{tmp_path / place}`"

    builder = DeltaTable.create(spark).location(str(tmp_path / "built")).addColumn("id", "long")
    ways: dict[str, Callable[[], object]] = {
        "saved": lambda: rows.write.format("pydelta").option(name, text).save(str(tmp_path / "saved")),
        "portable": portable,
        "written": lambda: rows.writeTo(at("written")).tableProperty(name, text).create(),
        "built": lambda: builder.property(name, text).execute(),
        "stated": lambda: spark.sql(f"CREATE TABLE {at('stated')} (id LONG) USING pydelta {said}"),
        "selected": lambda: spark.sql(f"CREATE TABLE {at('selected')} USING pydelta {said} AS SELECT 1L id"),
        "cloned": lambda: table.clone(str(tmp_path / "cloned"), isShallow=True, properties={name: text}),
        "copied": lambda: spark.sql(f"CREATE TABLE {at('copied')} DEEP CLONE {at('old')} {said}"),
        "altered": lambda: spark.sql(f"ALTER TABLE {at('old')} SET {said}"),
        "old": lambda: table.setProperties({name: text}),
    }
    for place, way in ways.items():
        with pytest.raises(DeltaError) as refused:
            way()
        assert refused.value.condition == condition, place
    assert [found.parent for found in tmp_path.rglob("_delta_log")] == [old]
    assert table.history().count() == 1
    with _with(spark, **allowed):
        for way in ways.values():
            way()
    made = [place for place in ways if place != "altered"]
    assert {place: _properties(spark, tmp_path / place).get(name) for place in made} == dict.fromkeys(
        made, text
    )


def test_dynamic_overwrites_are_refused_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, rows = str(tmp_path / "t"), spark.range(2).selectExpr("id", "id AS p")
    rows.write.format("pydelta").partitionBy("p").save(path)

    def save() -> None:
        spark.range(1).selectExpr("7L AS id", "id AS p").write.format("pydelta").mode("overwrite").save(path)

    def portable() -> None:
        with _portable(spark):
            save()

    ways: list[Callable[[], object]] = [
        save,
        portable,
        lambda: rows.write.insertInto(f"pydelta.`{path}`", overwrite=True),
        lambda: rows.writeTo(f"pydelta.`{path}`").append(),
        lambda: spark.sql(f"INSERT OVERWRITE pydelta.`{path}` VALUES (7L, 0L)"),
        lambda: spark.sql(f"INSERT OVERWRITE pydelta.`{path}` PARTITION (p = 0) VALUES (7L)"),
    ]
    by_call: list[Callable[[], object]] = [
        lambda: rows.writeTo(f"pydelta.`{path}`").overwritePartitions(),
        lambda: (
            rows.write.format("pydelta")
            .mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .save(path)
        ),
    ]
    with _with(spark, dynamicPartitionOverwrite__enabled="false"):
        for way in by_call:
            with pytest.raises(DeltaError) as refused:
                way()
            assert refused.value.condition == "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED"
        with session_settings(spark, {OVERWRITE_MODE: "dynamic"}):
            for way in ways:
                with pytest.raises(DeltaError) as refused:
                    way()
                assert refused.value.condition == "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED"
            # Commands replace rows by their own rules.
            DeltaTable.forPath(spark, path).update("id = 1", {"id": "8"})
        assert sorted(row.id for row in spark.read.format("pydelta").load(path).collect()) == [0, 8]
        save()
    assert [row.id for row in spark.read.format("pydelta").load(path).collect()] == [7]


def test_conversion_refuses_names_that_its_files_do_not_have(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "t"))
    with _with(spark, properties__defaults__columnMapping__mode="name"), pytest.raises(DeltaError) as refused:
        DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 't'}`")
    assert refused.value.condition == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_schemas_grow_where_the_session_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").save(path)

    def columns() -> list[str]:
        return spark.read.format("pydelta").load(path).columns

    wider = spark.range(2, 5)
    for name in ("saved", "placed", "written", "merged", "streamed"):
        wider = wider.selectExpr("*", f"'x' AS {name}")
        with _with(spark, schema__autoMerge__enabled="true"):
            if name == "saved":
                with pytest.raises(DeltaError):
                    wider.write.format("pydelta").mode("append").option("mergeSchema", "false").save(path)
                wider.write.format("pydelta").mode("append").save(path)
            elif name == "placed":
                wider.write.insertInto(f"pydelta.`{path}`")
            elif name == "written":
                wider.writeTo(f"pydelta.`{path}`").append()
            elif name == "merged":
                merge = (
                    DeltaTable.forPath(spark, path).alias("t").merge(wider.alias("s"), "t.id = s.id + 100")
                )
                merge.whenNotMatchedInsertAll().execute()
            else:
                source = str(tmp_path / "source")
                wider.write.format("pydelta").save(source)
                stream = spark.readStream.format("pydelta").load(source).writeStream.format("pydelta")
                stream = stream.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
                stream.start(path).awaitTermination()
        assert columns()[-1] == name
    with _with(spark, schema__autoMerge__enabled="true"):
        one = spark.range(1).selectExpr("'a' AS other")
        one.write.format("pydelta").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert columns() == ["other"]


@pytest.mark.parametrize(
    "name", [AUTO_MERGE.full_name, OPTIMIZE_WRITE.full_name, SETTING_PREFIX + "autoCompact.enabled"]
)
def test_values_that_a_setting_does_not_take_are_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    said = {name[len(SETTING_PREFIX) :].replace(".", "__"): "perhaps"}
    with _with(spark, **said), pytest.raises(InvalidOptionError, match="perhaps"):
        spark.range(1).write.format("pydelta").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("way", [nullcontext, _portable], ids=["native", "portable"])
def test_small_files_are_joined_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path, way: Callable[..., Any]
) -> None:
    with way(spark):
        with _with(spark, optimizeWrite__enabled="true"):
            spark.range(9).repartition(3).write.format("pydelta").save(str(tmp_path / "t"))
        with _with(spark, autoCompact__enabled="true", autoCompact__minNumFiles=3):
            for _ in range(2):
                spark.range(9).coalesce(1).write.format("pydelta").mode("append").save(str(tmp_path / "t"))
    log = delta_ds.DeltaLog(tmp_path / "t")
    assert log.snapshot(version=0).files().num_rows == 1
    assert log.history(1)[0]["operation"] == "OPTIMIZE" and log.snapshot().files().num_rows == 1


def test_constraint_that_is_not_there_may_be_dropped_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(1).write.format("pydelta").save(str(tmp_path))
    table = DeltaTable.forPath(spark, str(tmp_path))
    with pytest.raises(DeltaError):
        table.dropConstraint("gone")
    with _with(spark, **{DROP_IF_EXISTS.name.replace(".", "__"): "true"}):
        table.dropConstraint("gone")


def test_settings_are_asked_for_at_once(spark: SparkSession) -> None:
    with _with(spark, properties__defaults__a="b -> c"):
        assert session_facts.session_settings(spark)[DEFAULTS_PREFIX + "a"] == "b -> c"
