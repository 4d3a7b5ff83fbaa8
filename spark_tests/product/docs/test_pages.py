"""Every page does what it says, from top to bottom."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_tests.product.docs.blocks import (
    ROOT,
    RUN_ELSEWHERE,
    Block,
    UnknownBlock,
    blocks,
    name_of,
    needs_session,
    pages,
)
from spark_tests.product.docs.prepared import PREPARED
from spark_tests.product.docs.runner import Page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
# Seconds that a block may wait for its streams, on a machine that is busy.
LONGEST = 300


def _known(name: str) -> list[Block]:
    try:
        return blocks(ROOT / name)
    except (UnknownBlock, SyntaxError):  # a test of its own says so
        return []


NAMES = [name_of(page) for page in pages()]
HERE = [name for name in NAMES if name not in RUN_ELSEWHERE and _known(name)]
WITH_SESSION = [name for name in HERE if needs_session(_known(name))]


def run(name: str, folder: Path, names: dict[str, Any]) -> None:
    if name in PREPARED:
        names = {**names, **PREPARED[name](folder, names.get("spark"))}
    page = Page(folder, names)
    for block in blocks(ROOT / name):
        stopped: list[str] = []
        watch = threading.Timer(LONGEST, _stop_queries, [names.get("spark"), stopped])
        watch.start()
        try:
            page.run(block)
        finally:
            watch.cancel()
            assert not stopped, f"{block.where}: after {LONGEST} s these queries had not ended: {stopped}"


def _stop_queries(spark: SparkSession | None, stopped: list[str]) -> None:
    """A block that waits for a query that does not end goes on, and fails."""
    for query in spark.streams.active if spark is not None else ():
        stopped.append(str(query.id))
        query.stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's working directory; what a page sets of the environment and the logging goes with it."""
    monkeypatch.chdir(tmp_path)
    environment = dict(os.environ)
    loggers = [logging.getLogger(name) for name in (None, "delta_ds")]
    before = [(one, one.level, one.handlers[:], one.propagate) for one in loggers]
    yield tmp_path
    for one, level, handlers, propagate in before:
        one.setLevel(level)
        one.handlers[:], one.propagate = handlers, propagate
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, left as it was found: settings, schemas, tables, views, queries."""
    database = spark.catalog.currentDatabase()
    settings = dict(spark.conf.getAll)
    schemas = {row.namespace for row in spark.sql("SHOW SCHEMAS").collect()}
    tables = {row.tableName for row in spark.sql("SHOW TABLES IN default").collect()}
    yield spark
    for query in spark.streams.active:
        query.stop()
    spark.sql(f"USE {database}")
    for name, value in dict(spark.conf.getAll).items():
        if name not in settings:
            spark.conf.unset(name)
        elif value != settings[name]:
            spark.conf.set(name, settings[name])
    for view in spark.sql("SHOW VIEWS IN default").collect():
        if view.isTemporary:
            spark.catalog.dropTempView(view.viewName)
        else:
            spark.sql(f"DROP VIEW default.{view.viewName}")
    for row in spark.sql("SHOW SCHEMAS").collect():
        if row.namespace not in schemas:
            spark.sql(f"DROP SCHEMA {row.namespace} CASCADE")
    for row in spark.sql("SHOW TABLES IN default").collect():
        if row.tableName not in tables:
            spark.sql(f"DROP TABLE default.{row.tableName}")


@pytest.mark.parametrize("name", NAMES)
def test_somebody_runs_every_block_of_the_page(name: str) -> None:
    needs_session(blocks(ROOT / name))


@pytest.mark.parametrize("name", [name for name in HERE if name not in WITH_SESSION])
def test_the_page_does_what_it_says(name: str, folder: Path) -> None:
    run(name, folder, {})


@pytest.mark.parametrize("name", WITH_SESSION)
def test_the_page_does_what_it_says_in_a_session(name: str, folder: Path, session: SparkSession) -> None:
    run(name, folder, {"spark": session})


def test_pages_that_are_prepared_or_run_elsewhere_are_there() -> None:
    assert {*PREPARED, *RUN_ELSEWHERE} <= set(NAMES)
    for name, (test, _) in RUN_ELSEWHERE.items():
        assert Path(name).name in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not run {name}"
