"""How long the tests may take: DELTA_DS_FULL=1 for all that there is, DELTA_DS_QUICK=1 for fewer random examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

FULL = os.environ.get("DELTA_DS_FULL") == "1"
QUICK = os.environ.get("DELTA_DS_QUICK") == "1"


def examples(number: int) -> int:
    """How many random examples a law is tried on: `number`, or a tenth of it in a quick run."""
    return max(number // 10, 5) if QUICK else number


def part(cases: Sequence[T], every: int) -> list[T]:
    """Every so many of the cases that one test goes through, or all of them in the full form."""
    return list(cases[:: 1 if FULL else every])


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


def part_of_product(cases: Sequence[tuple[str, Mapping[str, Hashable]]], share: float) -> set[int]:
    """Places of a share of the cases of a parametrized test; every time the same.

    A case is its name, and the values of its parameters. Of a product all values of each side are among those that
    are chosen, if so many are.
    """
    names, number = cases[0][1], max(round(len(cases) * share), 1)
    sides = [name for name in names if len({values[name] for _, values in cases}) <= number]
    places = covering(range(len(cases)), lambda place: {(name, cases[place][1][name]) for name in sides})
    rest = sorted(set(range(len(cases))) - set(places), key=lambda place: crc32(cases[place][0].encode()))
    return {*places, *rest[: max(number - len(places), 0)]}
