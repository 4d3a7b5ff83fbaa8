"""A schema of a test module's own, which is the current one while its tests run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def _schema(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    name = f"{request.module.__name__.rpartition('.')[2]}_db"
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def schema(spark: SparkSession, _schema: str) -> Iterator[str]:
    """The name of the module's schema, which is the current one in the test."""
    before = spark.catalog.currentDatabase()
    spark.sql(f"USE {_schema}")
    yield _schema
    spark.sql(f"USE {before}")


@pytest.fixture
def folder(spark: SparkSession, schema: str) -> Path:
    """Where the managed tables of the schema lie."""
    location = spark.sql(f"DESCRIBE SCHEMA {schema}").where("info_name = 'Location'").first()
    assert location is not None
    return Path(location["info_value"].removeprefix("file:"))
