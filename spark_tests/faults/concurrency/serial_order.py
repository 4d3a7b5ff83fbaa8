"""Is what many processes did to one table the same as if they had come one after the other?

Every committed operation is replayed on a tiny model, in an order that respects who saw whom:

- who read version r has seen all commits up to r, and none of the later ones;
- if one operation's rows (added or taken away) matter to what another one read, the one that saw them comes later,
  and the one that did not see them comes earlier.

At `Serializable` that order has to be the order of versions. At `WriteSerializable` a blind append may move behind
a later version whose writer has not seen it; nothing else may.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# One row of the table: a tag that no other row has, its partition, a value, and the number of rows counted (-1: none).
Row = tuple[str, int, int, int]

APPEND, OVERWRITE, PARTITIONS, REPLACE, COUNT, SET = (
    "append",
    "overwrite",
    "partitions",
    "replace",
    "count",
    "set",
)


@dataclass(frozen=True)
class Operation:
    """What a process wanted to do.

    Attributes
    ----------
    kind
        `append`; `overwrite` all rows, those of the `partitions` written to, or `replace` those of some partitions
        with at least a value; `count` the rows of some partitions and note the number; `set` a property.
    rows
        To be written.
    parts, least
        What `replace` and `count` look at.
    key, text
        What `set` sets.
    """

    kind: str
    rows: tuple[Row, ...] = ()
    parts: tuple[int, ...] = ()
    least: int = 0
    key: str = ""
    text: str = ""

    def reads(self, row: Row) -> bool:
        """Whether the outcome depends on a row of others."""
        if self.kind == OVERWRITE:
            return True
        if self.kind == PARTITIONS:
            return row[1] in {own[1] for own in self.rows}
        return self.kind in (REPLACE, COUNT) and row[1] in self.parts and row[2] >= self.least

    @property
    def is_blind(self) -> bool:
        return self.kind in (APPEND, SET)

    def touches(self, part: int) -> bool:
        """Whether it looks into a partition at all; conflicts go by partition, not by row."""
        return self.kind == OVERWRITE or any(self.reads(("", part, value, -1)) for value in (0, self.least))


@dataclass(frozen=True)
class Committed:
    """An operation that became a version.

    Attributes
    ----------
    version, read_version
        The version it made, and the one it had seen.
    changed
        The rows that it added or took away, by the log.
    """

    operation: Operation
    version: int
    read_version: int
    changed: frozenset[Row]


class NotSerialError(AssertionError):
    """No order explains what happened."""


@dataclass
class Model:
    """The table, as simple as can be."""

    rows: dict[str, Row] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    def apply(self, operation: Operation) -> None:
        if operation.kind == SET:
            self.properties[operation.key] = operation.text
            return
        seen = [row for row in self.rows.values() if operation.reads(row)]
        if operation.kind == COUNT:
            noted = {row[3] for row in operation.rows}
            if noted != {len(seen)}:
                raise NotSerialError(f"{operation} has counted other rows than the {len(seen)} there are")
        else:
            for row in seen:
                del self.rows[row[0]]
        self.rows.update({row[0]: row for row in operation.rows})

    @property
    def state(self) -> frozenset[Row]:
        return frozenset(self.rows.values())


def serial_order(
    commits: Sequence[Committed], versions: Mapping[int, Iterable[Row]], *, strict: bool
) -> list[Committed]:
    """The commits in an order that explains what each of them has seen; by version wherever that does.

    Parameters
    ----------
    commits
        By version.
    versions
        The rows of every version, also of the one before the first commit.
    strict
        Whether only the order of versions will do.

    Raises
    ------
    NotSerialError
        There is none, or a commit missed one that it had to see.
    """
    rows = {version: frozenset(found) for version, found in versions.items()}
    later: dict[int, set[int]] = {commit.version: set() for commit in commits}
    for index, second in enumerate(commits):
        for first in commits[:index]:
            before, after = _before_and_after(first, second, rows, strict)
            if before is not None and after is not None:
                later[before].add(after)
    return _sorted({commit.version: commit for commit in commits}, later)


def _before_and_after(
    first: Committed, second: Committed, rows: Mapping[int, frozenset[Row]], strict: bool
) -> tuple[int | None, int | None]:
    """Which of two has to come first, the lower version being the first; None, None: all the same."""
    relevant = {row for row in first.changed if second.operation.reads(row)}
    if first.version > second.read_version:
        sets = first.operation.kind == SET
        # What was added and is gone again, or is gone and was never seen, makes no difference to who missed both.
        felt = relevant & (rows[second.version - 1] ^ rows[second.read_version])
        if sets or (relevant if strict else felt):
            if strict or first.operation.kind != APPEND:
                raise NotSerialError(f"{second} had to see {first}, and did not")
            return second.version, first.version
    reads_later = any(first.operation.reads(row) for row in second.changed)
    kinds = (first.operation.kind, second.operation.kind)
    return (first.version, second.version) if relevant or reads_later or SET in kinds else (None, None)


def _sorted(commits: Mapping[int, Committed], later: Mapping[int, set[int]]) -> list[Committed]:
    waiting = {version: 0 for version in commits}
    for versions in later.values():
        for version in versions:
            waiting[version] += 1
    free = [version for version, count in waiting.items() if not count]
    heapq.heapify(free)
    order = []
    while free:
        version = heapq.heappop(free)
        order.append(commits[version])
        for after in later[version]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(free, after)
    if len(order) < len(commits):
        left = [commits[version] for version, count in waiting.items() if count]
        raise NotSerialError(f"these have all to come before each other: {left}")
    return order


def check(commits: Sequence[Committed], versions: Mapping[int, Iterable[Row]], *, strict: bool) -> None:
    """Hold the rows of every version against a replay of the commits up to it.

    Parameters
    ----------
    commits
        All of them, by version.
    versions
        The rows of each version as they were found, also of the one before the first commit.
    strict
        As for `serial_order`.

    Raises
    ------
    NotSerialError
        There is no order, or the replay comes to other rows; it says at which version.
    """
    order = serial_order(commits, versions, strict=strict)
    for commit in commits:
        model = Model()
        for earlier in order:
            if earlier.version <= commit.version:
                model.apply(earlier.operation)
        found = sorted(versions[commit.version], key=str)
        if found != sorted(model.state, key=str):
            missing, more = model.state - set(found), set(found) - model.state
            doubled = len(found) - len(set(found))
            raise NotSerialError(
                f"version {commit.version} ({commit.operation}) lacks {sorted(missing, key=str)}, has "
                f"{sorted(more, key=str)} too many and {doubled} twice"
            )


def from_json(body: Mapping[str, Any]) -> Operation:
    """An operation as `dataclasses.asdict` and JSON left it."""
    rows = tuple((tag, part, value, counted) for tag, part, value, counted in body["rows"])
    return Operation(**{**body, "rows": rows, "parts": tuple(body["parts"])})
