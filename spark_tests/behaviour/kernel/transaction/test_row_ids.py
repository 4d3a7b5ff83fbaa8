"""Row ids and commit versions under concurrency, and laws they obey."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import CommitFailedError, CorruptLogFileError, UnsupportedOperationError
from spark_tests.behaviour.kernel.transaction.tables import (
    LEGACY,
    add,
    bodies,
    features,
    info,
    make_table,
    read_commit,
    remove,
    stats,
    write_commit,
)
from spark_tests.full_form import examples

TRACKED = features("rowTracking", "domainMetadata")


def _mark(actions: Any) -> int | None:
    for body in bodies(actions, "domainMetadata"):
        if body["domain"] == "delta.rowTracking":
            return int(json.loads(body["configuration"])["rowIdHighWaterMark"])
    return None


def _domain(mark: int) -> dict[str, Any]:
    configuration = json.dumps({"rowIdHighWaterMark": mark})
    return {
        "domainMetadata": {"domain": "delta.rowTracking", "configuration": configuration, "removed": False}
    }


def test_fresh_files_get_ids_from_zero_and_the_mark_comes_first(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=TRACKED)
    log.start_transaction().add(add("a", 1, stats=stats(0, 1, 5))).add(
        add("b", 1, stats=stats(0, 1, 3))
    ).commit("WRITE")
    actions = read_commit(tmp_path, 1)
    assert [(b["baseRowId"], b["defaultRowCommitVersion"]) for b in bodies(actions, "add")] == [
        (0, 1),
        (5, 1),
    ]
    expected = '{"rowIdHighWaterMark":7,"domainName":"delta.rowTracking"}'
    assert actions[1]["domainMetadata"]["configuration"] == expected


def test_mark_is_written_only_when_it_grows_or_somebody_came_first(tmp_path: Path) -> None:
    log = make_table(
        tmp_path, [add("f", 1, baseRowId=0, defaultRowCommitVersion=0)], protocol=TRACKED, more=[_domain(9)]
    )
    log.start_transaction().remove(remove("f", 1)).commit("DELETE")
    assert _mark(read_commit(tmp_path, 1)) is None
    transaction = log.start_transaction()
    write_commit(tmp_path, 2, [info(blind=True)])
    transaction.commit("Manual Update")
    assert _mark(read_commit(tmp_path, 3)) == 9


def test_suspended_row_tracking_gives_out_nothing(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=TRACKED, configuration={"delta.rowTrackingSuspended": "true"})
    log.start_transaction().add(add("a", 1, baseRowId=3, defaultRowCommitVersion=1)).commit("WRITE")
    (written,) = bodies(read_commit(tmp_path, 1), "add")
    assert written == add("a", 1)


def test_enabled_and_suspended_at_once_is_refused(tmp_path: Path) -> None:
    both = {"delta.rowTrackingSuspended": "true", "delta.enableRowTracking": "true"}
    log = make_table(tmp_path, protocol=TRACKED, configuration=both)
    with pytest.raises(UnsupportedOperationError, match="both true"):
        log.start_transaction().add(add("a", 1)).commit("WRITE")


@pytest.mark.parametrize("given_stats", [None, "{}", '{"numRecords":null}', "no json"])
def test_file_without_row_count_is_refused(tmp_path: Path, given_stats: str | None) -> None:
    transaction = make_table(tmp_path, protocol=TRACKED).start_transaction()
    with pytest.raises(CommitFailedError) as caught:
        transaction.add(add("a", 1, stats=given_stats)).commit("WRITE")
    assert caught.value.condition == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"


def test_unreadable_mark_is_refused_rather_than_begun_anew(tmp_path: Path) -> None:
    broken = {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}}
    log = make_table(tmp_path, protocol=TRACKED, more=[broken])
    with pytest.raises(CorruptLogFileError, match="rowIdHighWaterMark"):
        log.start_transaction().add(add("a", 1, stats=stats(0, 1))).commit("WRITE")


def test_winner_that_adds_the_feature_makes_the_loser_number_its_rows(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    transaction = log.start_transaction().add(add("a", 1, stats=stats(0, 1, 4)))
    write_commit(tmp_path, 1, [info("UPGRADE PROTOCOL", blind=True), {"protocol": TRACKED.to_action()}])
    transaction.commit("WRITE")
    (written,) = bodies(read_commit(tmp_path, 2), "add")
    assert (written["baseRowId"], written["defaultRowCommitVersion"]) == (0, 2)


def test_live_removes_take_over_the_ids_of_a_backfill(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("f", 1)], protocol=TRACKED)
    transaction = log.start_transaction()
    transaction.scan("p = 1")
    transaction.remove_live()
    filled = add("f", 1, baseRowId=0, defaultRowCommitVersion=1, dataChange=False)
    write_commit(tmp_path, 1, [info("ROW TRACKING BACKFILL"), _domain(9), {"add": filled}])
    transaction.commit("DELETE")
    (written,) = bodies(read_commit(tmp_path, 2), "remove")
    assert (written["baseRowId"], written["defaultRowCommitVersion"]) == (0, 1)


def test_dropping_row_tracking_strips_what_the_winner_numbered(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=TRACKED, configuration={"delta.rowTrackingSuspended": "true"})
    dropping = log.start_transaction().set_protocol(LEGACY)
    write_commit(
        tmp_path, 1, [info(blind=True), {"add": add("n", 1, baseRowId=4, defaultRowCommitVersion=1)}]
    )
    dropping.commit("DROP FEATURE")
    assert bodies(read_commit(tmp_path, 2), "add") == [add("n", 1, dataChange=False)]


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=1, max_size=5),
    st.permutations(range(5)),
    st.integers(-1, 20),
)
def test_row_ids_never_overlap_whoever_comes_first(
    tmp_path_factory: Any, transactions: list[list[int]], order: list[int], mark: int
) -> None:
    path = tmp_path_factory.mktemp("table")
    log = make_table(path, protocol=TRACKED, more=[_domain(mark)] if mark >= 0 else [])
    started = [log.start_transaction() for _ in transactions]
    for number in (n for n in order if n < len(transactions)):
        for file, rows in enumerate(transactions[number]):
            started[number].add(add(f"{number}-{file}", 1, stats=stats(0, 1, rows)))
        started[number].commit("WRITE", post_commit=False)
    taken: set[int] = set(range(mark + 1))
    for version in range(1, len(transactions) + 1):
        actions = read_commit(path, version)
        for body in bodies(actions, "add"):
            rows = json.loads(body["stats"])["numRecords"]
            ids = set(range(body["baseRowId"], body["baseRowId"] + rows))
            assert not ids & taken
            assert body["defaultRowCommitVersion"] == version
            taken |= ids
        found = _mark(actions)
        assert found is None or found == max(taken, default=-1)
    domain = DeltaLog(path).snapshot().domains.get("delta.rowTracking")
    recorded = -1 if domain is None else json.loads(domain)["rowIdHighWaterMark"]
    assert recorded == max(taken, default=-1)
