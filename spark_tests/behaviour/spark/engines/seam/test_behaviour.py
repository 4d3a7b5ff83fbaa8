"""What users do comes out the same in every kind of session, and exactly so where a way says that one differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import delta_ds
from spark_tests.behaviour.spark.connect_server import Client, Server, registered_client
from spark_tests.behaviour.spark.engines.seam.ways import CONNECT, NATIVE, PATHS, PORTABLE, WAYS, outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EACH = pytest.mark.parametrize("number", range(len(WAYS)), ids=[way.name for way in WAYS])


@pytest.fixture
def session(spark: SparkSession, kind: str) -> Iterator[SparkSession]:
    for name in PATHS:
        spark.conf.set(name, str(kind == NATIVE).lower())
    yield spark
    for name in PATHS:
        spark.conf.unset(name)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [NATIVE, PORTABLE])
@_EACH
def test_of_classic_sessions(session: SparkSession, tmp_path: Path, kind: str, number: int) -> None:
    assert outcome(session, number, str(tmp_path)) == WAYS[number].in_kind(kind)


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with registered_client(plain_server, tmp_path_factory.mktemp("behaviour")) as started:
        yield started


@pytest.mark.connect
@pytest.mark.long
@_EACH
def test_of_spark_connect(client: Client, tmp_path: Path, number: int) -> None:
    assert client(outcome, number, str(tmp_path)) == WAYS[number].in_kind(CONNECT)


def _ship_twice(spark: SparkSession) -> list[str]:
    return [str(delta_ds.ship(spark)) for _ in range(2)]


@pytest.mark.connect
def test_a_session_of_spark_connect_is_given_the_package(client: Client) -> None:
    assert client(_ship_twice) == [f"on: workers of this session have delta-ds {delta_ds.__version__}"] * 2
