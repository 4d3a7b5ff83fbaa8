"""Every command of the kernel and of the command line, each as a function of a table's folder.

A command may end with an answer or with a `DeltaError`: `attempt` lets nothing else pass.
"""

from __future__ import annotations

import contextlib
import io
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.cli.ui.endpoints import answer
from delta_ds.cli.ui.view import TableView
from delta_ds.exceptions import DeltaError, UncertainWriteError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.compute_statistics import compute_statistics
from delta_ds.kernel.commands.convert_to_delta import convert_to_delta
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.dml.candidates import candidate_files
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, FILE, ROW, UPDATE
from delta_ds.kernel.commands.dml.commit import DmlCommand, commit_dml
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_changed_files
from delta_ds.kernel.commands.dml.plan import plan_dml, plan_file_rewrite
from delta_ds.kernel.commands.drop_feature import drop_feature_support
from delta_ds.kernel.commands.fsck import check
from delta_ds.kernel.commands.health import health
from delta_ds.kernel.commands.maintain import generate, maintain
from delta_ds.kernel.commands.optimize.auto_compact import auto_compact
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.commands.streaming.sink import commit_batch
from delta_ds.kernel.commands.streaming.source import StreamSource
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.options.stream_read import parse_stream_read_options
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from delta_ds.kernel.transaction.alter.columns import add_columns, drop_columns, rename_column
from delta_ds.kernel.transaction.alter.definitions import add_constraint, drop_constraint
from delta_ds.kernel.transaction.alter.properties import (
    add_feature_support,
    set_properties,
    unset_properties,
    upgrade_table_protocol,
)
from delta_ds.kernel.transaction.alter.schema_change import replace_columns
from delta_ds.kernel.transaction.write.intent import WriteTarget, newest_snapshot, stream_intent
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.kernel.transaction.write.task import write_rows
from spark_tests.behaviour.cli.commands import COMMAND_LINES, command_line
from spark_tests.faults.corrupted.damage import copied

Command = Callable[[Path], Any]
# Rounds of a stream that is followed.
_BATCHES = 20
SECONDS = 180


_ROWS = pa.table({"id": pa.array([900], pa.int64()), "part": pa.nulls(1, pa.date32())})


def _scan(path: Path, predicate: str | None = None, **how: Any) -> Any:
    found = DeltaLog(path).snapshot().scan(predicate, **how)
    return found.explain(), found.slices(), found.to_arrow()


def _figures(path: Path) -> Any:
    snapshot = DeltaLog(path).snapshot()
    scan = snapshot.scan()
    return scan.count(), scan.min("id"), scan.max("id"), scan.min("part"), snapshot.scan("id > 2").count()


def _state(path: Path) -> Any:
    snapshot = DeltaLog(path).snapshot()
    facts = (snapshot.txns, snapshot.domains, snapshot.clustering_columns, snapshot.properties)
    return snapshot.metadata.schema, repr(snapshot), snapshot._repr_html_(), snapshot.timestamp, facts


def _update(path: Path) -> int:
    """The parts of UPDATE and MERGE that the kernel does: rewrite a row of a file."""
    snapshot = DeltaLog(path).open_snapshot()
    files = candidate_files(snapshot, None, "UTC")
    plan = plan_file_rewrite(snapshot, plan_dml(snapshot), files, (UPDATE,))
    count = min(1, len(plan.files))
    batch = pa.RecordBatch.from_pydict(
        {
            FILE: pa.array([0] * count, pa.int32()), ROW: pa.array([0] * count, pa.int64()),
            CLAUSE: pa.array([0] * count, pa.int32()), "id": pa.array([77] * count, pa.int64()),
        }
    )  # fmt: skip
    found = rewrite_changed_files(plan, [batch])
    deleted = {plan.files[number].path: places for number, places in found.positions.items()}
    removed = [] if deleted else [plan.files[number].path for number in found.files]
    return commit_dml(
        snapshot,
        DmlCommand("UPDATE", removed=removed, deleted=deleted, results=[found.result], plan=plan.change),
    ).version


