"""What a transaction commits, and what it refuses to."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from delta_ds._version import __version__
from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    CommitFailedError,
    ConcurrentWriteException,
    DeltaError,
    NotADeltaTableError,
    PredicateError,
    ProtocolChangedException,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionsNotContiguousError,
)
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.actions import Protocol
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction import commit_loop
from delta_ds.kernel.transaction.transaction import Transaction
from spark_tests.behaviour.kernel.transaction.tables import (
    LEGACY,
    add,
    bodies,
    features,
    info,
    make_table,
    metadata,
    read_commit,
    remove,
    write_commit,
)


def test_append_writes_commit_info_as_delta_spark_does(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    version = log.start_transaction().add(add("a", 1)).commit(
        "WRITE", {"mode": "Append", "partitionBy": ["p"], "auto": False, "description": None},
        {"numFiles": 1, "numOutputRows": "3", "skipped": None}, user_metadata="hello", tags={"k": True},
    )  # fmt: skip
    assert version == 1
    first, second = read_commit(tmp_path, 1)
    found = first["commitInfo"]
    assert list(found) == [
        "timestamp", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend",
        "operationMetrics", "userMetadata", "tags", "engineInfo", "txnId",
    ]  # fmt: skip
    assert re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", found.pop("txnId"))
    assert found.pop("timestamp") > 1_700_000_000_000
    assert found == {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": '["p"]', "auto": False, "description": None},
        "readVersion": 0, "isolationLevel": "Serializable", "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1", "numOutputRows": "3"}, "userMetadata": "hello",
        "tags": {"k": "true"}, "engineInfo": f"delta_ds/{__version__}",
    }  # fmt: skip
    assert second == {"add": add("a", 1)}


def test_new_table_is_version_zero_without_read_version(tmp_path: Path) -> None:
    transaction = DeltaLog(tmp_path / "new").start_transaction(create=True, engine_info="Apache-Spark/4 x/1")
    assert (transaction.is_new_table, transaction.read_version) == (True, -1)
    transaction.set_protocol(LEGACY).set_metadata(metadata()).add(add("a", 1))
    assert transaction.commit("CREATE TABLE AS SELECT") == 0
    first = read_commit(tmp_path / "new", 0)[0]["commitInfo"]
    assert "readVersion" not in first
    assert first["engineInfo"] == "Apache-Spark/4 x/1"
    assert DeltaLog(tmp_path / "new").open_snapshot().live_files().num_rows == 1


def test_missing_table_is_refused_unless_it_may_be_created(tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError):
        DeltaLog(tmp_path / "none").start_transaction()


def test_second_creator_meets_a_changed_protocol(tmp_path: Path) -> None:
    creators = [Transaction(open_storage(tmp_path), None) for _ in range(2)]
    for creator in creators:
        creator.set_protocol(LEGACY).set_metadata(metadata())
    assert creators[0].commit("CREATE TABLE") == 0
    with pytest.raises(ProtocolChangedException, match="empty folder") as caught:
        creators[1].commit("CREATE TABLE")
    assert caught.value.winning_version == 0


@pytest.mark.parametrize(
    ("protocol", "schema", "condition"),
    [(LEGACY, None, "DELTA_METADATA_ABSENT"), (None, metadata(), "DELTA_INVALID_PROTOCOL_VERSION")],
)
def test_new_table_without_metadata_or_protocol_is_refused(
    tmp_path: Path, protocol: Any, schema: Any, condition: str
) -> None:
    transaction = Transaction(open_storage(tmp_path), None)
    if protocol:
        transaction.set_protocol(protocol)
    if schema:
        transaction.set_metadata(schema)
    with pytest.raises(CommitFailedError) as caught:
        transaction.commit("CREATE TABLE")
    assert caught.value.condition == condition
    assert not (tmp_path / "_delta_log").exists()


def test_transaction_commits_once(tmp_path: Path) -> None:
    transaction = make_table(tmp_path).start_transaction()
    transaction.commit("Empty Commit")
    with pytest.raises(CommitFailedError, match="version 1"):
        transaction.commit("Empty Commit")


def test_cdc_and_remove_make_an_append_not_blind(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("f", 1)])
    log.start_transaction().add(add("a", 1)).cdc({"path": "c", "partitionValues": {"p": "1"}}).commit("WRITE")
    log.start_transaction().remove(remove("f", 1)).commit("DELETE")
    transaction = log.start_transaction()
    transaction.read_app_id("app")
    transaction.add(add("b", 1)).commit("WRITE")
    flags = [read_commit(tmp_path, v)[0]["commitInfo"]["isBlindAppend"] for v in (1, 2, 3)]
    assert flags == [False, False, True]


def test_command_that_cannot_be_repeated_names_who_was_first(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    transaction = log.start_transaction().add(add("a", 1))
    log.start_transaction().add(add("b", 1)).commit("STREAMING UPDATE")
    with pytest.raises(
        ConcurrentWriteException, match="STREAMING UPDATE.*version 1.*Nothing was written"
    ) as caught:
        transaction.commit("RESTORE", retry=False)
    assert (caught.value.winning_version, caught.value.winning_operation) == (1, "STREAMING UPDATE")


def test_a_commit_by_name_is_tried_again_and_one_by_a_record_as_that_says(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    by_name = log.start_transaction().add(add("a", 1))
    by_record = log.start_transaction().add(add("b", 1))
    log.start_transaction().add(add("c", 1)).commit("WRITE")
    assert by_name.commit("RESTORE") == 2
    with pytest.raises(ConcurrentWriteException):
        by_record.commit(operations.RESTORE)


def test_commit_is_given_up_after_so_many_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_table(tmp_path)
    mine = log.start_transaction().add(add("mine", 1))

    def lose(storage: LocalStorage, path: str, data: bytes) -> None:
        write_commit(tmp_path, int(path[-25:-5]), [info(blind=True)])
        raise FileExistsError(path)

    monkeypatch.setattr(LocalStorage, "create", lose)
    monkeypatch.setattr(commit_loop, "_pause", lambda attempt: 0.0)
    with pytest.raises(CommitFailedError, match="tried 3 times") as caught:
        mine.commit("WRITE", max_attempts=3)
    assert caught.value.condition == "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


def test_commit_whose_answer_was_lost_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_table(tmp_path)
    create = LocalStorage.create

    def lose_answer(storage: LocalStorage, path: str, data: bytes) -> None:
        create(storage, path, data)
        raise FileExistsError(path)

    monkeypatch.setattr(LocalStorage, "create", lose_answer)
    mine = log.start_transaction()
    mine.read_whole_table()  # any other commit without a word about itself would conflict
    assert mine.add(add("mine", 1)).commit("WRITE", post_commit=False) == 1
    assert not (tmp_path / "_delta_log" / f"{2:020d}.json").exists()


def test_gap_behind_the_lost_version_stops_the_commit(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    mine = log.start_transaction().add(add("mine", 1))
    write_commit(tmp_path, 1, [info(blind=True)])
    write_commit(tmp_path, 3, [info(blind=True)])
    with pytest.raises(VersionsNotContiguousError, match="version 2"):
        mine.commit("WRITE")


def test_threads_append_without_losing_or_doubling_a_commit(tmp_path: Path) -> None:
    make_table(tmp_path)

    def append(worker: int) -> list[int]:
        log = DeltaLog(tmp_path)
        return [log.start_transaction().add(add(f"{worker}-{n}", 1)).commit("WRITE") for n in range(10)]

    with ThreadPoolExecutor(4) as pool:
        versions = [version for found in pool.map(append, range(4)) for version in found]
    assert sorted(versions) == list(range(1, 41))
    assert DeltaLog(tmp_path).open_snapshot().live_files().num_rows == 40


def test_equal_transactions_of_an_application_count_once_and_others_contradict(tmp_path: Path) -> None:
    transaction = make_table(tmp_path).start_transaction().set_txn("app", 3, 7).set_txn("app", 3)
    with pytest.raises(CommitFailedError, match="versions 3 and 4"):
        transaction.set_txn("app", 4)
    transaction.commit("STREAMING UPDATE")
    assert bodies(read_commit(tmp_path, 1), "txn") == [{"appId": "app", "version": 3, "lastUpdated": 7}]


def test_domain_is_removed_with_its_configuration(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=features("domainMetadata"))
    log.start_transaction().set_domain_metadata("app.x", "{}").commit("Manual Update")
    log.start_transaction().remove_domain_metadata("app.x").commit("Manual Update")
    removed = {"domain": "app.x", "configuration": "{}", "removed": True}
    assert bodies(read_commit(tmp_path, 2), "domainMetadata") == [removed]
    assert log.snapshot().domains == {}


def _two_adds(t: Transaction) -> None:
    t.add(add("x", 1)).add(add("x", 1))


def _two_removes(t: Transaction) -> None:
    t.remove(remove("f", 1)).remove(
        remove("f", 1, deletionVector={"storageType": "i", "pathOrInlineDv": "z"})
    )


def _add_and_remove(t: Transaction) -> None:
    t.remove(remove("f", 1)).add(add("f", 1))


def _live_and_remove(t: Transaction) -> None:
    t.remove_live().remove(remove("f", 1))


def _live_and_add(t: Transaction) -> None:
    t.remove_live().add(add("f", 1))


def _live_twice(t: Transaction) -> None:
    t.remove_live().remove_live()


@pytest.mark.parametrize(
    "actions", [_two_adds, _two_removes, _add_and_remove, _live_and_remove, _live_and_add, _live_twice]
)
def test_actions_that_contradict_each_other_are_refused(tmp_path: Path, actions: Any) -> None:
    transaction = make_table(tmp_path, [add("f", 1)]).start_transaction()
    actions(transaction)
    with pytest.raises(CommitFailedError) as caught:
        transaction.commit("WRITE")
    assert caught.value.condition == "DELTA_DUPLICATE_ACTIONS_FOUND"
    assert not (tmp_path / "_delta_log" / f"{1:020d}.json").exists()


def test_new_deletion_vector_of_a_live_file_is_no_duplicate(tmp_path: Path) -> None:
    protocol = features(reader=["deletionVectors"])
    log = make_table(tmp_path, [add("f", 1)], protocol=protocol)
    vector = {"storageType": "i", "pathOrInlineDv": "abc", "sizeInBytes": 3, "cardinality": 1}
    log.start_transaction().remove_live().add(add("f", 1, deletionVector=vector)).commit("DELETE")
    assert log.open_snapshot().live_files().num_rows == 1


@pytest.mark.parametrize("values", [{}, {"q": "1"}, {"p": "1", "q": "1"}])
def test_partition_values_of_other_columns_are_refused(tmp_path: Path, values: dict[str, str]) -> None:
    transaction = make_table(tmp_path).start_transaction().add({**add("a"), "partitionValues": values})
    with pytest.raises(SchemaError) as caught:
        transaction.commit("WRITE")
    assert caught.value.condition == "DELTA_ADD_FILE_PARTITIONING_MISMATCH"


def test_append_only_table_keeps_its_rows_but_lets_files_be_rearranged(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("f", 1)], configuration={"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError, match="only allow appends"):
        log.start_transaction().remove_live().commit("DELETE")
    rearranged = log.start_transaction().remove_live(data_change=False)
    assert rearranged.add(add("g", 1, dataChange=False)).commit("OPTIMIZE") == 1


def test_protocol_is_not_lowered_but_by_dropping_features(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=features(reader=["v2Checkpoint"]))
    with pytest.raises(UnsupportedOperationError, match="v2Checkpoint") as caught:
        log.start_transaction().set_protocol(LEGACY).commit("UPGRADE PROTOCOL")
    assert caught.value.condition == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    assert log.start_transaction().set_protocol(LEGACY).commit("DROP FEATURE") == 1


def test_writer_feature_that_is_unknown_is_refused_by_name(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=Protocol(1, 7, None, frozenset(["fromTheFuture"])))
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        log.start_transaction().add(add("a", 1)).commit("WRITE")


def test_domain_without_its_feature_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        make_table(tmp_path).start_transaction().set_domain_metadata("app.x", "{}").commit("Manual Update")
    assert caught.value.condition == "DELTA_DOMAIN_METADATA_NOT_SUPPORTED"


def test_second_metadata_or_domain_in_one_transaction_is_refused(tmp_path: Path) -> None:
    transaction = make_table(tmp_path).start_transaction().set_metadata(metadata({"a": "b"}))
    with pytest.raises(CommitFailedError, match="more than once"):
        transaction.set_metadata(metadata({"a": "c"}))
    with pytest.raises(CommitFailedError, match="two DomainMetadata"):
        transaction.set_domain_metadata("d", "1").set_domain_metadata("d", "1")


def test_scan_with_a_wrong_predicate_fails_while_recording_one_reads_everything(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("f", 1)])
    transaction = log.start_transaction()
    with pytest.raises(PredicateError):
        transaction.scan("no_such_column = 1")
    transaction.read_predicate("no_such_column = 1")
    write_commit(tmp_path, 1, [info(), {"add": add("b", 2)}])
    with pytest.raises(DeltaError, match="added data"):
        transaction.remove(remove("f", 1)).commit("DELETE")


def test_fields_that_are_not_set_are_left_out_but_null_partition_values_stay(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    log.start_transaction().add(add("ä", None, stats=None, tags=None)).commit("WRITE")
    raw = (tmp_path / "_delta_log" / f"{1:020d}.json").read_text().split("\n")[1]
    assert json.loads(raw)["add"] == add("ä", None)
    assert '"partitionValues":{"p":null}' in raw
    assert "ä" in raw
