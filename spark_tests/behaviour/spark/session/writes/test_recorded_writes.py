"""Every way of writing leaves in the table what delta-spark leaves, or is refused by the same condition.

A sample of the recorded cells; all of them with `DELTA_DS_FULL=1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.engines.conformance.ways_of_writing import Cell, cells, difference, recorded, run
from spark_tests.full_form import part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

CELLS = [cell for cell in cells() if cell.name in recorded(cell.part)]
# No divisor of the numbers of ways, so that the sample has all of them.
_EVERY = 37
_SAMPLE = part(CELLS, _EVERY)
# As the session of the records had it; the number of files depends on it.
_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("writes")
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE SCHEMA ways_of_writing LOCATION '{folder / 'schema'}'")
    spark.sql("USE ways_of_writing")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP SCHEMA ways_of_writing CASCADE")
    for key, value in before.items():
        spark.conf.set(key, str(value))


@pytest.mark.parametrize(
    ("number", "cell"),
    [pytest.param(n, cell, id=f"{cell.part}: {cell.name}") for n, cell in enumerate(_SAMPLE)],
)
def test_a_write_does_what_it_does_in_delta_spark(
    spark: SparkSession, root: Path, number: int, cell: Cell
) -> None:
    assert difference(cell, run(spark, cell, root, number)) is None
