"""Every visible case of the acceptance corpus, through the kernel and through Spark.

The same checks as `python -m spark_tests.yardsticks acceptance DIR`, one test a case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.yardsticks.acceptance import run_case
from spark_tests.yardsticks.cases import Case, NoCasesError, find_cases
from spark_tests.yardsticks.engines import Engine, KernelEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORPUS = Path(
    os.environ.get(
        "DELTA_DS_ACCEPTANCE", Path(__file__).resolve().parents[2].parent / "shared" / "acceptance"
    )
)


def _cases() -> list[Case]:
    try:
        return find_cases(CORPUS)
    except NoCasesError:
        return []


CASES = _cases()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not CASES, reason=f"no acceptance corpus at {CORPUS}; set DELTA_DS_ACCEPTANCE to its folder"
    ),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def spark_engine(spark: SparkSession) -> Iterator[Engine]:
    from spark_tests.yardsticks.spark_engine import SparkEngine

    engine = SparkEngine(spark)
    yield engine
    engine.close()


@each_case
def test_kernel_reads_the_case_as_the_reference(case: Case) -> None:
    _pass(case, KernelEngine())


@pytest.mark.spark
@pytest.mark.slow
@each_case
def test_spark_reads_the_case_as_the_reference(case: Case, spark_engine: Engine) -> None:
    _pass(case, spark_engine)


def _pass(case: Case, engine: Engine) -> None:
    verdict = run_case(case, engine)
    if verdict.disputed:
        pytest.skip(f"disputed, not counted: {verdict.disputed}")
    assert not verdict.failures, "\n".join(verdict.failures)
