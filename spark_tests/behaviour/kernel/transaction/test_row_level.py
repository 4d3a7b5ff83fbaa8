"""Commands that touch different rows of the same files both commit; those that touch the same rows do not.

Source: conflict-matrix section 11.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from delta_ds.kernel.commands.dml import commit as dml_commit
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.schema.types import STRING, StructField, StructType
from delta_ds.kernel.transaction import winning_rows
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.reads import bound_predicate
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    DELETE,
    MERGE,
    OPTIMIZE,
    UPDATE,
    Command,
    Rows,
    row_of,
)

TRACKED = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return table(tmp_path / "table")


def table(
    path: Path, *, level: str = "Serializable", partitioned: bool = False, **properties: str
) -> DeltaLog:
    """Ids 0, 2, ... 44 in one file, or in one a partition."""
    log = DeltaLog(path)
    row_commands.create(
        log, {**TRACKED, "delta.isolationLevel": level, **properties}, partitioned=partitioned
    )
    return log


@contextmanager
def first(*others: Callable[[], Any], times: int = 1) -> Iterator[None]:
    """Let others commit, one after the other, between the work of the next command and each of its first attempts."""
    left, busy = times, False
    real = dml_commit.Transaction.commit

    def commit(self: Any, *args: Any, **kwargs: Any) -> int:
        nonlocal left, busy
        if left and not busy:
            left, busy = left - 1, True
            for other in others:
                other()
            busy = False
        return real(self, *args, **kwargs)

    with mock.patch.object(dml_commit.Transaction, "commit", commit):
        yield
    assert left == 0


def rows(log: DeltaLog) -> Rows:
    return {
        row[0]: row for row in row_commands.rows_of(DeltaLog(log.storage.url).snapshot().scan().to_arrow())
    }


def race(log: DeltaLog, loser: Command, *winners: Command) -> None:
    """The winners commit while the loser works; the table is as if it had come after them."""
    expected = rows(log)
    for command in (*winners, loser):
        expected = command.apply(expected)
    others = [lambda w=w: row_commands.run(DeltaLog(log.storage.url), w, "winner") for w in winners]
    with first(*others):
        row_commands.run(DeltaLog(log.storage.url), loser, "loser")
    assert rows(log) == expected


EVENS, MULTIPLES_OF_5 = Command(DELETE, modulus=4, rest=0), Command(DELETE, modulus=5, rest=1)
GROW_2, GROW_6 = Command(UPDATE, modulus=8, rest=2), Command(UPDATE, modulus=8, rest=6)
MERGE_LOW = Command(MERGE, rows=(row_of(2, 7), row_of(3, 8), row_of(4, -1)))
MERGE_HIGH = Command(MERGE, rows=(row_of(40, 7), row_of(41, 8), row_of(42, -1)))


@pytest.mark.parametrize(
    ("loser", "winners"),
    [
        (EVENS, [GROW_2]),
        (GROW_6, [EVENS]),
        (GROW_2, [GROW_6]),
        (GROW_2, [GROW_6, EVENS]),
        (MERGE_LOW, [MERGE_HIGH]),
        (MERGE_HIGH, [MERGE_LOW]),
        (MERGE_HIGH, [GROW_6]),
        (GROW_6, [MERGE_HIGH]),
        (GROW_2, [Command(APPEND, rows=(row_of(1_001, 5),))]),
        (MERGE_LOW, [Command(APPEND, rows=(row_of(1_001, 5),))]),
        (GROW_2, [Command(OPTIMIZE)]),
        (GROW_2, [Command(APPEND, rows=(row_of(1_001, 5),)), Command(OPTIMIZE)]),
        (EVENS, [GROW_2, Command(APPEND, rows=(row_of(1_001, 5),)), Command(OPTIMIZE), GROW_6]),
        (MERGE_LOW, [MERGE_HIGH, Command(APPEND, rows=(row_of(1_003, 5),)), Command(OPTIMIZE)]),
    ],
)
@pytest.mark.parametrize(("level", "feed"), [("Serializable", "true"), ("WriteSerializable", "false")])
def test_other_rows_of_the_same_file_are_no_conflict(
    tmp_path: Path, loser: Command, winners: list[Command], level: str, feed: str
) -> None:
    race(table(tmp_path, level=level, **{"delta.enableChangeDataFeed": feed}), loser, *winners)


@pytest.mark.parametrize(
    ("loser", "winner", "error"),
    [
        (EVENS, Command(DELETE, modulus=8, rest=4), ConcurrentDeleteReadException),
        (GROW_2, GROW_2, ConcurrentDeleteReadException),
        (GROW_2, Command(UPDATE, modulus=4, rest=2), ConcurrentDeleteReadException),
        # A merge that inserts an id which the other has inserted, and one that would have to insert what is gone.
        (MERGE_LOW, Command(MERGE, rows=(row_of(3, 1),)), ConcurrentAppendException),
        (
            Command(MERGE, rows=(row_of(2, 5),)),
            Command(DELETE, modulus=40, rest=2),
            ConcurrentDeleteReadException,
        ),
        (
            Command(DELETE, modulus=7, rest=0),
            Command(APPEND, rows=(row_of(700, 0),)),
            ConcurrentAppendException,
        ),
    ],
)
def test_rows_that_both_touch_are_a_conflict(
    log: DeltaLog, loser: Command, winner: Command, error: type[DeltaConcurrentModificationException]
) -> None:
    after_winner = winner.apply(rows(log))
    with (
        pytest.raises(error) as raised,
        first(lambda: row_commands.run(DeltaLog(log.storage.url), winner, "winner")),
    ):
        row_commands.run(DeltaLog(log.storage.url), loser, "loser")
    assert rows(log) == after_winner
    assert "row" in raised.value.text
    assert raised.value.winning_version == 1


def test_deletion_vectors_of_earlier_attempts_are_deleted(log: DeltaLog) -> None:
    race(log, GROW_6, EVENS)
    # The other commit's, which time travel needs, and that of both: none of the first attempt.
    assert len(list(Path(log.storage.url).glob("deletion_vector_*.bin"))) == 2


@pytest.mark.parametrize(
    ("loser", "winners"),
    [
        (EVENS, []),
        (EVENS, [GROW_6]),
        (GROW_2, [GROW_6, EVENS]),
        (GROW_2, [Command(OPTIMIZE)]),
        (EVENS, [GROW_2, Command(APPEND, rows=(row_of(1_001, 5),)), Command(OPTIMIZE), GROW_6]),
        (MERGE_LOW, [MERGE_HIGH]),
        (MERGE_LOW, [MERGE_HIGH, Command(APPEND, rows=(row_of(1_003, 5),)), Command(OPTIMIZE)]),
        (Command(DELETE, modulus=4, rest=2), [EVENS]),  # no row of the file is left
    ],
)
def test_metrics_tell_what_the_commit_does_to_files_as_they_are(
    tmp_path: Path, loser: Command, winners: list[Command]
) -> None:
    log = table(tmp_path / "counted")
    race(log, loser, *winners)
    commit = next(
        (tmp_path / "counted/_delta_log").glob(f"{DeltaLog(log.storage.url).snapshot().version:020d}.json")
    )
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    adds = {a["add"]["path"]: a["add"] for a in actions if "add" in a}
    removes = {a["remove"]["path"]: a["remove"] for a in actions if "remove" in a}
    (told,) = (a["commitInfo"]["operationMetrics"] for a in actions if "commitInfo" in a)
    target = "Target" if loser.kind == MERGE else ""
    gone = [body for path, body in removes.items() if path not in adds]
    assert {name: int(told[name]) for name in told if "Vectors" in name or "Removed" in name} == {
        f"num{target}{'FilesRemoved' if target else 'RemovedFiles'}": len(gone),
        f"num{target}{'BytesRemoved' if target else 'RemovedBytes'}": sum(body["size"] for body in gone),
        f"num{target}DeletionVectorsAdded": sum("deletionVector" in body for body in adds.values()),
        f"num{target}DeletionVectorsRemoved": sum("deletionVector" in body for body in removes.values()),
        f"num{target}DeletionVectorsUpdated": sum(
            "deletionVector" in removes[path] for path in removes if path in adds
        ),
    }


def test_a_file_whose_last_rows_go_is_removed(log: DeltaLog) -> None:
    odd_half = Command(DELETE, modulus=4, rest=2)
    race(log, odd_half, EVENS)
    assert rows(log) == {}
    assert DeltaLog(log.storage.url).open_snapshot().live_files().num_rows == 0


@pytest.mark.parametrize("counted", [1, 7, 12, 18, 22])
def test_a_file_whose_rows_were_counted_too_low_keeps_those_that_nobody_deletes(
    log: DeltaLog, counted: int
) -> None:
    """It has 23 rows; the two commits delete 18."""
    for commit in Path(log.storage.url, "_delta_log").glob("*.json"):
        text = commit.read_text()
        commit.write_text(text.replace(r"\"numRecords\":23", rf"\"numRecords\":{counted}"))
    race(log, Command(DELETE, modulus=8, rest=2), EVENS)
    assert len(rows(log)) == 5


def test_the_change_feed_has_the_rows_of_each_commit_once(tmp_path: Path) -> None:
    log = table(tmp_path / "feed", **{"delta.enableChangeDataFeed": "true"})
    race(log, EVENS, GROW_6, Command(OPTIMIZE))
    changes = DeltaLog(log.storage.url).changes(1).to_arrow().to_pylist()
    kinds = sorted((c["_commit_version"], c["_change_type"], c["id"]) for c in changes)
    grown = [n for n in range(0, 45, 2) if n % 8 == 6]
    expected = [(1, kind, n) for kind in ("update_postimage", "update_preimage") for n in grown]
    assert [k for k in kinds if k[0] == 1] == sorted(expected)
    last = max(version for version, _, _ in kinds)
    assert [k for k in kinds if k[0] == last] == [(last, "delete", n) for n in range(0, 45, 4)]


def test_rows_that_a_restore_brings_back_are_new_rows(log: DeltaLog) -> None:
    row_commands.run(log, Command(DELETE, modulus=8, rest=2), "before")
    with (
        pytest.raises(ConcurrentDeleteReadException, match="brought 6 rows back"),
        first(lambda: restore(DeltaLog(log.storage.url), version=0)),
    ):
        row_commands.run(DeltaLog(log.storage.url), Command(UPDATE, modulus=4, rest=2), "loser")


def test_row_ids_stay_through_a_move_and_a_change(log: DeltaLog) -> None:
    before = _row_ids(log)
    race(log, GROW_6, GROW_2, Command(APPEND, rows=(row_of(1_001, 5),)), Command(OPTIMIZE), EVENS)
    after = _row_ids(log)
    assert {n: after[n] for n in after if n in before} == {n: before[n] for n in after if n in before}
    assert len(set(after.values())) == len(after)


def _row_ids(log: DeltaLog) -> dict[int, int]:
    found = DeltaLog(log.storage.url).snapshot().scan(metadata_columns=("row_id",)).to_arrow()
    ids = found["_metadata"].combine_chunks().field("row_id").to_pylist()
    return dict(zip(found["id"].to_pylist(), ids, strict=True))


def test_without_row_tracking_files_decide(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    row_commands.create(log, {"delta.enableDeletionVectors": "true"}, partitioned=False)
    with (
        pytest.raises(ConcurrentAppendException),
        first(lambda: row_commands.run(DeltaLog(log.storage.url), GROW_2, "winner")),
    ):
        row_commands.run(DeltaLog(log.storage.url), GROW_6, "loser")


def test_more_than_is_worth_reading_is_a_conflict(log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winning_rows, "MOST_BYTES", 1)
    with pytest.raises(ConcurrentAppendException, match="added rows that"):
        race(log, GROW_2, GROW_6)


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
@pytest.mark.parametrize(
    "winner", [Command(DELETE, modulus=1000, rest=0), Command(UPDATE, modulus=1000, rest=0)]
)
def test_a_row_that_was_moved_and_then_taken_away_is_missed(
    tmp_path: Path, level: str, winner: Command
) -> None:
    """Row 0 matches and stays as it is, so that only what the merge looked for says that it counts."""
    log = table(tmp_path, level=level)
    merge = Command(MERGE, rows=(row_of(0, 0), row_of(1, 5)))
    winners = [Command(APPEND, rows=(row_of(1_001, 5),)), Command(OPTIMIZE), winner]
    with pytest.raises((ConcurrentDeleteReadException, ConcurrentAppendException)):
        race(log, merge, *winners)
    assert rows(log).get(0) == (None if winner.kind == DELETE else (0, 0, 1))
    assert 1 not in rows(log)


def test_rows_of_unseen_files_are_not_asked_for_more_than_the_commit_says(tmp_path: Path) -> None:
    """A foreign `remove` without partition values: nobody knows what its rows were."""
    log = table(tmp_path, partitioned=True)
    merge = Command(MERGE, rows=(row_of(0, 0), row_of(1, 5)))

    def winners() -> None:
        for command in (
            Command(APPEND, rows=(row_of(1_002, 5),)),
            Command(OPTIMIZE),
            Command(DELETE, modulus=2),
        ):
            row_commands.run(DeltaLog(log.storage.url), command, "winner")
        last = max((Path(log.storage.url) / "_delta_log").glob("*.json"))
        actions = [json.loads(line) for line in last.read_text().splitlines()]
        for action in actions:
            action.get("remove", {}).pop("partitionValues", None)
        last.write_text("".join(json.dumps(action) + "\n" for action in actions))

    with (
        pytest.raises(ConcurrentDeleteReadException, match="does not tell the partition|rows? that this"),
        first(winners),
    ):
        row_commands.run(DeltaLog(log.storage.url), merge, "loser")


@pytest.mark.parametrize(
    "metadata", [{"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}, {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}]
)
def test_texts_that_the_kernel_compares_otherwise_count_as_wanted(
    tmp_path: Path, metadata: dict[str, Any]
) -> None:
    log = DeltaLog(tmp_path / "texts")
    create_table(log, StructType((StructField("c", STRING, True, metadata),)))
    log.write(pa.table({"c": ["abc  "]}))
    snapshot = log.open_snapshot()
    pending: Any = SimpleNamespace(storage=snapshot.storage, state=snapshot.table_state)
    read = bound_predicate(snapshot, "c = 'ABC'", "UTC")
    wanted = winning_rows.WantedRows(pending, read)
    assert wanted.first(Scan(snapshot).slices()) is not None
