"""Storage that fails at any call of any command: committed rows are all there, or nothing, and the error says which.

Every command runs once as it should; then on copies of the same table, with one call of the storage failing in one of
the ways of `faulty_storage`. What is there afterwards is read by a storage that does not fail.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, UncertainWriteError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.convert_to_delta import convert_to_delta
from delta_ds.kernel.commands.drop_feature import drop_feature_support
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.commands.optimize.auto_compact import AutoCompaction, auto_compact
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import ZORDER, OptimizeRequest
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.commands.streaming.sink import commit_batch
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.log.cleanup import clean_up
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage import store_errors as backoff
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.uri import Address
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.kernel.transaction.write.intent import WriteTarget, newest_snapshot, stream_intent
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.kernel.transaction.write.task import write_rows
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.faulty_storage import KINDS, LOST, REFUSED, REPEATED, Fault, FaultyStorage
from spark_tests.faults.concurrency.row_model import DELETE, UPDATE, Command
from spark_tests.full_form import FULL

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
V2 = {"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"}
OFTEN = {"delta.checkpointInterval": "1"}
_SAMPLE = 12
_LATER = 4_000_000_000_000  # ms since 1970, when everything has expired

Rows = list[tuple[Any, ...]]


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "part": [i % 2 for i in ids], "value": [i * 10 for i in ids]}
    )


@dataclass(frozen=True)
class Case:
    """A command, and the table it runs on.

    Attributes
    ----------
    run
        The command, on the table.
    properties
        Of the table: three versions, six rows in three files.
    table
        Whether there is one, or only the folder.
    partitioned
        By `part`.
    forgets
        Whether it takes older versions away.
    gives_up
        Whether it ends well without a commit, where something fails.
    steps
        Whether it makes several commits, the first of which stand where a later one fails.
    leaves
        Whether it may leave files that no version names, where it fails.
    """

    run: Callable[[DeltaLog], object]
    properties: dict[str, str] = field(default_factory=dict)
    table: bool = True
    partitioned: bool = False
    forgets: bool = False
    gives_up: bool = False
    steps: bool = False
    leaves: bool = False


def append(log: DeltaLog) -> None:
    log.write(rows(7, 8))


def stream_batch(log: DeltaLog) -> None:
    data = rows(7, 8)
    intent = stream_intent({"path": log.storage.url}, "append")
    target = WriteTarget(intent, log.storage, newest_snapshot(log.storage))
    plan = plan_write(target, schema_from_arrow(data.schema))
    results = [write_rows(plan, data.to_batches())]
    try:
        commit_batch(plan, results, "q", 0)
    except UncertainWriteError as problem:
        try:
            commit_batch(plan, results, "q", 0)
        except DeltaError:
            raise problem from None


def z_order(log: DeltaLog) -> None:
    optimize(log, OptimizeRequest(kind=ZORDER, columns=("id", "value")), threads=1)


CASES = {
    "create": Case(append, {}, table=False),
    "append": Case(append),
    "append with checkpoint": Case(append, OFTEN),
    "append with V2 checkpoint": Case(append, {**OFTEN, **V2}),
    "append with manifests": Case(append, {"delta.compatibility.symlinkFormatManifest.enabled": "true"}),
    "append to partitions": Case(append, partitioned=True),
    "append, joined": Case(lambda log: log.write(rows(7, 8), options={"optimizeWrite": "true"}), partitioned=True),
    "overwrite": Case(lambda log: log.write(rows(7, 8), "overwrite")),
    "overwrite of partitions": Case(
        lambda log: log.write(rows(7), "overwrite", {"partitionOverwriteMode": "dynamic"}), partitioned=True
    ),
    "overwrite of rows": Case(
        lambda log: log.write(rows(7), "overwrite", {"replaceWhere": "id > 2 and id < 9"}), CHANGES
    ),
    "update that rewrites": Case(
        lambda log: row_commands.run(log, Command(UPDATE, modulus=2, rest=1), ""), CHANGES, partitioned=True
    ),
    "delete that marks": Case(lambda log: row_commands.run(log, Command(DELETE, modulus=2, rest=1), ""), VECTORS),
    "update that marks": Case(lambda log: row_commands.run(log, Command(UPDATE, modulus=2, rest=1), ""), VECTORS),
    "optimize": Case(lambda log: optimize(log, threads=1), OFTEN),
    "optimize along a curve": Case(z_order),
    "auto compaction": Case(
        lambda log: auto_compact(log, [{}], AutoCompaction(enabled=True, min_files=2)), gives_up=True
    ),
    "restore": Case(lambda log: restore(log, version=1)),
    "clone": Case(lambda log: shallow_clone(DeltaLog(source_of(log)), log), table=False),
    "convert": Case(convert_to_delta, table=False),
    "set properties": Case(lambda log: set_properties(log, {"delta.appendOnly": "true"})),
    "checkpoint": Case(lambda log: log.checkpoint()),
    "V2 checkpoint": Case(lambda log: log.checkpoint(), V2),
    "log clean-up": Case(lambda log: clean_up(log.storage, _LATER), {**OFTEN, **V2}, forgets=True),
    "vacuum": Case(lambda log: vacuum(log, now_ms=_LATER), VECTORS, forgets=True),
    "manifests": Case(lambda log: generate(log, "symlink_format_manifest"), partitioned=True, leaves=True),
    "drop feature": Case(
        lambda log: drop_feature_support(log, "columnMapping"), {"delta.columnMapping.mode": "name"}, steps=True
    ),
    "stream": Case(stream_batch, leaves=True),
}  # fmt: skip
# Long, or the same calls as another one: only in the full form.
_FULL_ONLY = (
    "append with manifests", "append to partitions", "update that marks", "append, joined", "overwrite", "drop feature",
)  # fmt: skip


def source_of(log: DeltaLog) -> Path:
    return Path(log.storage.url).parent / "source"


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_sleep", lambda seconds: None)
    monkeypatch.setenv("DELTA_DS_CACHE", "off")


class Template:
    """The folder before the command, and the versions that it leads to."""

    def __init__(self, case: Case, folder: Path, name: str) -> None:
        self._case, self._folder = case, folder
        made = DeltaLog(folder / ("table" if case.table else "source"))
        options = {"partitionBy": "part"} if case.partitioned else {}
        for number in range(3):
            made.write(
                rows(2 * number + 1, 2 * number + 2),
                options={**options, **(case.properties if not number else {})},
            )
        if name == "convert":
            (folder / "table").mkdir()
            pq.write_table(rows(1, 2), folder / "table" / "a.parquet")
        table, storage = self.copy()
        self.before = versions(table)
        case.run(DeltaLog(storage))
        self.after = versions(table)
        self.files = files(self.copy()[0])
        self.calls = storage.calls

    def copy(self, fault: Fault | None = None) -> tuple[Path, FaultyStorage]:
        table = self._folder / "copy"
        shutil.rmtree(table, ignore_errors=True)
        if (self._folder / "table").exists():
            shutil.copytree(self._folder / "table", table)
        return table, FaultyStorage(LocalStorage(Address("file", "", str(table))), fault)


def versions(table: Path, since: int = 0) -> dict[int, Rows]:
    """The rows of every version from one on; reading them opens every file that it names."""
    if not list((table / "_delta_log").glob("*.json")):
        return {}
    storage = LocalStorage(Address("file", "", str(table)))
    found = {}
    for version in sorted(version for version in list_log(storage).commits if version >= since):
        data = Scan(open_snapshot(storage, version)).to_arrow()
        found[version] = sorted(
            zip(*(data[name].to_pylist() for name in ("id", "part", "value")), strict=True)
        )
        for body in commit(table, version, "cdc"):
            assert (table / unquote(body["path"])).exists(), body
    return found


def commit(table: Path, version: int, name: str) -> list[dict[str, Any]]:
    lines = (table / f"_delta_log/{version:020}.json").read_text().splitlines()
    return [action[name] for action in map(json.loads, lines) if name in action]


def files(table: Path) -> set[str]:
    """What lies beside the log."""
    found = (path for path in table.rglob("*") if path.is_file())
    return {str(path.relative_to(table)) for path in found if "_delta_log" not in path.parts}


def check_checkpoints(table: Path) -> None:
    """Whoever takes the newest checkpoint that is visible can read it."""
    for path in (table / "_delta_log").glob("*.checkpoint*.parquet"):
        found = pq.read_table(path)
        sidecars = found["sidecar"].drop_null().to_pylist() if "sidecar" in found.column_names else []
        for sidecar in sidecars:
            assert pq.read_metadata(table / "_delta_log/_sidecars" / sidecar["path"]).num_rows


def faults(template: Template, name: str) -> Iterator[Fault]:
    """Every call in every way; a sample of them but for those that publish, unless in the full form."""
    every = [Fault(index, kind) for index in range(len(template.calls)) for kind in KINDS]
    every = [fault for fault in every if fault.kind != REPEATED or template.calls[fault.index][0] == "create"]
    if FULL:
        yield from every
        return
    publishing = [
        index
        for index, (_, path) in enumerate(template.calls)
        if is_published(template.calls[index][0], path)
    ]
    yield from (fault for fault in every if fault.index in publishing)
    others = [fault for fault in every if fault.index not in publishing]
    yield from random.Random(name).sample(others, min(_SAMPLE, len(others)))


def is_published(call: str, path: str) -> bool:
    return call == "create" and path.endswith(".json") or (call == "replace" and "_sidecars" not in path)


@pytest.mark.parametrize("name", [name for name in CASES if FULL or name not in _FULL_ONLY])
def test_a_call_that_fails_leaves_all_of_a_commit_or_nothing_and_the_error_says_which(
    name: str, tmp_path: Path
) -> None:
    case = CASES[name]
    template = Template(case, tmp_path, name)
    assert template.calls
    for fault in faults(template, name):
        table, storage = template.copy(fault)
        problem: BaseException | None = None
        try:
            case.run(DeltaLog(storage))
        except (DeltaError, KeyboardInterrupt) as error:
            problem = error
        where = (fault, template.calls[fault.index], problem)
        check(case, template, table, fault, problem, where)


def check(
    case: Case, template: Template, table: Path, fault: Fault, problem: BaseException | None, where: object
) -> None:
    base = max(template.before, default=-1)
    found = versions(table, base)
    check_checkpoints(table)
    if case.forgets:
        assert found[max(found)] == template.before[base], where
        return
    assert template.files <= files(table), where
    # A version is that of the command as it should be, or not there.
    latest = max(found, default=-1)
    assert case.steps or latest in (base, max(template.after)), where
    assert all(found[version] == template.after[version] for version in found), where
    if problem is None and not case.gives_up:
        assert latest == max(template.after), where
    if isinstance(problem, DeltaError) and not isinstance(problem, UncertainWriteError):
        assert case.steps or latest == base, where
        deletes = template.calls[fault.index][0] == "delete"
        if fault.kind in (REFUSED, LOST) and not deletes and not case.leaves and latest == base:
            left = files(table) - template.files
            assert not left, (where, left)
