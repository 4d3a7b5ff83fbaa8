"""A part of many cases that still shows everything the whole shows, for the runs that would take too long."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from spark_tests.engines.conformance.cases import Case
from spark_tests.full_form import covering


def sample(cases: Sequence[Case], share: float = 1.0) -> list[Case]:
    """Cases that have every feature tag, and everything that a record can hold, at least once; or a share of these."""
    return covering(cases, shows, share)


def shows(case: Case) -> set[Hashable]:
    """The feature tags of a case, the keys of its record, and how it fails."""
    record = case.record
    kinds = {("key", key) for key in record}
    failures = {("error", read["error"]["class"]) for read in record["reads"].values() if "error" in read}
    return {*record["features"], *kinds, *failures, ("expect", record["expect"])}
