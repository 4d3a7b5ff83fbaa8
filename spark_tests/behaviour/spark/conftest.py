"""A copy of the example table, which tests may damage; a session that is not registered; servers of Spark Connect."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.behaviour.spark.connect_server import Server, server_of_others, server_of_ours

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


@pytest.fixture(scope="session")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server of Spark Connect for the whole run, which knows nothing of this package."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    with server_of_others(tmp_path_factory.mktemp("plain_server")) as started:
        yield started


@pytest.fixture(scope="session")
def our_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One `pydelta serve --connect` for the whole run, for clients that leave nothing in its catalog."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    folder = tmp_path_factory.mktemp("our_server")
    with server_of_ours(folder) as url:
        yield Server(url, folder)