def _follow(path: Path, **options: str) -> list[Any]:
    """A stream of the table, to its end."""
    log = DeltaLog(path)
    source = StreamSource.open(log.storage, parse_stream_read_options({"path": str(path), **options}))
    at, found = source.initial_offset(), []
    for _ in range(_BATCHES):
        end = source.latest_offset(at, None)
        if end == at:
            break
        plan, slices = source.tasks(at, end)
        found += [batch.num_rows for batch in read_slices(source.storage, plan, slices)]
        at = end
    return found


def _sink(path: Path) -> int | None:
    log, data = DeltaLog(path), _ROWS
    intent = stream_intent({"path": str(path)}, "append")
    target = WriteTarget(intent, log.storage, newest_snapshot(log.storage))
    plan = plan_write(target, schema_from_arrow(data.schema))
    return commit_batch(plan, [write_rows(plan, data.to_batches())], "query", 3)


def _clone(path: Path, command: Callable[..., Any], **how: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="clone-") as scratch:
        target = DeltaLog(f"{scratch}/clone")
        return command(DeltaLog(path), target, **how), target.snapshot().scan().to_arrow()


def _convert(path: Path) -> Any:
    """The data files of the table as a folder of Parquet files."""
    with tempfile.TemporaryDirectory(prefix="convert-") as scratch:
        for number, file in enumerate(sorted(path.rglob("*.parquet"))):
            if "_delta_log" not in file.parts and file.is_file():
                Path(scratch, f"{number}.parquet").write_bytes(file.read_bytes())
        return convert_to_delta(DeltaLog(scratch)), DeltaLog(scratch).snapshot().scan().to_arrow()


def _change_all_properties(path: Path) -> int:
    return set_properties(DeltaLog(path), {"delta.logRetentionDuration": "interval 9 days", "own": "1"})


_NEW_COLUMN = StructType((StructField("fresh", LONG),))
_PAGES = (
    ("table", ""), ("timeline", ""), ("commit", "version={}"), ("partitions", "version={}"), ("files", "version={}"),
    ("files", "version={}&where=id>2&kept=yes"), ("filter", "version={}&where=id>2"), ("columns", "version={}"),
    ("ranges", "version={}&column=id"), ("health", ""), ("rows", "version={}"), ("rows", "version={}&where=id>2"),
)  # fmt: skip


def _page(path: Path, name: str, query: str) -> Any:
    log = DeltaLog(path)
    return answer(TableView(log, "UTC", None), name, query.format(log.snapshot().version))


def _pydelta(path: Path, name: str, *more: str) -> Any:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*command_line(name, path), *more])
    # Keys that are not unique are told as a wrong command line.
    if "Traceback" in err.getvalue() or status not in ((0, 1, 2, 3) if name == "diff" else (0, 1, 3)):
        raise AssertionError(f"pydelta {name} ended with {status}: {err.getvalue()}")
    if status > 1:
        found = re.search(r"\[([A-Z_.0-9]+)\]|\"condition\": \"(.*?)\"", err.getvalue())
        raise DeltaError(err.getvalue(), condition=found[1] or found[2] if found else None)
    return out.getvalue()


