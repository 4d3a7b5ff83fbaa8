"""The checker itself: it accepts what has a serial order, and finds what has none."""

from __future__ import annotations

import pytest

from spark_tests.faults.concurrency.serial_order import (
    Committed,
    NotSerialError,
    Operation,
    Row,
    check,
    serial_order,
)

A: Row = ("a", 1, 5, -1)
B: Row = ("b", 1, 5, -1)
C: Row = ("c", 2, 5, -1)

Done = tuple[Operation, int, list[Row]]


def append(*rows: Row) -> Operation:
    return Operation("append", rows)


def count(tag: str, seen: int, *, of: tuple[int, ...] = (1,), into: int = 1) -> Operation:
    return Operation("count", ((tag, into, 0, seen),), parts=of)


def table(*done: Done) -> tuple[list[Committed], dict[int, list[Row]]]:
    """A history from version 1 on: what was done, the version that had been read, and the rows there were then."""
    versions: dict[int, list[Row]] = {0: []}
    commits = []
    for version, (operation, read, rows) in enumerate(done, 1):
        versions[version] = rows
        changed = frozenset(versions[version - 1]) ^ frozenset(rows)
        commits.append(Committed(operation, version, read, changed))
    return commits, versions


def order(*done: Done, strict: bool = False) -> list[int]:
    commits, versions = table(*done)
    check(commits, versions, strict=strict)
    return [commit.version for commit in serial_order(commits, versions, strict=strict)]


def test_operations_one_after_the_other_are_in_order_of_versions() -> None:
    partitions, everything = Operation("partitions", (B,)), Operation("overwrite")
    done: tuple[Done, ...] = ((append(A, C), 0, [A, C]), (partitions, 1, [B, C]), (everything, 2, []))
    assert order(*done, strict=True) == [1, 2, 3]


def test_an_overwrite_that_missed_an_append_comes_before_it_unless_serializable() -> None:
    done = ((append(A), 0, [A]), (Operation("overwrite", (C,)), 0, [A, C]))
    assert order(*done) == [2, 1]
    with pytest.raises(NotSerialError, match="had to see"):
        order(*done, strict=True)


def test_an_overwrite_that_was_missed_has_no_order() -> None:
    overwrite, counted = Operation("overwrite", (B,)), count("n", 1)
    with pytest.raises(NotSerialError, match="had to see"):
        order((append(A), 0, [A]), (overwrite, 1, [B]), (counted, 1, [B, *counted.rows]))


def test_a_missed_row_of_another_partition_does_not_matter() -> None:
    counted = count("n", 0, of=(2,))
    assert order((append(A), 0, [A]), (counted, 0, [A, *counted.rows]), strict=True) == [1, 2]


def test_two_that_missed_each_others_rows_have_no_order() -> None:
    one, two = count("n", 0, of=(1,), into=2), count("m", 0, of=(2,), into=1)
    with pytest.raises(NotSerialError, match="had to see"):
        order((one, 0, [*one.rows]), (two, 0, [*one.rows, *two.rows]))


def test_an_append_that_one_missed_and_whose_reader_came_before_has_no_order() -> None:
    """The third missed the append, so it comes first; the second saw the append, and not the third's row."""
    two, three = count("n", 1, of=(1, 2), into=3), count("m", 0, of=(1,), into=2)
    done = ((append(A), 0, [A]), (two, 1, [A, *two.rows]), (three, 0, [A, *two.rows, *three.rows]))
    with pytest.raises(NotSerialError, match="before each other"):
        order(*done)


def test_an_append_that_is_gone_again_does_not_matter_to_who_missed_both() -> None:
    replace = Operation("replace", (C,), (1, 2))
    done = ((append(A), 0, [A]), (replace, 1, [C]), (Operation("replace", (B,), (1,)), 0, [B, C]))
    assert order(*done) == [1, 2, 3]
    with pytest.raises(NotSerialError, match="had to see"):
        order(*done, strict=True)


@pytest.mark.parametrize("found", [[A], [A, B, C], [A, B, B], []])
def test_other_rows_than_the_replay_has_are_found(found: list[Row]) -> None:
    assert order((append(A, B), 0, [B, A])) == [1]
    with pytest.raises(NotSerialError, match="version 1"):
        order((append(A, B), 0, found))


def test_a_wrong_count_is_found() -> None:
    counted = count("n", 2)
    with pytest.raises(NotSerialError, match="counted"):
        order((append(A), 0, [A]), (counted, 1, [A, *counted.rows]))


def test_a_property_change_that_was_missed_has_no_order() -> None:
    with pytest.raises(NotSerialError, match="had to see"):
        order((Operation("set", key="k", text="1"), 0, []), (append(A), 0, [A]))
