"""A sample of cases shows all that the whole shows, and is the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_tests.engines.conformance.cases import Case
from spark_tests.engines.conformance.sampling import sample


def case(name: str, *features: str, **more: Any) -> Case:
    record = {"name": name, "features": list(features), "expect": "ok", "reads": {}, **more}
    return Case(Path(name), record)


def test_sample_has_every_feature_and_every_kind_of_record() -> None:
    cases = [
        case("plain", "generated"),
        case("vectors", "generated", "dv"),
        case("vectors again", "generated", "dv"),
        case("changes", "generated", cdf=[]),
        case("refused", "generated", expect="error"),
        case("unreadable", "generated", reads={"3": {"error": {"class": "DELTA_X"}}}),
    ]
    names = {"vectors", "changes", "refused", "unreadable"}
    assert {chosen.name for chosen in sample(cases)} == names
