"""The session's time zone is the zone of local times, whichever way they come in, and not that of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import delta_ds
from spark_tests.behaviour.spark.connect_server import Client, Server, connect_client
from spark_tests.behaviour.spark.zone_ways import (
    ZONES,
    days_by_way,
    expected,
    ids_by_way,
    instant,
    instants_by_way,
    make,
)
from spark_tests.full_form import FULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

_PATHS = ("spark.pydelta.nativeScan", "spark.pydelta.nativeWrite", "spark.pydelta.arrowWrite")


# Where a session has set no zone, that of its JVM counts, which Python processes do not know.
_OF_THE_JVM = "Australia/Adelaide"
_ZONES = ZONES if FULL else ZONES[:1]


@pytest.fixture(params=[*_ZONES, _OF_THE_JVM])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param != _OF_THE_JVM:
        yield request.param
        return
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    zones = jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(_OF_THE_JVM))
    yield request.param
    zones.setDefault(before)


@pytest.fixture(params=["native", "portable"])
def session(spark: SparkSession, zone: str, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    session = spark.newSession()
    if zone == _OF_THE_JVM:
        session.conf.unset("spark.sql.session.timeZone")
    for name in _PATHS:
        session.conf.set(name, str(request.param == "native").lower())
    delta_ds.register(session)
    yield session
    delta_ds.unregister(session)


@pytest.mark.sampled
@pytest.mark.spark
def test_local_times_that_name_versions(session: SparkSession, tmp_path: Path, zone: str) -> None:
    found = ids_by_way(session, make(session, tmp_path), str(tmp_path), zone, sql=True)
    assert found == {way: expected(way) for way in found}


@pytest.mark.sampled
@pytest.mark.spark
def test_local_times_in_rows(session: SparkSession, tmp_path: Path, zone: str) -> None:
    assert days_by_way(session, str(tmp_path), zone) == {"2024-01-15": 3}


@pytest.mark.sampled
@pytest.mark.spark
def test_local_times_in_partition_values(session: SparkSession, tmp_path: Path, zone: str) -> None:
    found = instants_by_way(session, str(tmp_path), zone, folders=True)
    assert found == {way: [instant(zone)] for way in found}


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(plain_server, tmp_path_factory.mktemp("zones")) as started:
        yield started


def _registered(spark: SparkSession) -> None:
    delta_ds.register(spark)


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.parametrize("zone", _ZONES)
def test_local_times_on_spark_connect(client: Client, tmp_path: Path, zone: str) -> None:
    client(_registered)
    path = client(make, tmp_path)
    found = client(ids_by_way, path, str(tmp_path), zone, False)
    assert found == {way: expected(way) for way in found}
    assert client(days_by_way, str(tmp_path), zone) == {"2024-01-15": 3}
    found = client(instants_by_way, str(tmp_path), zone, False)
    assert found == {way: [instant(zone)] for way in found}
