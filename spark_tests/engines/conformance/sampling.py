"""A part of many cases that still shows everything the whole shows, for the runs that would take too long."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from spark_tests.engines.conformance.cases import Case

T = TypeVar("T")


def covering(items: Sequence[T], tags: Callable[[T], set[Hashable]], share: float = 1.0) -> list[T]:
    """Some of the items, in their order, that have all the tags which any of them has, or a share of these.

    Greedy: always the item with the most tags that are still lacking, the first of equals. So the same
    items give the same choice, and an item that was not chosen changes nothing by going away.
    """
    lacking = set[Hashable]().union(*map(tags, items))
    enough = round(len(lacking) * (1 - share))
    chosen: set[int] = set()
    while len(lacking) > enough:
        best = max(range(len(items)), key=lambda i: (len(tags(items[i]) & lacking), -i))
        chosen.add(best)
        lacking -= tags(items[best])
    return [items[i] for i in sorted(chosen)]


def sample(cases: Sequence[Case], share: float = 1.0) -> list[Case]:
    """Cases that have every feature tag, and everything that a record can hold, at least once; or a share of these."""
    return covering(cases, shows, share)


def shows(case: Case) -> set[Hashable]:
    """The feature tags of a case, the keys of its record, and how it fails."""
    record = case.record
    kinds = {("key", key) for key in record}
    failures = {("error", read["error"]["class"]) for read in record["reads"].values() if "error" in read}
    return {*record["features"], *kinds, *failures, ("expect", record["expect"])}
