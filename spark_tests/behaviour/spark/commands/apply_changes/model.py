"""What dimensions hold after events, in plain Python: a state for each event, in the order of their sequence."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple


class Event(NamedTuple):
    """What happened to a row; `city` and `note` are None of a delete."""

    id: int
    ts: int
    op: str
    city: str | None
    note: str | None


def in_order(events: Iterable[Event]) -> dict[int, list[Event]]:
    """The events of each key, of equal ones one, of a delete and another at one place the other."""
    found: dict[int, dict[int, Event]] = {}
    for event in events:
        known = found.setdefault(event.id, {}).get(event.ts)
        if known is None or known.op == "D":
            found[event.id][event.ts] = event
    return {key: [by[ts] for ts in sorted(by)] for key, by in found.items()}


def type1(events: Iterable[Event]) -> set[tuple[Any, ...]]:
    """Rows: id, city, note, sequence."""
    last = [of[-1] for of in in_order(events).values()]
    return {(e.id, e.city, e.note, e.ts) for e in last if e.op != "D"}


def type2(events: Iterable[Event], tracked: tuple[str, ...] = ("city", "note")) -> set[tuple[Any, ...]]:
    """Rows: id, city, note, valid_from, valid_to."""
    rows = set()
    for of in in_order(events).values():
        open_row: list[Any] | None = None
        for event in of:
            same = open_row is not None and all(
                getattr(event, name) == open_row[1 + ("city", "note").index(name)] for name in tracked
            )
            if event.op != "D" and same:
                assert open_row is not None
                open_row[1:3] = [event.city, event.note]
                continue
            if open_row is not None:
                rows.add((*open_row, event.ts))
            open_row = None if event.op == "D" else [event.id, event.city, event.note, event.ts]
        if open_row is not None:
            rows.add((*open_row, None))
    return rows


def markers(events: Iterable[Event]) -> set[tuple[Any, ...]]:
    """What the table remembers for late events, of type 2: id, city, note, place, what it is."""
    found = set()
    for of in in_order(events).values():
        state: tuple[Any, Any] | None = None
        for event in of:
            if event.op == "D":
                found.add((event.id, None, None, event.ts, "delete"))
                state = None
            elif state == (event.city, event.note):
                found.add((event.id, *state, event.ts, "unchanged"))
            else:
                state = (event.city, event.note)
    return found


def random_events(seed: int, keys: int) -> list[Event]:
    """Some events of each key, few values, so that many change nothing; some come twice."""
    dice, events = random.Random(seed), []
    for key in range(keys):
        for ts in dice.sample(range(1, 12), dice.randint(1, 7)):
            if dice.random() < 0.25:
                events.append(Event(key, ts, "D", None, None))
                if dice.random() < 0.2:
                    events.append(Event(key, ts, "U", "tie", None))
            else:
                event = Event(key, ts, "U", dice.choice(["a", "b", None]), dice.choice(["x", None]))
                events += [event] * dice.choice([1, 1, 1, 2])
    dice.shuffle(events)
    return events
