"""Every recorded conflict, through `Transaction`: what `python -m spark_tests.engines.conformance conflicts` runs."""

from __future__ import annotations

import pytest

from spark_tests.engines.conformance.conflicts import Case, load_cases, run_case
from spark_tests.engines.conformance.corpora import corpus

CASES = load_cases(sorted(corpus("conflicts").glob("*.json")))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_recorded_conflict_ends_as_in_delta_spark(case: Case) -> None:
    verdict = run_case(case)
    assert verdict.failure is None, f"{verdict.what}: {verdict.failure}"
