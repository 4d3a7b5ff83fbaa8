"""The checker itself: it accepts what has a serial order, and finds what has none."""

from __future__ import annotations

import pytest

from spark_tests.concurrency.serial_order import (
    Committed,
    NotSerialError,
    Operation,
    Row,
    check,
    serial_order,
)

A: Row = ("a", 1, 5, None)
B: Row = ("b", 1, 5, None)
C: Row = ("c", 2, 5, None)


def append(*rows: Row) -> Operation:
    return Operation("append", rows)


def count(tag: str, part: int, seen: int, into: int) -> Operation:
    return Operation("count", ((tag, into, 0, seen),), parts=(part,))


def commits(*done: tuple[Operation, int, set[Row]]) -> list[Committed]:
    """Operations with the version that each had read, and the rows that each changed, from version 1 on."""
    return [Committed(op, v, read, frozenset(rows)) for v, (op, read, rows) in enumerate(done, 1)]


def test_operations_one_after_the_other_are_in_order_of_versions() -> None:
    done = commits(
        (append(A, C), 0, {A, C}), (Operation("partitions", (B,)), 1, {A, B}), (Operation("overwrite"), 2, {B, C})
    )
    assert serial_order(done, strict=True) == done
    check(done, {1: [A, C], 2: [B, C], 3: []}, strict=True)


def test_an_overwrite_that_missed_an_append_comes_before_it_unless_serializable() -> None:
    done = commits((append(A), 0, {A}), (Operation("overwrite", (C,)), 0, {C}))
    assert [c.version for c in serial_order(done, strict=False)] == [2, 1]
    check(done, {1: [A], 2: [A, C]}, strict=False)
    with pytest.raises(NotSerialError, match="had to see"):
        serial_order(done, strict=True)


def test_a_missed_overwrite_has_no_order() -> None:
    done = commits((append(A), 0, {A}), (Operation("overwrite", (B,)), 1, {A, B}), (count("n", 1, 1, 2), 1, set()))
    with pytest.raises(NotSerialError, match="had to see"):
        serial_order(done, strict=False)


def test_a_missed_row_of_another_partition_does_not_matter() -> None:
    first, second = count("n", 1, 0, 3), count("m", 2, 0, 4)
    done = commits((append(A), 0, {A}), (second, 0, {second.rows[0]}), (first, 0, {first.rows[0]}))
    assert [c.version for c in serial_order(done, strict=False)] == [2, 3, 1]
    check(done, {1: [A], 2: [A, *second.rows], 3: [A, *second.rows, *first.rows]}, strict=False)


def test_two_that_missed_each_others_rows_have_no_order() -> None:
    first, second = count("n", 1, 0, 2), count("m", 2, 0, 1)
    done = commits((first, 0, set(first.rows)), (second, 0, set(second.rows)))
    with pytest.raises(NotSerialError, match="had to see"):
        serial_order(done, strict=False)


def test_an_append_seen_by_one_and_missed_by_another_that_the_first_had_seen_has_no_order() -> None:
    """2 saw the append, 3 saw 2 but not the append: 3 < append < 2 < 3."""
    two, three = count("n", 1, 1, 2), Operation("replace", (), (1, 2), least=0)
    done = commits((append(A), 0, {A}), (two, 1, set(two.rows)), (three, 0, set()))
    done[2] = Committed(three, 3, 2, frozenset())
    done[0] = Committed(append(A), 1, 0, frozenset({A}))
    assert serial_order(done, strict=False) == done
    swapped = [Committed(two, 1, 0, frozenset(two.rows)), Committed(append(A), 2, 0, frozenset({A}))]
    assert [c.version for c in serial_order(swapped, strict=True)] == [1, 2]


def test_a_cycle_over_three_has_no_order() -> None:
    """The count came before the append that it missed, the overwrite after the count, and saw the append earlier."""
    counted = count("n", 1, 0, 2)
    done = [
        Committed(append(A), 1, 0, frozenset({A})),
        Committed(count("m", 1, 1, 3), 2, 1, frozenset({("m", 3, 0, 1)})),
        Committed(Operation("replace", (counted.rows[0],), (1, 3)), 3, 2, frozenset({A, ("m", 3, 0, 1)})),
        Committed(counted, 4, 0, frozenset(counted.rows)),
    ]
    with pytest.raises(NotSerialError):
        serial_order(done, strict=False)


@pytest.mark.parametrize("found", [[A], [A, B, C], [A, B, B], []])
def test_other_rows_than_the_replay_has_are_found(found: list[Row]) -> None:
    done = commits((append(A, B), 0, {A, B}))
    check(done, {1: [B, A]}, strict=True)
    with pytest.raises(NotSerialError, match="version 1"):
        check(done, {1: found}, strict=True)


def test_a_wrong_count_is_found() -> None:
    counted = count("n", 1, 2, 2)
    done = commits((append(A), 0, {A}), (counted, 1, set(counted.rows)))
    with pytest.raises(NotSerialError, match="counted"):
        check(done, {1: [A], 2: [A, *counted.rows]}, strict=True)


def test_a_property_change_that_was_missed_has_no_order() -> None:
    done = commits((Operation("set", key="k", text="1"), 0, set()), (append(A), 0, {A}))
    with pytest.raises(NotSerialError, match="had to see"):
        serial_order(done, strict=False)
