"""Every operation leaves in the history what delta-spark leaves: its name, its parameters, the names of its metrics.

A sample of the recorded programs; all of them with `DELTA_DS_FULL=1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_ds import DeltaTable
from spark_tests.engines.conformance.operation_records import (
    WITHOUT_RECORD,
    differences,
    programs,
    recorded,
    run,
)
from spark_tests.full_form import part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

_NAMES = [name for name in programs() if name in recorded()]
_EVERY = 4
_SAMPLE = part(_NAMES, _EVERY)


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("operations")
    spark.sql(f"CREATE SCHEMA operation_records LOCATION '{folder / 'schema'}'")
    spark.sql("USE operation_records")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP SCHEMA operation_records CASCADE")


@pytest.mark.parametrize("name", _SAMPLE)
def test_an_operation_is_in_the_history_as_delta_spark_has_it(
    spark: SparkSession, root: Path, name: str
) -> None:
    number = _NAMES.index(name)
    assert differences(name, run(spark, DeltaTable, programs()[name], root, number)) == []


def test_every_program_has_a_record() -> None:
    assert set(programs()) - set(recorded()) == WITHOUT_RECORD
