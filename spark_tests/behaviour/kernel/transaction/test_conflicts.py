"""Errors of conflicts, and the checks that the recorded cases do not reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    CommitFailedError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    CorruptLogFileError,
    DeltaConcurrentModificationException,
    InvalidOptionError,
    MetadataChangedException,
    ProtocolChangedException,
    UnsupportedFeatureError,
)
from delta_ds.kernel.format.actions import Protocol
from spark_tests.behaviour.kernel.transaction.tables import (
    LEGACY,
    SERIALIZABLE,
    add,
    bodies,
    features,
    info,
    make_table,
    metadata,
    read_commit,
    remove,
    stats,
    write_commit,
)

VECTOR = {"storageType": "i", "pathOrInlineDv": "z", "sizeInBytes": 1, "cardinality": 1}
VECTORS = features(reader=["deletionVectors"])


def test_append_conflict_names_version_operation_partition_file_and_way_out(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("f", 1)])
    transaction = log.start_transaction()
    transaction.scan("P = 1")
    write_commit(tmp_path, 1, [info("MERGE"), {"add": add("p=1/new", 1)}])
    with pytest.raises(ConcurrentAppendException) as caught:
        transaction.remove(remove("f", 1)).commit("DELETE")
    error = caught.value
    assert error.condition == "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"
    assert (error.winning_version, error.winning_operation) == (1, "MERGE")
    assert error.parameters["partitionValues"] == "[p=1]"
    for part in (
        "MERGE",
        "version 1",
        str(tmp_path),
        "[p=1]",
        "'p=1/new'",
        "Nothing was written",
        "Run it again",
    ):
        assert part in error.text


def test_conflict_on_unpartitioned_table_has_no_hint_and_an_unnamed_winner_is_a_transaction(
    tmp_path: Path,
) -> None:
    log = make_table(tmp_path, partitioned=False)
    transaction = log.start_transaction()
    transaction.scan("id = 1")
    write_commit(tmp_path, 1, [{"add": add("new", partitioned=False)}])
    with pytest.raises(ConcurrentAppendException, match="concurrent TRANSACTION") as caught:
        transaction.add(add("mine", partitioned=False)).commit("MERGE")
    assert caught.value.condition == "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"
    assert caught.value.winning_operation is None


def test_statistics_let_pass_only_what_they_rule_out_and_only_when_asked_for(tmp_path: Path) -> None:
    log = make_table(tmp_path, configuration=SERIALIZABLE, partitioned=False)
    transactions = [log.start_transaction(use_statistics=s) for s in (True, True, False)]
    for transaction, predicate in zip(transactions, ("id < 5", "id < 50", "id < 5"), strict=True):
        transaction.scan(predicate)
    write_commit(tmp_path, 1, [info(blind=True), {"add": add("n", partitioned=False, stats=stats(10, 60))}])
    assert transactions[0].add(add("a", partitioned=False)).commit("MERGE") == 2
    for transaction in transactions[1:]:
        with pytest.raises(ConcurrentAppendException):
            transaction.add(add("b", partitioned=False)).commit("MERGE")


def test_file_without_statistics_is_never_let_pass_by_them(tmp_path: Path) -> None:
    log = make_table(tmp_path, configuration=SERIALIZABLE, partitioned=False)
    transaction = log.start_transaction(use_statistics=True)
    transaction.scan("id < 5")
    write_commit(tmp_path, 1, [info(blind=True), {"add": add("n", partitioned=False)}])
    with pytest.raises(ConcurrentAppendException):
        transaction.add(add("a", partitioned=False)).commit("MERGE")


@pytest.mark.parametrize(
    ("predicate", "conflicts"),
    [
        ("p = 2 AND some_udf(p)", False),
        ("p = 1 AND some_udf(p)", True),
        ("p = 2 OR some_udf(p)", True),
        ("NOT some_udf(p)", True),
        ("p = 2 AND (p = 1 OR rand() < 0.5)", False),
        ("p = 2 OR id = 7", True),
        ("p <=> NULL", False),
        ("p IN (1, 3)", True),
        ("1 / (p - 1) > 0", True),
    ],
)
def test_parts_that_cannot_be_evaluated_count_as_true(
    tmp_path: Path, predicate: str, conflicts: bool
) -> None:
    transaction = make_table(tmp_path).start_transaction()
    transaction.read_predicate(predicate)
    write_commit(tmp_path, 1, [info(), {"add": add("n", 1)}])
    transaction.add(add("a", 2))
    if conflicts:
        with pytest.raises(ConcurrentAppendException):
            transaction.commit("WRITE")
    else:
        assert transaction.commit("WRITE") == 2


@pytest.mark.parametrize("text", ["2024-01-01 00:00:00", "2024-01-01T00:00:00Z", "no moment"])
def test_partitions_compare_by_value_and_unclear_ones_conflict(tmp_path: Path, text: str) -> None:
    schema = '{"type":"struct","fields":[{"name":"p","type":"timestamp","nullable":true,"metadata":{}}]}'
    new = metadata(schema=schema).to_action()
    write = [{"protocol": LEGACY.to_action()}, {"metaData": new}]
    (tmp_path / "_delta_log").mkdir()
    write_commit(tmp_path, 0, write)
    log = DeltaLog(tmp_path)
    same, other = log.start_transaction(), log.start_transaction()
    same.read_partitions([{"p": "2024-01-01 00:00:00"}])
    other.read_partitions([{"p": "2024-01-02 00:00:00"}])
    write_commit(tmp_path, 1, [info(), {"add": {**add("n"), "partitionValues": {"p": text}}}])
    same.add({**add("a"), "partitionValues": {"p": None}})
    with pytest.raises(ConcurrentAppendException):
        same.commit("WRITE")
    other.add({**add("b"), "partitionValues": {"p": None}})
    if text == "2024-01-01 00:00:00":
        assert other.commit("WRITE") == 2
    else:
        with pytest.raises(ConcurrentAppendException):
            other.commit("WRITE")


def test_null_is_a_partition_of_its_own_in_a_dynamic_overwrite(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    transactions = [log.start_transaction() for _ in range(2)]
    transactions[0].read_partitions([{"p": None}])
    transactions[1].read_partitions([{"p": "1"}])
    write_commit(tmp_path, 1, [info(), {"add": add("n", None)}])
    with pytest.raises(ConcurrentAppendException, match=r"\[p=null\]"):
        transactions[0].add(add("a", None)).commit("WRITE")
    assert transactions[1].add(add("b", 1)).commit("WRITE") == 2


def test_deleted_read_and_double_delete_name_the_partition_of_the_file(tmp_path: Path) -> None:
    log = make_table(tmp_path, [add("f", 1), add("g", 2)])
    reading, removing, live = (log.start_transaction() for _ in range(3))
    reading.scan("p = 1")
    write_commit(tmp_path, 1, [info("DELETE"), {"remove": remove("f", 1)}])
    with pytest.raises(ConcurrentDeleteReadException) as read:
        reading.add(add("x", 2)).commit("MERGE")
    with pytest.raises(ConcurrentDeleteDeleteException) as twice:
        removing.remove(remove("f", 1)).commit("DELETE")
    with pytest.raises(ConcurrentDeleteDeleteException) as live_twice:
        live.remove_live().commit("DELETE")
    assert read.value.condition == "DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT"
    assert "[p=1]" in read.value.text
    for caught in (twice, live_twice):
        assert caught.value.condition == "DELTA_CONCURRENT_DELETE_DELETE.WITH_PARTITION_HINT"
        assert caught.value.parameters["file"] == "f"


def test_application_and_domain_conflicts_name_what_both_wrote(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=features("domainMetadata"))
    streaming, clustering = log.start_transaction(), log.start_transaction()
    assert streaming.read_app_id("query") is None
    clustering.set_domain_metadata("delta.clustering", "{}")
    domain = {"domain": "delta.clustering", "configuration": "{}", "removed": False}
    write_commit(tmp_path, 1, [info(), {"txn": {"appId": "query", "version": 7}}, {"domainMetadata": domain}])
    with pytest.raises(ConcurrentTransactionException, match="'query'"):
        streaming.set_txn("query", 7).commit("STREAMING UPDATE")
    with pytest.raises(
        ConcurrentTransactionException, match="conflicting metadata domain delta.clustering is added"
    ):
        clustering.commit("CLUSTER BY")
    assert log.start_transaction().read_app_id("query") == 7


def test_replaced_table_drops_the_clustering_that_somebody_just_added(tmp_path: Path) -> None:
    protocol = features("domainMetadata", "clustering")
    log = make_table(tmp_path, protocol=protocol)
    replacing = log.start_transaction().set_metadata(metadata())
    domain = {"domain": "delta.clustering", "configuration": "{}", "removed": False}
    write_commit(tmp_path, 1, [info("CLUSTER BY"), {"domainMetadata": domain}])
    replacing.commit("REPLACE TABLE")
    assert bodies(read_commit(tmp_path, 2), "domainMetadata") == [{**domain, "removed": True}]


def test_winner_that_drops_a_feature_or_needs_a_newer_client_stops_everybody(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=VECTORS)
    first, second = log.start_transaction().add(add("a")), log.start_transaction().add(add("b"))
    write_commit(tmp_path, 1, [info("DROP FEATURE", blind=True), {"protocol": LEGACY.to_action()}])
    with pytest.raises(ProtocolChangedException, match="deletionVectors"):
        first.commit("WRITE")
    newer = Protocol(
        3,
        7,
        frozenset(["deletionVectors", "fromTheFuture"]),
        frozenset(["fromTheFuture", *VECTORS.supported]),
    )
    write_commit(tmp_path, 1, [info("UPGRADE PROTOCOL", blind=True), {"protocol": newer.to_action()}])
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        second.commit("WRITE")


def test_protocol_of_the_winner_is_adopted_for_its_metadata(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    transaction = log.start_transaction().add(add("a", 1))
    new = metadata({"delta.enableDeletionVectors": "true"}).to_action()
    write_commit(tmp_path, 1, [info(blind=True), {"protocol": VECTORS.to_action()}, {"metaData": new}])
    assert transaction.commit("WRITE") == 2
    assert log.snapshot().protocol == VECTORS


@pytest.mark.parametrize(
    ("winner", "passes"),
    [
        ([{"add": add("x", 1)}], True),
        ([{"add": add("x", 1, deletionVector=VECTOR)}], False),
        ([{"metaData": metadata({"delta.enableDeletionVectors": "true"}).to_action()}], False),
    ],
)
def test_feature_is_dropped_only_if_the_winner_left_no_trace(
    tmp_path: Path, winner: list[dict[str, Any]], passes: bool
) -> None:
    log = make_table(tmp_path, protocol=VECTORS)
    dropping = log.start_transaction().set_protocol(LEGACY)
    write_commit(tmp_path, 1, [info(blind=True), *winner])
    if passes:
        assert dropping.commit("DROP FEATURE") == 2
        return
    with pytest.raises(DeltaConcurrentModificationException) as caught:
        dropping.commit("DROP FEATURE")
    assert caught.value.condition == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"


def test_protected_version_moves_along_with_the_commit(tmp_path: Path) -> None:
    key = "delta.requireCheckpointProtectionBeforeVersion"
    log = make_table(tmp_path, protocol=VECTORS)
    dropping = log.start_transaction().set_protocol(features("checkpointProtection"))
    dropping.set_metadata(metadata({key: "1"}))
    for version in (1, 2):
        write_commit(tmp_path, version, [info(blind=True), {"add": add(f"x{version}", 1)}])
    assert dropping.commit("DROP FEATURE") == 3
    (written,) = bodies(read_commit(tmp_path, 3), "metaData")
    assert written["configuration"] == {key: "3"}


@pytest.mark.parametrize("operation", ["WRITE", "OPTIMIZE"])
def test_metadata_conflict_says_what_changed(tmp_path: Path, operation: str) -> None:
    log = make_table(tmp_path)
    transaction = log.start_transaction().add(add("a", 1))
    write_commit(
        tmp_path, 1, [info("SET TBLPROPERTIES", blind=True), {"metaData": metadata({"k": "v"}).to_action()}]
    )
    with pytest.raises(MetadataChangedException, match="property k was set to 'v'"):
        transaction.commit(operation)


def test_tags_of_identity_columns_excuse_only_who_changes_no_metadata(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    appending, changing = log.start_transaction().add(add("a", 1)), log.start_transaction()
    changing.set_metadata(metadata({"x": "y"}))
    tagged = info(blind=True, tags={"delta.identity.schemaUpdate": "true"})
    write_commit(tmp_path, 1, [tagged, {"metaData": metadata({"mark": "9"}).to_action()}])
    assert appending.commit("WRITE") == 2
    with pytest.raises(MetadataChangedException):
        changing.commit("SET TBLPROPERTIES")


def test_unknown_isolation_level_in_the_table_is_refused(tmp_path: Path) -> None:
    log = make_table(tmp_path, configuration={"delta.isolationLevel": "ReadCommitted"})
    with pytest.raises(InvalidOptionError, match="ReadCommitted"):
        log.start_transaction().commit("WRITE")


@pytest.mark.parametrize("data", [b"", b'{"commitInfo":{"operation":"WR', b"[]\n"])
def test_winner_that_cannot_be_read_stops_the_commit(tmp_path: Path, data: bytes) -> None:
    transaction = make_table(tmp_path).start_transaction().add(add("a", 1))
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_bytes(data)
    with pytest.raises(CorruptLogFileError, match="00001.json"):
        transaction.commit("WRITE")


def test_preview_type_changes_name_the_version_they_end_up_in(tmp_path: Path) -> None:
    schema = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{"delta.typeChanges":'
        '[{"toType":"long","fromType":"integer","tableVersion":1},{"toType":"integer","fromType":"short",'
        '"tableVersion":0}]}},{"name":"p","type":"integer","nullable":true,"metadata":{}}]}'
    )
    log = make_table(tmp_path, protocol=features(reader=["typeWidening-preview"]))
    changing = log.start_transaction().set_metadata(metadata(schema=schema))
    write_commit(tmp_path, 1, [info(blind=True), {"add": add("a", 1)}])
    changing.commit("CHANGE COLUMN")
    (written,) = bodies(read_commit(tmp_path, 2), "metaData")
    assert written["schemaString"] == schema.replace('"tableVersion":1', '"tableVersion":2')


def test_failed_commit_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=features("rowTracking", "domainMetadata"))
    transaction = log.start_transaction().add(add("a", 1))
    with pytest.raises(CommitFailedError, match="numRecords"):
        transaction.commit("WRITE")
    assert [f.name for f in (tmp_path / "_delta_log").iterdir()] == [f"{0:020d}.json"]
