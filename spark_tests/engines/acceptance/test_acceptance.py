"""Every visible case of the acceptance corpus, through the kernel and through both paths of Spark.

The same checks as `python -m spark_tests.engines.conformance acceptance DIR`, one test a case. The kernel gets all of
them. In Spark they take minutes: the native scan gets the cases of `sampling.sample` that show everything there is, the
portable path those that show three quarters of it, unless DELTA_DS_FULL=1 asks for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from spark_tests.engines.conformance.acceptance import Verdict, run_case
from spark_tests.engines.conformance.cases import Case, find_cases
from spark_tests.engines.conformance.corpora import corpus
from spark_tests.engines.conformance.engines import Engine, KernelEngine
from spark_tests.engines.conformance.sampling import sample
from spark_tests.full_form import FULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = find_cases(corpus("acceptance"))
pytestmark = [pytest.mark.acceptance, pytest.mark.long]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
NATIVE = CASES if FULL else sample(CASES)
# The portable path reads by the kernel, which has run all cases by itself; what Spark adds shows in few.
PORTABLE = CASES if FULL else sample(CASES, share=0.75)

# What the native scan leaves to the portable path, by the words of its reason: change feeds and the metadata
# columns of row tracking. Any other reason is a table that ought to be read natively and is not.
LEFT_TO_PORTABLE = ("change feed", "metadataColumns")


@pytest.fixture
def portable_engine(spark: SparkSession) -> Iterator[Engine]:
    from spark_tests.engines.conformance.spark_engine import SparkEngine

    with closing(SparkEngine(spark)) as engine:
        yield engine


@pytest.fixture
def native_engine(spark: SparkSession) -> Iterator[Engine]:
    from spark_tests.engines.conformance.native_engine import NativeEngine

    with closing(NativeEngine(spark)) as engine:
        yield engine


@each_case
def test_kernel_reads_the_case_as_the_reference(case: Case) -> None:
    _pass(case, KernelEngine())


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("case", PORTABLE, ids=lambda case: case.name)
def test_portable_path_reads_the_case_as_the_reference(case: Case, portable_engine: Engine) -> None:
    _pass(case, portable_engine)


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("case", NATIVE, ids=lambda case: case.name)
def test_native_scan_reads_the_case_as_the_reference(case: Case, native_engine: Engine) -> None:
    verdict = _pass(case, native_engine)
    unexpected = [reason for reason in verdict.notes if not any(word in reason for word in LEFT_TO_PORTABLE)]
    assert not unexpected, "\n".join(unexpected)
    assert not verdict.uncounted


def _pass(case: Case, engine: Engine) -> Verdict:
    verdict = run_case(case, engine)
    if verdict.disputed:
        pytest.skip(f"disputed, not counted: {verdict.disputed}")
    assert not verdict.failures, "\n".join(verdict.failures)
    return verdict