READING: dict[str, Command] = {
    "state": _state,
    "detail": lambda path: DeltaLog(path).snapshot().detail(),
    "files": lambda path: DeltaLog(path).snapshot().files().to_pylist(),
    "files of a filter": lambda path: DeltaLog(path).snapshot().files("id > 2").to_pylist(),
    "an older version": lambda path: DeltaLog(path).snapshot(version=2).scan().to_arrow(),
    "a timestamp": lambda path: DeltaLog(path).snapshot(timestamp=1_700_000_000_002),
    "scan": lambda path: _scan(path),
    "scan of metadata columns": lambda path: _scan(
        path, metadata_columns=("file_path", "row_id", "row_commit_version")
    ),
    "scan of a filter": lambda path: _scan(path, "id > 2 and part >= date'2024-01-02'"),
    "scan of a struct": lambda path: _scan(path, "s.t = 'x' or part is null", columns=["id"]),
    "figures": _figures,
    "history": lambda path: (DeltaLog(path).history(), repr(DeltaLog(path).history())),
    "timeline": lambda path: (DeltaLog(path).timeline(), DeltaLog(path).snapshot().timeline()),
    "plot": lambda path: DeltaLog(path).plot.history(),
    "plot of skipping": lambda path: DeltaLog(path).plot.skipping("id > 2"),
    "changes": lambda path: DeltaLog(path).changes(1).to_arrow(),
    "changes by time": lambda path: (
        DeltaLog(path).changes(1, starting_timestamp=1_700_000_000_002).to_arrow()
    ),
    "net changes": lambda path: DeltaLog(path).changes(1, net="net", keys=["id"]).to_arrow(),
    "blame": lambda path: DeltaLog(path).blame().to_arrow(),
    "layout": lambda path: DeltaLog(path).snapshot().column_layout("id"),
    "health": lambda path: health(DeltaLog(path)),
    "fsck": lambda path: list(check(DeltaLog(path))),
    "fsck of contents": lambda path: list(check(DeltaLog(path), contents=True)),
    "vacuum, dry": lambda path: vacuum(DeltaLog(path), dry_run=True),
    "vacuum lite, dry": lambda path: vacuum(DeltaLog(path), mode="lite", dry_run=True),
    "maintain, dry": lambda path: maintain(DeltaLog(path), vacuum=True, dry_run=True),
    "stream": lambda path: _follow(path),
    "stream from a version": lambda path: _follow(path, startingVersion="1", ignoreChanges="true"),
    "stream of changes": lambda path: _follow(path, startingVersion="1", readChangeFeed="true"),
    "shallow clone": lambda path: _clone(path, shallow_clone),
    "deep clone": lambda path: _clone(path, deep_clone),
    "deep clone of a version": lambda path: _clone(path, deep_clone, version=3),
    "convert": _convert,
    **{
        f"page {name}?{query}": lambda path, name=name, query=query: _page(path, name, query)
        for name, query in _PAGES
    },
    **{
        f"pydelta {name} {' '.join(more)}": lambda path, name=name, more=more: _pydelta(path, name, *more)
        for name in sorted(set(COMMAND_LINES) - {"ui", "bench"})
        for more in ((), ("--json",))
        if name not in ("checkpoint", "vacuum", "restore", "maintain")
    },
}

# What leaves the rows of the newest version as they are.
KEEPING: dict[str, Command] = {
    "checkpoint": lambda path: DeltaLog(path).checkpoint(),
    "optimize": lambda path: optimize(DeltaLog(path)),
    "optimize, all anew": lambda path: optimize(DeltaLog(path), OptimizeRequest("full")),
    "z-order": lambda path: optimize(DeltaLog(path), OptimizeRequest("zorder", columns=("id",))),
    "purge": lambda path: optimize(DeltaLog(path), OptimizeRequest("purge")),
    "auto compaction": lambda path: auto_compact(DeltaLog(path), [{"part": "2024-01-04"}]),
    "vacuum": lambda path: vacuum(DeltaLog(path), 0, retention_check=False),
    "vacuum lite": lambda path: vacuum(DeltaLog(path), 0, mode="lite", retention_check=False),
    "restore to itself": lambda path: restore(DeltaLog(path), version=DeltaLog(path).snapshot().version),
    "manifest": lambda path: generate(DeltaLog(path), "symlink_format_manifest"),
    "statistics": lambda path: compute_statistics(DeltaLog(path)),
    "maintain": lambda path: maintain(DeltaLog(path), vacuum=True),
    "properties": _change_all_properties,
    "unset": lambda path: unset_properties(DeltaLog(path), ["delta.enableChangeDataFeed"]),
    "constraint": lambda path: add_constraint(DeltaLog(path), "known", "id is not null", lambda text: None),
    "no constraint": lambda path: drop_constraint(DeltaLog(path), "positive", if_exists=True),
    "comment": lambda path: alter_column(DeltaLog(path), "id", comment="number"),
    "order of columns": lambda path: alter_column(DeltaLog(path), "s", first=True),
    "cluster": lambda path: cluster_by(DeltaLog(path), ["s.t"]),
    "protocol": lambda path: upgrade_table_protocol(DeltaLog(path), 3, 7),
    "feature": lambda path: add_feature_support(DeltaLog(path), "vacuumProtocolCheck"),
    "feature away": lambda path: drop_feature_support(DeltaLog(path), "deletionVectors"),
    "feature and history away": lambda path: drop_feature_support(DeltaLog(path), "v2Checkpoint", True),
    **{
        f"pydelta {name}": lambda path, name=name: _pydelta(path, name)
        for name in ("checkpoint", "vacuum", "maintain")
    },
}

