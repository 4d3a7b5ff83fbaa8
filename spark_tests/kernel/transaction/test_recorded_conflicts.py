"""Every recorded conflict, through `Transaction`: what `python -m spark_tests.conformance conflicts` runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_tests.conformance.conflicts import Case, NoConflictsError, load_cases, run_case

CORPUS = Path(
    os.environ.get("DELTA_DS_CONFLICTS", Path(__file__).resolve().parents[3].parent / "shared" / "conflicts")
)


def _cases() -> list[Case]:
    try:
        return load_cases(sorted(CORPUS.glob("*.json")))
    except NoConflictsError:
        return []


CASES = _cases()


@pytest.mark.skipif(
    not CASES, reason=f"no recorded conflicts at {CORPUS}; set DELTA_DS_CONFLICTS to their folder"
)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_recorded_conflict_ends_as_in_delta_spark(case: Case) -> None:
    verdict = run_case(case)
    assert verdict.failure is None, f"{verdict.what}: {verdict.failure}"
