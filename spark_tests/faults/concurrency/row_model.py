"""Commands whose effect is a pure function of the rows there are, and the same function in plain Python.

The table has `id` (no other row has it), `part` (which follows from the id) and `value`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

# id, part, value
Row = tuple[int, int, int]
Rows = dict[int, Row]

APPEND, DELETE, UPDATE, MERGE, OPTIMIZE, PURGE = "append", "delete", "update", "merge", "optimize", "purge"
NAMES = ("id", "part", "value")
PARTS = 3

# Rows that are merged, by few ids: they are there, or were. Appended ones get ids from there on, and each its own.
_SHARED_IDS = 45
_FIRST_FRESH = 1_000_000
_LIMIT = 1_000_003


def row_of(number: int, value: int) -> Row:
    return number, number % PARTS, value


FIRST_ROWS = tuple(row_of(number, number) for number in range(0, _SHARED_IDS, 2))


@dataclass(frozen=True)
class Command:
    """What a process does to the table.

    Attributes
    ----------
    kind
        `append` rows; `delete` rows, or `update` them: their value grows by one; `merge` rows: where the id is there,
        a negative value deletes, and any other one goes into the value; else it inserts. `optimize` joins files,
        `purge` rewrites those with deleted rows.
    rows
        Appended or merged.
    parts
        Only there; empty: anywhere. Rows that are merged lie there.
    modulus, rest
        Only rows with `id % modulus = rest`; of a merge, the rows without a match that it deletes (0: none).
    """

    kind: str
    rows: tuple[Row, ...] = ()
    parts: tuple[int, ...] = ()
    modulus: int = 0
    rest: int = 0

    @property
    def is_blind(self) -> bool:
        return self.kind == APPEND

    @property
    def condition(self) -> str:
        """The rows it looks at, as Spark SQL on the table's columns."""
        texts = []
        if self.parts:
            texts.append(f"part IN ({', '.join(map(str, self.parts))})")
        if self.modulus and self.kind != MERGE:
            texts.append(f"id % {self.modulus} = {self.rest}")
        return " AND ".join(texts) or "true"

    def _rest_matches(self, row: Row) -> bool:
        return self.modulus > 0 and row[0] % self.modulus == self.rest

    def touches(self, row: Row) -> bool:
        """Whether a row would be another one, or gone."""
        return self.after(row) != row

    def after(self, row: Row) -> Row | None:
        """What becomes of a row of the table; None: it is deleted."""
        number, part, value = row
        if self.kind in (APPEND, OPTIMIZE, PURGE) or (self.parts and part not in self.parts):
            return row
        if self.kind == MERGE:
            merged = next((new[2] for new in self.rows if new[0] == number), None)
            if merged is None:
                return None if self._rest_matches(row) else row
            return None if merged < 0 else (number, part, (value * 3 + merged) % _LIMIT)
        if not self._rest_matches(row):
            return row
        return None if self.kind == DELETE else (number, part, value + 1)

    def inserted(self, there: Collection[int]) -> Iterator[Row]:
        """The rows it adds to a table with some ids."""
        for row in self.rows:
            if self.kind == APPEND or (row[0] not in there and row[2] >= 0):
                yield row

    def apply(self, rows: Mapping[int, Row]) -> Rows:
        """The table after the command."""
        kept = (self.after(row) for row in rows.values())
        found = {row[0]: row for row in kept if row is not None}
        return found | {row[0]: row for row in self.inserted(rows.keys())}


@dataclass
class Choices:
    """Commands by chance; the same for the same seed.

    Attributes
    ----------
    writer
        The number of the process, which no other one has.
    """

    writer: int
    seed: int
    _random: random.Random = field(init=False)
    _fresh: int = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.seed} {self.writer}")
        self._fresh = _FIRST_FRESH * (self.writer + 1)

    def command(self, kind: str) -> Command:
        """One of a kind."""
        chance = self._random
        part = chance.randrange(PARTS)
        if kind == APPEND:
            # In one partition, thus one file: that is removed as a whole, or not.
            first = self._fresh + (part - self._fresh) % PARTS
            numbers = range(first, first + PARTS * chance.randint(1, 4), PARTS)
            self._fresh = numbers[-1] + 1
            return Command(APPEND, tuple(row_of(number, chance.randrange(100)) for number in numbers))
        parts = () if chance.random() < 0.3 else tuple(sorted({part, chance.randrange(PARTS)}))
        if kind == MERGE:
            sweeps = chance.random() < 0.25
            modulus = chance.choice((4, 5)) if sweeps else 0
            shared = [n for n in range(_SHARED_IDS) if not parts or n % PARTS in parts]
            numbers_ = chance.sample(shared, chance.randint(1, 6))
            rows = tuple(row_of(n, chance.choice((-1, chance.randrange(100)))) for n in numbers_)
            return Command(MERGE, rows, parts, modulus, chance.randrange(modulus) if modulus else 0)
        if kind in (OPTIMIZE, PURGE):
            return Command(kind, parts=parts)
        modulus = chance.choice((2, 3, 5, 7))
        return Command(kind, (), parts, modulus, chance.randrange(modulus))


def from_json(body: Mapping[str, object]) -> Command:
    """A command as `dataclasses.asdict` and JSON left it."""
    rows, parts = body["rows"], body["parts"]
    assert isinstance(rows, list)
    assert isinstance(parts, list)
    given = {**body, "rows": tuple((n, part, value) for n, part, value in rows), "parts": tuple(parts)}
    return Command(**given)  # type: ignore[arg-type]
