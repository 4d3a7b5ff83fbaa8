"""An independent model of the decision table agrees with the transaction, on random tables, reads and winners.

Source: conflict-matrix sections 1 to 5; kept apart from the code under test on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import DeltaConcurrentModificationException
from spark_tests.behaviour.kernel.transaction.tables import (
    LEGACY,
    add,
    features,
    info,
    make_table,
    metadata,
    read_commit,
    remove,
    stats,
    write_commit,
)
from spark_tests.full_form import examples

FILES = {"f0": 1, "f1": 1, "f2": 2, "f3": None}
# What a predicate keeps of a partition; predicates on data keep everything.
PREDICATES: dict[str | None, Any] = {
    None: lambda p: True, "id = 5": lambda p: True, "p = 1": lambda p: p == 1, "p >= 2": lambda p: p == 2,
    "p IS NULL": lambda p: p is None, "NOT p = 1": lambda p: p == 2, "p = 1 AND id > 3": lambda p: p == 1,
    "p = 1 OR id > 3": lambda p: True, "p = 9": lambda p: False, "FALSE": lambda p: False,
}  # fmt: skip
# The smallest and largest id of a file that is added, and what is known of it where statistics count; of a column
# that is no partition column nothing is known here but of `id`.
RANGES: tuple[tuple[int, int] | None, ...] = (None, (0, 3), (5, 5), (4, 9))
BY_IDS: dict[str | None, Any] = {
    "id = 5": lambda low, high: low <= 5 <= high, "p = 1 AND id > 3": lambda low, high: high > 3,
}  # fmt: skip


@dataclass
class Side:
    """What one transaction, or one commit on disk, does."""

    scans: list[str | None] = field(default_factory=list)
    taint: bool = False
    files: list[str] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)
    app_reads: set[str] = field(default_factory=set)
    apps: set[str] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)
    adds: list[int | None] = field(default_factory=list)
    ids: tuple[int, int] | None = None
    removes: set[str] = field(default_factory=set)
    data_change: bool = True
    metadata: dict[str, str] | None = None
    protocol: bool = False
    operation: str = "WRITE"
    claims: bool | None = None


def partition_of(path: str, partitioned: bool) -> int | None:
    return FILES[path] if partitioned else None


def is_blind(side: Side) -> bool:
    reads = side.scans or side.taint or side.files or side.partitions
    return not side.removes and not reads


def level_of(side: Side, table: str) -> str:
    others = side.metadata is not None or side.protocol or side.apps or side.domains
    changed = side.data_change and (side.adds or side.removes)
    if others or changed:
        return table
    if table == "Serializable" or side.operation == "OPTIMIZE":
        return "SnapshotIsolation"
    return table


def may_hold(
    scan: str | None, p: int | None, ids: tuple[int, int] | None, partitioned: bool, statistics: bool
) -> bool:
    """Whether a file can hold rows that a scan looked for, by what the scan's transaction goes by."""
    if scan == "FALSE":
        return not partitioned and not statistics
    kept = PREDICATES[scan](p) if partitioned else True
    if not statistics or ids is None:
        return bool(kept)
    if scan == "p = 1 OR id > 3":
        return not partitioned or p == 1 or ids[1] > 3
    return bool(kept) and (scan not in BY_IDS or BY_IDS[scan](*ids))


def predicted(
    loser: Side, winners: list[Side], table: str, partitioned: bool, domains: bool, statistics: bool
) -> str:
    for winner in winners:
        outcome = predicted_one(loser, winner, level_of(loser, table), partitioned, domains, statistics)
        if outcome != "commit":
            return outcome
    return "commit"


def predicted_one(
    loser: Side, winner: Side, level: str, partitioned: bool, domains: bool, statistics: bool
) -> str:
    if winner.protocol and loser.protocol:
        return "ProtocolChangedException"
    if winner.metadata is not None and (loser.metadata is not None or winner.metadata):
        return "MetadataChangedException"
    if domains and loser.domains & winner.domains:
        return "ConcurrentTransactionException"
    if loser.app_reads & winner.apps:
        return "ConcurrentTransactionException"
    candidates = list(winner.adds)
    tolerant = level == "WriteSerializable" and loser.metadata is None
    if level == "SnapshotIsolation" or (tolerant and winner.claims):
        candidates = []
    if candidates and not is_blind(loser):
        by_predicates = partitioned or (statistics and loser.scans)
        if loser.taint or not by_predicates:
            return "ConcurrentAppendException"
        for p in candidates:
            found = any(may_hold(scan, p, winner.ids, partitioned, statistics) for scan in loser.scans)
            if found or p in loser.partitions:
                return "ConcurrentAppendException"
    read = set(loser.files)
    for scan in loser.scans:
        read |= {f for f in FILES if not partitioned or PREDICATES[scan](FILES[f])}
    # Without partitions only FALSE and nothing else skips files: there are no statistics.
    if not partitioned:
        read = set(loser.files) | (set(FILES) if any(s != "FALSE" for s in loser.scans) else set())
    if winner.removes & read or (winner.removes and loser.taint):
        return "ConcurrentDeleteReadException"
    if winner.removes & loser.removes:
        return "ConcurrentDeleteDeleteException"
    return "commit"


_PARTITION = st.sampled_from([1, 2, None])


