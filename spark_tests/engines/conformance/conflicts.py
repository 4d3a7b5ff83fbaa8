"""Run recorded commit conflicts: a table, commits that won, a transaction that lost, and what came of it.

Source: `corpora/README.md`, the section on `conflicts`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException, DeltaError, UnsupportedFeatureError
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.transaction.transaction import Transaction

Case = dict[str, Any]

CREATED_MS = 1_700_000_000_000
KNOWN_KEYS = {
    "id", "family", "what", "table", "txn_a", "winner_b", "expect", "accept", "message_contains", "note",
    "expect_committed", "verified",
}  # fmt: skip
KNOWN_TABLE_KEYS = {
    "id", "schema", "partitionColumns", "protocol", "properties", "isolation", "files", "extraActions", "exists",
    "icts",
}  # fmt: skip
KNOWN_TRANSACTION_KEYS = {
    "reads", "read_txn_app_ids", "actions", "operation", "op_changes_data", "blind_append", "data_change", "raw",
}  # fmt: skip
KNOWN_READ_KEYS = {"predicate", "taint", "files", "partitions"}
KNOWN_COMMITTED_KEYS = {
    "version", "isolationLevel", "isBlindAppend", "adds", "removes", "rowIdHighWaterMark", "commit_tags",
    "inCommitTimestamp",
}  # fmt: skip
# Recorded classes that this package tells apart by their condition only.
_BY_CONDITION = {
    "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL": "DeltaTableFeatureException",
    "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL": "DeltaIllegalStateException",
}
_NEWER_CLIENT = ("InvalidProtocolVersionException", "DeltaUnsupportedTableFeatureException")


class NoConflictsError(Exception):
    """A file holds no cases."""


@dataclass(frozen=True, slots=True)
class ConflictVerdict:
    """What came out of one case; it has passed when there is no failure."""

    name: str
    what: str
    failure: str | None


def load_cases(files: Iterable[Path]) -> list[Case]:
    """The cases of some files.

    Raises
    ------
    NoConflictsError
        A file is missing, or is no list of cases.
    """
    found: list[Case] = []
    for file in files:
        try:
            cases = json.loads(Path(file).read_text())
        except (OSError, ValueError) as error:
            raise NoConflictsError(f"{file} cannot be read: {error}") from error
        if not isinstance(cases, list) or not cases or not all("txn_a" in case for case in cases):
            raise NoConflictsError(f"{file} is no list of conflict cases")
        found += cases
    return found


def run_case(case: Case) -> ConflictVerdict:
    """Build the table in a folder of its own, commit the winners, then the loser, and compare."""
    with tempfile.TemporaryDirectory(prefix="conflict-") as folder:
        try:
            failure = _run(case, Path(folder) / "table")
        except Exception as error:  # any error outside the commit under test is a finding
            failure = f"{type(error).__name__} outside the commit of txn_a: {error}"
    return ConflictVerdict(case["id"], case["what"], failure)


def run_cases(cases: Iterable[Case]) -> Iterator[ConflictVerdict]:
    return (run_case(case) for case in cases)


def _run(case: Case, folder: Path) -> str | None:
    winners = case["winner_b"] if isinstance(case["winner_b"], list) else [case["winner_b"]]
    unknown = _unknown_keys(case, [case["txn_a"], *winners])
    if unknown:
        return f"the case holds keys that are not compared: {sorted(unknown)}"
    _build(case["table"], folder)
    losing = _transaction(case["txn_a"], folder)
    for winner in winners:
        if _is_raw(winner):
            _write_lines(folder, len(list(folder.glob("_delta_log/*.json"))), winner["actions"])
        else:  # each sees the winners before it
            _commit(_transaction(winner, folder), winner)
    before = sorted(file.name for file in folder.glob("_delta_log/*.json"))
    try:
        version = _commit(losing, case["txn_a"])
    except DeltaError as error:
        after = sorted(file.name for file in folder.glob("_delta_log/*.json"))
        return _compare_error(case, error) or (f"wrote {after}" if after != before else None)
    return _compare_commit(case, folder, version)


def _unknown_keys(case: Case, transactions: list[Mapping[str, Any]]) -> set[str]:
    """What a case says that this yardstick would pass over."""
    unknown = (set(case) - KNOWN_KEYS) | (set(case["table"]) - KNOWN_TABLE_KEYS)
    for recorded in transactions:
        unknown |= set(recorded) - KNOWN_TRANSACTION_KEYS
        scans = recorded["reads"] if isinstance(recorded["reads"], list) else []
        unknown |= {key for scan in scans for key in scan} - KNOWN_READ_KEYS
    return unknown


def _is_raw(winner: Mapping[str, Any]) -> bool:
    return bool(winner.get("raw")) or winner.get("reads") == "unknown"


# --- the table


def _build(table: Mapping[str, Any], folder: Path) -> None:
    """Version 0, unless the case is about a table that is not there yet."""
    folder.mkdir(parents=True)
    if table.get("exists", True) is False:
        return
    configuration = dict(table.get("properties") or {})
    if table.get("isolation") is not None:
        configuration["delta.isolationLevel"] = table["isolation"]
    info: dict[str, Any] = {
        "timestamp": CREATED_MS, "operation": "WRITE", "operationParameters": {}, "isBlindAppend": True,
    }  # fmt: skip
    if table.get("icts"):
        info = {"inCommitTimestamp": CREATED_MS, **info}
    metadata = {
        "id": table["id"], "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(table["schema"]), "partitionColumns": table["partitionColumns"],
        "configuration": configuration, "createdTime": CREATED_MS,
    }  # fmt: skip
    lines = [{"commitInfo": info}, {"protocol": table["protocol"]}, {"metaData": metadata}]
    lines += [{"add": _add(file)} for file in table["files"]]
    _write_lines(folder, 0, [*lines, *(table.get("extraActions") or [])])


def _add(file: Mapping[str, Any]) -> dict[str, Any]:
    add = {"size": 1000, "modificationTime": CREATED_MS, "dataChange": True, **file}
    if isinstance(add.get("stats"), Mapping):
        add["stats"] = json.dumps(add["stats"])
    return {key: value for key, value in add.items() if value is not None}


def _write_lines(folder: Path, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True)
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text)


# --- transactions


def _transaction(recorded: Mapping[str, Any], folder: Path) -> Transaction:
    """What a transaction read and is going to commit, from the newest version."""
    transaction = DeltaLog(folder).start_transaction(create=True)
    reads = recorded["reads"]
    for read in reads if isinstance(reads, list) else []:
        _read(transaction, read)
    for app_id in recorded.get("read_txn_app_ids") or []:
        transaction.read_app_id(app_id)
    for action in recorded["actions"]:
        _act(transaction, action)
    return transaction


def _read(transaction: Transaction, read: Mapping[str, Any]) -> None:
    if "partitions" in read:
        transaction.read_partitions(read["partitions"])
    elif "files" in read:
        transaction.read_files(read["files"])
        transaction.read_predicate(read["predicate"])
    elif read.get("taint"):
        transaction.read_whole_table()
    else:
        transaction.scan(read["predicate"]).files()


def _act(transaction: Transaction, action: Mapping[str, Any]) -> None:
    ((name, body),) = action.items()
    if name == "add":
        transaction.add(body)
    elif name == "remove":
        transaction.remove(body)
    elif name == "cdc":
        transaction.cdc(body)
    elif name == "metaData":
        transaction.set_metadata(Metadata.from_action(body, "the case"))
    elif name == "protocol":
        transaction.set_protocol(Protocol.from_action(body, "the case"))
    elif name == "txn":
        transaction.set_txn(body["appId"], body["version"], body.get("lastUpdated"))
    elif name == "domainMetadata" and body.get("removed"):
        transaction.remove_domain_metadata(body["domain"])
    elif name == "domainMetadata":
        transaction.set_domain_metadata(body["domain"], body["configuration"])
    elif name != "commitInfo":
        raise ValueError(f"the case holds an action {name!r} that the yardstick does not know")


def _commit(transaction: Transaction, recorded: Mapping[str, Any]) -> int:
    return transaction.commit(
        recorded["operation"] or "Manual Update",
        changes_data=recorded.get("op_changes_data"),
        post_commit=False,
    )


# --- comparison


def outcome_of(error: DeltaError) -> str:
    """The recorded class that an error of ours stands for."""
    return _BY_CONDITION.get(error.condition, type(error).__name__)


def _compare_error(case: Case, error: DeltaError) -> str | None:
    accepted = [case["expect"], *(case.get("accept") or [])]
    outcome = outcome_of(error)
    newer = isinstance(error, UnsupportedFeatureError) and any(name in _NEWER_CLIENT for name in accepted)
    if outcome not in accepted and not newer:
        return f"{outcome} instead of {' or '.join(accepted)}: {error}"
    text = case.get("message_contains")
    for part in [text] if isinstance(text, str) else text or []:
        if outcome == case["expect"] and part not in str(error):
            return f"its message lacks {part!r}: {error}"
    if isinstance(error, DeltaConcurrentModificationException) and error.winning_version is None:
        return f"its error does not name the winning version: {error}"
    return None


def _compare_commit(case: Case, folder: Path, version: int) -> str | None:
    accepted = [case["expect"], *(case.get("accept") or [])]
    if "commit" not in accepted:
        return f"committed version {version} instead of {' or '.join(accepted)}"
    expected = case.get("expect_committed") if case["expect"] == "commit" else None
    if not expected:
        return None
    unknown = set(expected) - KNOWN_COMMITTED_KEYS
    if unknown:
        return f"expect_committed holds keys that are not compared: {sorted(unknown)}"
    actions = _read_lines(folder, version)
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    if len(infos) != 1 or "commitInfo" not in actions[0]:
        return "the first action is not the only commitInfo"
    if version != expected["version"]:
        return f"committed version {version} instead of {expected['version']}"
    info = infos[0]
    for key in ("isBlindAppend", "isolationLevel"):
        if key in expected and info.get(key) != expected[key]:
            return f"{key} is {info.get(key)!r} instead of {expected[key]!r}"
    return _compare_rebased(expected, actions, info, folder)


def _compare_rebased(
    expected: Mapping[str, Any], actions: list[dict[str, Any]], info: Mapping[str, Any], folder: Path
) -> str | None:
    for kind in ("add", "remove"):
        found = {action[kind]["path"]: action[kind] for action in actions if kind in action}
        wanted = expected.get(f"{kind}s")
        if wanted is None:
            continue
        values = {path: {key: body.get(key) for key in wanted.get(path, {})} for path, body in found.items()}
        if values != wanted:
            return f"{kind}s are {values} instead of {wanted}"
    if "rowIdHighWaterMark" in expected:
        domains = [a["domainMetadata"] for a in actions if "domainMetadata" in a]
        marks = [
            json.loads(d["configuration"]).get("rowIdHighWaterMark")
            for d in domains
            if d["domain"] == "delta.rowTracking"
        ]
        wanted_mark = expected["rowIdHighWaterMark"]
        if marks != ([] if wanted_mark is None else [wanted_mark]):
            return f"rowIdHighWaterMark is {marks} instead of {wanted_mark}"
    for key, value in (expected.get("commit_tags") or {}).items():
        if (info.get("tags") or {}).get(key) != value:
            return f"tags are {info.get('tags')} instead of {expected['commit_tags']}"
    return _compare_time(expected, info, folder)


def _compare_time(expected: Mapping[str, Any], info: Mapping[str, Any], folder: Path) -> str | None:
    if "inCommitTimestamp" not in expected:
        return None
    wanted, found = expected["inCommitTimestamp"], info.get("inCommitTimestamp")
    if wanted is None or isinstance(wanted, int):
        return None if found == wanted else f"inCommitTimestamp is {found} instead of {wanted}"
    won = _read_lines(folder, expected["version"] - 1)[0]["commitInfo"]["inCommitTimestamp"]
    if wanted != "greater than the winner's":
        return f"inCommitTimestamp {wanted!r} is not understood"
    return None if isinstance(found, int) and found > won else f"inCommitTimestamp {found} is not above {won}"


def _read_lines(folder: Path, version: int) -> list[dict[str, Any]]:
    text = (folder / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.split("\n") if line]
