"""Files rewritten by tasks: the same rows, changes and history whoever evaluates the rules, however rows are found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaTable
from delta_ds.exceptions import InvariantViolationError
from delta_ds.spark.commands import by_arrow
from delta_ds.spark.engines.seam import classic
from spark_tests.behaviour.spark.commands.row_changes import (
    COMMANDS,
    LAYOUTS,
    found_by_arrow,
    make_ruled_table,
    make_table,
    merge_of,
    rules_of_another_engine,
    state_of,
)

pytestmark = pytest.mark.long

# Makes a table of a layout with rules at a path.
Ruled: TypeAlias = Callable[[Path, str, tuple[str, str]], str]

# A generated column and a constraint, and the same in functions that only Spark knows.
KNOWN = ("v DIV 128", "length(coalesce(p, '')) < 50")
FOREIGN = (
    "CAST(conv(CAST(v DIV 128 AS STRING), 10, -10) AS BIGINT)",
    "length(coalesce(p, '')) < 50 AND soundex(coalesce(p, '')) IS NOT NULL",
)


@pytest.fixture(scope="module")
def ruled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ruled:
    """Tables are copies of one of their layout that Spark wrote once."""
    written: dict[str, str] = {}

    def make(path: Path, layout: str, rules: tuple[str, str]) -> str:
        if layout not in written:
            folder = tmp_path_factory.mktemp("ruled")
            written[layout] = make_ruled_table(spark, folder, LAYOUTS[layout], KNOWN)
        shutil.copytree(written[layout], path)
        rules_of_another_engine(str(path), KNOWN, rules)
        return str(path)

    return make


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "update all"])  # `g` is not given
def test_what_only_spark_evaluates_leaves_what_tasks_evaluate(
    spark: SparkSession,
    ruled: Ruled,
    tmp_path: Path,
    command: str,
    layout: str,
) -> None:
    foreign, known = (
        ruled(tmp_path / name, layout, rules) for name, rules in (("foreign", FOREIGN), ("known", KNOWN))
    )
    COMMANDS[command](DeltaTable.forPath(spark, foreign))
    COMMANDS[command](DeltaTable.forPath(spark, known))
    assert state_of(foreign) == state_of(known)


@pytest.mark.parametrize("layout", ["files are replaced", "marked, feed and ids"])
def test_a_new_row_that_breaks_what_only_spark_evaluates_is_told_as_by_tasks(
    spark: SparkSession, ruled: Ruled, tmp_path: Path, layout: str
) -> None:
    said = []
    for name, rules in (("foreign", FOREIGN), ("known", KNOWN)):
        path = ruled(tmp_path / name, layout, rules)
        table = DeltaTable.forPath(spark, path)
        before = {p for p in Path(path).rglob("*") if p.is_file()}
        with pytest.raises(InvariantViolationError, match="short") as updated:
            table.update("id = 7", {"p": "repeat('x', 50)"})
        merge = merge_of(table, "SELECT id FROM range(7, 9)").whenMatchedDelete("t.id = 8")
        with pytest.raises(InvariantViolationError, match="short") as merged:
            merge.whenMatchedUpdate(set={"p": "repeat('y', 60)"}).execute()
        with pytest.raises(InvariantViolationError, match="Generated Column") as verified:
            table.update("id = 7", {"g": "77"})
        assert {p for p in Path(path).rglob("*") if p.is_file()} == before
        texts = [(error.value.condition, str(error.value)) for error in (updated, merged, verified)]
        said.append(
            [(c, text.replace(path, "").replace(*rule)) for c, text in texts for rule in [(rules[0], "")]]
        )
    assert [condition for condition, _ in said[0]] == [condition for condition, _ in said[1]]
    for one, other in zip(*said, strict=True):
        assert one[1].splitlines()[1:] == other[1].splitlines()[1:]


@pytest.mark.sampled
@pytest.mark.parametrize("layout", ["files are replaced", "rows are marked"])
@pytest.mark.parametrize("command", ["delete", "update a column", "upsert", "by source"])
def test_many_files_are_narrowed_first_and_large_sources_are_joined_by_shuffles(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, layout: str
) -> None:
    usual, unusual = (make_table(tmp_path / name, LAYOUTS[layout]) for name in ("usual", "unusual"))
    COMMANDS[command](DeltaTable.forPath(spark, usual))
    found_by_arrow(monkeypatch, wanted=False)
    monkeypatch.setattr(by_arrow, "MOST_FILES", 1)
    monkeypatch.setattr(classic, "BROADCAST_BYTES", 0)
    COMMANDS[command](DeltaTable.forPath(spark, unusual))
    assert state_of(usual) == state_of(unusual)


def test_failed_check_of_a_new_row_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})
    table = DeltaTable.forPath(spark, path)
    table.addConstraint("small", "v < 1000")
    before = {p for p in Path(path).rglob("*") if p.is_file()}
    with pytest.raises(InvariantViolationError, match="small"):
        table.update("id = 7", {"v": "5000"})
    with pytest.raises(InvariantViolationError, match="small"):
        merge_of(table, "SELECT 7L AS id").whenMatchedUpdate(set={"v": "5000"}).execute()
    assert {p for p in Path(path).rglob("*") if p.is_file()} == before


def test_a_merge_that_inserts_no_row_leaves_no_folder_and_says_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "t")
    spark.range(20).selectExpr("id", "id AS v").write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)
    with caplog.at_level("WARNING", logger="delta_ds"):
        merge = table.alias("t").merge(
            spark.range(5, 8).selectExpr("id", "-id AS v").alias("s"), "t.id = s.id"
        )
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [record.getMessage() for record in caplog.records] == []
    assert [
        p.name for p in Path(path).iterdir() if p.is_dir() and p.name != "_delta_log" and not any(p.iterdir())
    ] == []
    assert table.toDF().where("v < 0").count() == 3
