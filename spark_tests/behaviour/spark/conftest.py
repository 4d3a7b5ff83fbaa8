"""A copy of the example table, which tests may damage; the session without what `register` does to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = Path(__file__).resolve().parents[3] / "examples" / "data" / "sales"


@pytest.fixture
def sales(tmp_path: Path) -> str:
    """The path of a copy of `examples/data/sales`: 8 versions, partitioned by country, with a change feed."""
    shutil.copytree(SALES, tmp_path / "sales")
    return str(tmp_path / "sales")


@pytest.fixture
def plain(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark as it is, with nothing but the data source."""
    import delta_ds

    delta_ds.unregister(spark)
    yield spark
    delta_ds.register(spark)


@pytest.fixture(autouse=True)
def no_other_session_stays_registered(request: pytest.FixtureRequest) -> Iterator[None]:
    """A session that a test leaves registered keeps Spark's methods replaced in the tests after it."""
    yield
    if "spark" not in request.fixturenames:
        return
    from delta_ds.spark.session import integration

    kept = request.getfixturevalue("spark")
    left = [one for one in integration.installed_sessions(connect=False) if one is not kept]
    for session in left:
        integration.uninstall(session)
    assert not left, "sessions stay registered: call delta_ds.unregister"
