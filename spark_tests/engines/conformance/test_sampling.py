"""A sample of cases shows all that the whole shows, and is the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_tests.engines.conformance.cases import Case
from spark_tests.engines.conformance.sampling import covering, sample

tag_sets = st.lists(st.frozensets(st.integers(0, 12), max_size=5), max_size=15)


def every(items: list[frozenset[int]]) -> frozenset[int]:
    return frozenset[int]().union(*items)


@given(tag_sets)
def test_chosen_items_have_every_tag_and_keep_their_order(items: list[frozenset[int]]) -> None:
    numbered = list(enumerate(items))
    chosen = covering(numbered, lambda item: set(item[1]))
    assert every([tags for _, tags in chosen]) == every(items)
    assert chosen == sorted(chosen)
    assert len(chosen) <= len(every(items))


@given(tag_sets)
def test_item_that_was_not_chosen_may_go_away(items: list[frozenset[int]]) -> None:
    numbered = list(enumerate(items))
    chosen = covering(numbered, lambda item: set(item[1]))
    assert covering(chosen, lambda item: set(item[1])) == chosen


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