CHANGING: dict[str, Command] = {
    "append": lambda path: DeltaLog(path).write(_ROWS),
    "append of a new column": lambda path: DeltaLog(path).write(
        _ROWS.append_column("fresh", pa.array([1])), options={"mergeSchema": "true"}
    ),
    "overwrite": lambda path: DeltaLog(path).write(_ROWS, mode="overwrite"),
    "overwrite of rows": lambda path: DeltaLog(path).write(
        _ROWS, mode="overwrite", options={"replaceWhere": "id = 900 or id = 2"}
    ),
    "overwrite of the schema": lambda path: DeltaLog(path).write(
        pa.table({"x": [1]}), mode="overwrite", options={"overwriteSchema": "true"}
    ),
    "delete": lambda path: delete(DeltaLog(path), "id = 4"),
    "delete of partitions": lambda path: delete(DeltaLog(path), "part = date'2024-01-04'"),
    "delete of all": lambda path: delete(DeltaLog(path)),
    "update": _update,
    "batch of a stream": _sink,
    "transaction": lambda path: DeltaLog(path).start_transaction().remove_live().commit("DELETE"),
    "restore": lambda path: restore(DeltaLog(path), version=2),
    "restore of what is left": lambda path: restore(DeltaLog(path), version=3, ignore_missing_files=True),
    "columns": lambda path: add_columns(DeltaLog(path), _NEW_COLUMN),
    "column away": lambda path: drop_columns(DeltaLog(path), ["s"]),
    "column renamed": lambda path: rename_column(DeltaLog(path), "id", "key"),
    "columns replaced": lambda path: replace_columns(DeltaLog(path), _NEW_COLUMN),
    "pydelta restore": lambda path: _pydelta(path, "restore"),
}
EVERY: dict[str, Command] = {**READING, **KEEPING, **CHANGING}
# More than one commit each, so that those before a failure stay.
_OF_SEVERAL_COMMITS = (
    "statistics",
    "maintain",
    "pydelta maintain",
    "feature away",
    "feature and history away",
)


class Outcome:
    """What became of a command: its answer, or its error."""

    def __init__(self, answer: Any = None, error: DeltaError | None = None) -> None:
        self.answer, self.error = answer, error

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}({self.error})" if self.error else repr(self.answer)


def attempt(name: str, path: Path) -> Outcome:
    """Run a command on a table.

    Raises
    ------
    Exception
        It ended with what is no `DeltaError`, took too long, or failed and left a commit.
    """
    before = _commits(path)
    with bounded(name):
        try:
            return Outcome(EVERY[name](path))
        except DeltaError as error:
            outcome = Outcome(error=error)
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    if name not in _OF_SEVERAL_COMMITS and not isinstance(outcome.error, UncertainWriteError):
        assert _commits(path) == before, f"{name} failed and left a commit: {outcome}"
    return outcome


def attempt_all(path: Path, names: Mapping[str, Command] | list[str] = EVERY) -> dict[str, Outcome]:
    """Run commands, each on a table as it is now: those that write get copies."""
    found = {}
    for name in names:
        if name in READING:
            found[name] = attempt(name, path)
        else:
            with tempfile.TemporaryDirectory(prefix="every-") as scratch:
                found[name] = attempt(name, copied(path, Path(scratch) / "table"))
    return found


def _commits(path: Path) -> list[str]:
    log = path / "_delta_log"
    return sorted(each.name for each in log.glob("????????????????????.json")) if log.is_dir() else []


@contextlib.contextmanager
def bounded(what: str, seconds: int = SECONDS) -> Iterator[None]:
    """An end to hanging: what takes longer fails."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"{what}: no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def rows_of(path: Path) -> list[str]:
    """The rows of the newest version as texts, in an order of their own, as are their columns."""
    found = DeltaLog(path).snapshot().scan().to_arrow().to_pylist()
    return sorted(repr(sorted(row.items())) for row in found)
