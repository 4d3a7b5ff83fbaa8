"""A session with the integration installed, reading and writing by the data source or by Spark's own Parquet code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF, NATIVE_WRITE_CONF
from delta_ds.spark.session.integration import install, is_installed, uninstall


@contextmanager
def installed(spark: SparkSession, *, native: bool) -> Iterator[SparkSession]:
    """Install, and leave the session as it was."""
    before = is_installed(spark)
    install(spark)
    for conf in (NATIVE_SCAN_CONF, NATIVE_WRITE_CONF):
        spark.conf.set(conf, "true" if native else "false")
    try:
        yield spark
    finally:
        for conf in (NATIVE_SCAN_CONF, NATIVE_WRITE_CONF):
            spark.conf.unset(conf)
        if not before:
            uninstall(spark)


@pytest.fixture
def portable(spark: SparkSession) -> Iterator[SparkSession]:
    with installed(spark, native=False) as session:
        yield session


@pytest.fixture(params=["portable", "native"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """On both paths, which have to do the same."""
    if request.param == "native":
        pytest.importorskip("delta_ds.spark.engines.classic.writer")
    with installed(spark, native=request.param == "native") as session:
        yield session
