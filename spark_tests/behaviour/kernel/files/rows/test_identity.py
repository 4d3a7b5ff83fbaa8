"""Identity columns: values beyond the mark, unique whatever task gives them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvariantViolationError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.files.rows import generated
from delta_ds.kernel.files.rows.generated import BLOCK, TASKS, Identity, IdentityValues, first_value
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.rows.plan import plan_rows
from delta_ds.kernel.format.schema.types import INTEGER, LONG, STRING, StructField
from spark_tests.behaviour.kernel.files.rows.row_tables import FEATURES, batch, plan, schema, stored
from spark_tests.behaviour.kernel.states import table_state

LAST = (1 << 63) - 1


def column(
    start: object = 10, step: object = 5, mark: int | None = None, explicit: bool = False
) -> StructField:
    metadata = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": explicit,
    }
    if mark is not None:
        metadata["delta.identity.highWaterMark"] = mark
    return StructField("k", LONG, True, metadata)


ROWS = schema(v=STRING)


def test_first_rows_of_task_0_count_from_start_without_gaps() -> None:
    rows = stored(ROWS, schema(column(), v=STRING), {"v": "a"}, {"v": "b"}, {"v": "c"})
    assert [row["k"] for row in rows] == [10, 15, 20]


def test_values_follow_the_mark_over_several_batches() -> None:
    pipeline = RowPipeline(plan(ROWS, schema(column(mark=15), v=STRING)))
    out = [pipeline.process(batch(ROWS, {"v": "a"}, {"v": "b"})).column(0).to_pylist() for _ in range(2)]
    assert out == [[20, 25], [30, 35]]
    assert pipeline.identity_marks() == {"k": 35}


def test_task_without_rows_has_no_mark() -> None:
    pipeline = RowPipeline(plan(ROWS, schema(column(), v=STRING)), 3)
    pipeline.process(batch(ROWS))
    assert pipeline.identity_marks() == {}


def test_negative_step_counts_down_and_marks_the_lowest() -> None:
    pipeline = RowPipeline(plan(ROWS, schema(column(0, -2, -6), v=STRING)))
    assert pipeline.process(batch(ROWS, {"v": "a"}, {"v": "b"})).column(0).to_pylist() == [-8, -10]
    assert pipeline.identity_marks() == {"k": -10}


def test_given_values_for_generated_always_are_refused() -> None:
    data = schema(K=LONG, v=STRING)
    with pytest.raises(UnsupportedOperationError, match="column k is not supported") as caught:
        plan(data, schema(column(), v=STRING))
    assert caught.value.condition == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"


def test_given_values_for_generated_by_default_are_kept_and_do_not_move_the_mark() -> None:
    data = schema(k=LONG, v=STRING)
    pipeline = RowPipeline(plan(data, schema(column(explicit=True), v=STRING)))
    assert pipeline.process(batch(data, {"k": 7, "v": "a"})).column(0).to_pylist() == [7]
    assert pipeline.identity_marks() == {}


def test_without_the_feature_the_column_is_a_plain_one() -> None:
    table = schema(column(), v=STRING)
    assert stored(ROWS, table, {"v": "a"}, features=FEATURES - {"identityColumns"}) == [{"k": None, "v": "a"}]


def test_identity_column_as_partition_column_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="is a partition column"):
        plan_rows(ROWS, table_state(schema(column(), v=STRING), features=FEATURES, partition_columns=["K"]))


def test_values_beyond_a_long_are_refused() -> None:
    values = IdentityValues(Identity("k", LAST - 1, 1), 0)
    assert values.next(2).to_pylist() == [LAST - 1, LAST]
    with pytest.raises(InvariantViolationError, match="leave the range of a long"):
        values.next(1)


def test_task_beyond_the_scheme_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="at most 65536 tasks"):
        IdentityValues(Identity("k", 1, 1), TASKS)


@pytest.mark.parametrize("field", [column(step=0), column(start="1"), column(start=True)])
def test_broken_metadata_is_refused(field: StructField) -> None:
    with pytest.raises(SchemaError, match=r"no valid identity column|delta\.identity\.start of field 'k' is"):
        plan(ROWS, schema(field, v=STRING))


def test_identity_of_another_type_is_refused() -> None:
    field = StructField("k", INTEGER, True, column().metadata)
    with pytest.raises(SchemaError, match="no valid identity column"):
        plan(ROWS, schema(field, v=STRING))


@given(
    st.integers(-1000, 1000),
    st.integers(-50, 50).filter(bool),
    st.none() | st.integers(-2000, 2000),
)
def test_first_value_is_the_next_of_the_sequence_beyond_the_mark(
    start: int, step: int, mark: int | None
) -> None:
    value = first_value(start, step, mark)
    assert (value - start) % step == 0 and (value - start) // step >= 0
    if mark is not None:
        assert (value - mark) * step > 0
        assert value == start or (value - step - mark) * step <= 0


@given(
    st.dictionaries(st.integers(0, TASKS - 1), st.lists(st.integers(0, 40), max_size=5), max_size=6),
    st.integers(-(10**6), 10**6),
    st.sampled_from([1, -1, 7, -13]),
    st.sampled_from([1, 2, 5, 16]),
)
def test_any_split_into_tasks_and_batches_gives_unique_values_beyond_the_base(
    tasks: dict[int, list[int]], base: int, step: int, block: int
) -> None:
    given_out: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated, "BLOCK", block)
        for task, batches in tasks.items():
            values = IdentityValues(Identity("k", base, step), task)
            mine = [v for rows in batches for v in values.next(rows).to_pylist()]
            assert values.mark == (mine[-1] if mine else None)
            assert mine == sorted(mine, reverse=step < 0)
            given_out += mine
    assert len(given_out) == len(set(given_out)) == sum(map(sum, tasks.values()))
    assert all((v - base) % step == 0 and (v - base) // step >= 0 for v in given_out)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=4), min_size=1, max_size=6),
    st.integers(-(10**6), 10**6),
    st.sampled_from([1, -1, 7, -13]),
    st.integers(0, 3),
)
def test_values_of_a_known_number_of_tasks_are_unique_and_lie_close_together(
    tasks: list[list[int]], base: int, step: int, idle: int
) -> None:
    number = len(tasks) + idle
    given_out: list[int] = []
    for task, batches in enumerate(tasks):
        values = IdentityValues(Identity("k", base, step, tasks=number), task)
        mine = [v for rows in batches for v in values.next(rows).to_pylist()]
        assert values.mark == (mine[-1] if mine else None)
        given_out += mine
    assert len(given_out) == len(set(given_out)) == sum(map(sum, tasks))
    longest = max(map(sum, tasks))
    assert all((v - base) % step == 0 and 0 <= (v - base) // step < number * longest for v in given_out)


def test_a_task_that_was_not_counted_is_refused() -> None:
    with pytest.raises(InvariantViolationError, match="2 tasks, and this is task 2"):
        IdentityValues(Identity("k", 1, 1, tasks=2), 2)


@pytest.mark.parametrize("tasks", [1, 3])
def test_values_of_known_tasks_beyond_a_long_are_refused(tasks: int) -> None:
    values = IdentityValues(Identity("k", LAST - 3 * tasks, 1, tasks=tasks), 0)
    assert values.next(4).to_pylist()[-1] == LAST
    with pytest.raises(InvariantViolationError):
        values.next(1)


def test_neighbouring_tasks_meet_only_at_their_blocks_edge() -> None:
    first, second = (IdentityValues(Identity("k", 1, 1), task) for task in (0, 1))
    assert first.next(BLOCK).to_pylist()[-1] + 1 == second.next(1).to_pylist()[0]
    assert first.next(1).to_pylist() == [1 + BLOCK * TASKS]