def sides(raw: bool) -> st.SearchStrategy[Side]:
    some = st.sets(st.sampled_from(["x", "y"]), max_size=1)
    rarely = st.sampled_from([False] * 7 + [True])
    return st.builds(
        Side,
        scans=st.just([]) if raw else st.lists(st.sampled_from(list(PREDICATES)), max_size=2),
        taint=st.just(False) if raw else st.sampled_from([False, False, True]),
        files=st.just([]) if raw else st.lists(st.sampled_from(list(FILES)), max_size=1),
        partitions=st.just([]) if raw else st.lists(_PARTITION, max_size=1),
        app_reads=st.just(set()) if raw else some,
        apps=some,
        domains=some,
        adds=st.lists(_PARTITION, max_size=2),
        ids=st.sampled_from(RANGES),
        removes=st.sets(st.sampled_from(list(FILES)), max_size=2),
        data_change=st.booleans(),
        metadata=st.sampled_from([None] * 5 + [{}, {"k": "v"}]),
        protocol=rarely,
        operation=st.sampled_from(["WRITE", "OPTIMIZE"]),
        claims=st.sampled_from([True, False, None]),
    )


def blindly(side: Side) -> Side:
    """The same without reads and removes, which chance alone makes too seldom."""
    return replace(side, scans=[], taint=False, files=[], partitions=[], removes=set())


@settings(max_examples=examples(250), deadline=None)
@given(
    loser=st.one_of(sides(raw=False), sides(raw=False).map(blindly)),
    winners=st.lists(sides(raw=True), min_size=1, max_size=2),
    table=st.sampled_from(["Serializable", "WriteSerializable"]), partitioned=st.booleans(), domains=st.booleans(),
    statistics=st.booleans(),
)  # fmt: skip
def test_model_and_transaction_agree(
    tmp_path_factory: pytest.TempPathFactory,
    loser: Side, winners: list[Side], table: str, partitioned: bool, domains: bool,
    statistics: bool,
) -> None:  # fmt: skip
    if not domains:
        for side in (loser, *winners):
            side.domains = set()
    if not partitioned:
        loser.partitions = []
    path = tmp_path_factory.mktemp("table")
    protocol = features("domainMetadata") if domains else LEGACY
    level = {"delta.isolationLevel": table}
    files = [add(f, p if partitioned else None, partitioned=partitioned) for f, p in FILES.items()]
    log = make_table(path, files, configuration=level, partitioned=partitioned, protocol=protocol)
    transaction = _start(log, loser, partitioned, level, protocol, statistics)
    for number, winner in enumerate(winners):
        write_commit(path, number + 1, _actions(winner, number, partitioned, level, protocol))
    expected = predicted(loser, winners, table, partitioned, domains, statistics)
    try:
        version = transaction.commit(loser.operation, post_commit=False)
    except DeltaConcurrentModificationException as error:
        assert type(error).__name__ == expected
        assert not (path / "_delta_log" / f"{len(winners) + 1:020d}.json").exists()
        return
    assert expected == "commit"
    assert version == len(winners) + 1
    written = read_commit(path, version)[0]["commitInfo"]
    assert (written["isBlindAppend"], written["isolationLevel"]) == (is_blind(loser), level_of(loser, table))


def _start(
    log: Any, side: Side, partitioned: bool, level: dict[str, str], protocol: Any, statistics: bool
) -> Any:
    transaction = log.start_transaction(use_statistics=statistics)
    for scan in side.scans:
        transaction.scan(scan)
    if side.taint:
        transaction.read_whole_table()
    transaction.read_files(side.files)
    if side.partitions:
        transaction.read_partitions([{"p": None if p is None else f"0{p}"} for p in side.partitions])
    for app in side.app_reads:
        transaction.read_app_id(app)
    for action in _actions(side, "mine", partitioned, level, protocol)[1:]:
        ((name, body),) = action.items()
        if name == "metaData":
            transaction.set_metadata(metadata(body["configuration"], partitioned))
        elif name == "protocol":
            transaction.set_protocol(protocol)
        elif name == "txn":
            transaction.set_txn(body["appId"], body["version"])
        elif name == "domainMetadata":
            transaction.set_domain_metadata(body["domain"], body["configuration"])
        else:
            getattr(transaction, name)(body)
    return transaction


def _actions(side: Side, mark: Any, partitioned: bool, level: dict[str, str], protocol: Any) -> list[Any]:
    change = {"dataChange": side.data_change}
    actions: list[Any] = [info(side.operation, blind=side.claims)]
    if side.protocol:
        actions.append({"protocol": protocol.to_action()})
    if side.metadata is not None:
        actions.append({"metaData": metadata({**level, **side.metadata}, partitioned).to_action()})
    actions += [{"txn": {"appId": app, "version": 1}} for app in sorted(side.apps)]
    actions += [
        {"domainMetadata": {"domain": domain, "configuration": "{}", "removed": False}}
        for domain in sorted(side.domains)
    ]
    actions += [{"remove": remove(f, partition_of(f, partitioned), **change)} for f in sorted(side.removes)]
    known = {} if side.ids is None else {"stats": stats(*side.ids)}
    actions += [
        {"add": add(f"{mark}-{n}", p if partitioned else None, partitioned=partitioned, **change, **known)}
        for n, p in enumerate(side.adds)
    ]
    return actions
