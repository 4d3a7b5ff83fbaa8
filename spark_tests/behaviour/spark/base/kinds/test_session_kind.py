"""Columns and types belong to the session at hand, whatever else its process is."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession, utils
from pyspark.sql import functions as F

from delta_ds.spark.base.kinds.session_kind import answers_jvm, kind_of
from delta_ds.spark.engines.arguments import public

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")

from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: E402

CLASSIC, CONNECT = object.__new__(SparkSession), object.__new__(ConnectSession)
_MODE = "SPARK_CONNECT_MODE_ENABLED"


@public
def asked(spark: SparkSession) -> bool:
    """What pyspark is told inside of a function of ours."""
    return utils.is_remote()


@answers_jvm
class Answers:
    def apply(self, question: str, *, again: bool = False) -> Any:
        return utils.is_remote(), question, again


@pytest.mark.parametrize("client", [False, True])
def test_functions_for_a_session_are_of_its_kind(client: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_MODE, "1") if client else monkeypatch.delenv(_MODE, raising=False)
    assert utils.is_remote() == client
    assert (asked(CLASSIC), asked(CONNECT)) == (False, True)
    assert Answers().apply("x", again=True) == (False, "x", True)
    assert utils.is_remote() == client


@pytest.mark.parametrize("client", [False, True])
def test_blocks_inside_one_another_and_errors_leave_nothing_behind(
    client: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_MODE, "1") if client else monkeypatch.delenv(_MODE, raising=False)
    with kind_of(CONNECT):
        assert type(F.col("a")).__module__.startswith("pyspark.sql.connect.")
        with pytest.raises(ValueError), kind_of(CLASSIC):
            assert not utils.is_remote()
            with kind_of(CONNECT):
                raise ValueError
        assert utils.is_remote()
    assert utils.is_remote() == client


def test_other_threads_are_not_concerned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_MODE, "1")
    found = []
    with kind_of(CLASSIC):
        other = threading.Thread(target=lambda: found.append((utils.is_remote(), Answers().apply("")[0])))
        other.start()
        other.join()
        assert not utils.is_remote()
    assert found == [(True, False)]
