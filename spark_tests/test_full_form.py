"""A part of the cases shows what all of them show, and is the same each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_tests.full_form import covering, part_of_product

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


sides = st.dictionaries(st.text(min_size=1), st.integers(1, 6), min_size=1, max_size=3)


@given(sides, st.floats(0.2, 0.9))
def test_a_part_of_a_product_has_every_value_of_every_side(sizes: dict[str, int], share: float) -> None:
    cases: list[dict[str, int]] = [{}]
    for name, size in sizes.items():
        cases = [{**case, name: value} for case in cases for value in range(size)]
    number = max(round(len(cases) * share), 1)
    chosen = part_of_product([(str(case), case) for case in cases], share)
    for name, size in sizes.items():
        if size <= number:
            assert {cases[place][name] for place in chosen} == set(range(size))
    assert number <= len(chosen) <= max(number, sum(sizes.values()))


def test_cases_without_a_product_are_a_part_of_that_share() -> None:
    chosen = part_of_product([(f"case {number}", {"number": number}) for number in range(100)], 0.25)
    assert len(chosen) == 25
