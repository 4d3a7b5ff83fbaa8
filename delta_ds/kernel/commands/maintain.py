"""Maintenance: run the commands that `health` finds due, in the order in which each leaves least to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from delta_ds.conditions.commands import MODE_NOT_SUPPORTED
from delta_ds.conditions.coordination import MAINTENANCE_NOT_ALLOWED
from delta_ds.conditions.iceberg import GENERATE_WITHOUT_UNIVERSAL_FORMAT
from delta_ds.exceptions import DeltaConcurrentModificationException, UnsupportedOperationError
from delta_ds.kernel.base.card import visible
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.commands.compute_statistics import compute_statistics
from delta_ds.kernel.commands.health import CHECKPOINT, STATISTICS, VACUUM, Due, Health, health_of
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import PURGE, OptimizeRequest
from delta_ds.kernel.commands.vacuum.command import vacuum as delete_files
from delta_ds.kernel.format.iceberg_compatibility import ICEBERG, writes_metadata
from delta_ds.kernel.format.operations import OPTIMIZE, REORG
from delta_ds.kernel.log.segment import find_segment
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from delta_ds.kernel.transaction.symlink_manifest import write_manifests
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

# --- gENERATE: write symlink manifests, or the metadata of Iceberg, for engines that do not know Delta
# No commit: the log of the table stays as it is.

SYMLINK_FORMAT_MANIFEST = "symlink_format_manifest"
_MODES = (SYMLINK_FORMAT_MANIFEST, ICEBERG)


def generate(log: TableLog, mode: str) -> int:
    """Generate files for a table as it is now.

    Parameters
    ----------
    log
        The table.
    mode
        In any case: `symlink_format_manifest`, see `symlink_manifest`; or `iceberg`, for the metadata of Iceberg where
        a commit could not bring it up to date, see `iceberg.conversion`.

    Returns
    -------
    int
        How many manifests, or descriptions of a version in Iceberg's metadata, were written.

    Raises
    ------
    InvalidOptionError
        There is no such mode.
    UnsupportedOperationError
        The table has column mapping, or files with deletion vectors; or does not ask for the metadata of Iceberg.
    """
    wanted = mode.strip().lower()
    if wanted not in _MODES:
        raise MODE_NOT_SUPPORTED(mode=mode, table=log.storage.url, supportedModes=list(_MODES))
    snapshot = log.open_snapshot()
    if wanted == SYMLINK_FORMAT_MANIFEST:
        return write_manifests(snapshot)
    if not writes_metadata(snapshot.properties):
        raise GENERATE_WITHOUT_UNIVERSAL_FORMAT(table=log.storage.url, format=ICEBERG)
    from delta_ds.kernel.transaction.iceberg.conversion import convert

    return int(convert(log.storage, snapshot.table_state, snapshot.timestamp))


# --- maintenance: run the commands that `health` finds due, in the order in which each leaves least to the next

# Files first, then what is said of those that stay; VACUUM deletes what these left, where nothing is retained; the
# checkpoint is of the last version.
ORDER = (OPTIMIZE.name, REORG.name, STATISTICS, VACUUM, CHECKPOINT)

Outcome = Literal["planned", "done", "conflict", "not asked for", "not allowed"]


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a maintenance.

    Attributes
    ----------
    command
        `OPTIMIZE`, `REORG` (purge of deleted rows), `statistics`, `VACUUM` or `checkpoint`.
    reason
        Why it is due, with numbers.
    outcome
        `planned`: a dry run would do it. `done`. `conflict`: a commit of somebody else contradicted it, and nothing
        of it was committed. `not asked for`: it is due, and needs `vacuum`. `not allowed`: the catalog that manages
        the table does not permit it.
    version
        The newest version after it; None where it did not run.
    seconds
        How long it took.
    metrics
        What it did, under the names of the history.
    error
        What contradicted or forbade it; None where nothing did.

    Examples
    --------
    >>> Step("OPTIMIZE", "joins 40 files into 1", "planned").outcome
    'planned'
    """

    command: str
    reason: str
    outcome: Outcome
    version: int | None = None
    seconds: float = 0.0
    metrics: Mapping[str, object] = field(default_factory=dict)
    error: str | None = None

    def row(self) -> dict[str, object]:
        """Its attributes by name.

        Examples
        --------
        >>> Step("OPTIMIZE", "joins 40 files into 1", "planned").row()["reason"]
        'joins 40 files into 1'
        """
        return {name: getattr(self, name) for name in Step.__match_args__}


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What a maintenance did, or would do.

    Attributes
    ----------
    table
        What was maintained.
    dry_run
        Whether nothing was done.
    steps
        What was due, in order; empty: nothing.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> print(maintain(DeltaLog("/data/orders"), dry_run=True))
    /data/orders: dry run
      nothing is due
    """

    table: str
    dry_run: bool
    steps: tuple[Step, ...]

    @property
    def rows(self) -> list[dict[str, object]]:
        """The steps as dictionaries."""
        return [step.row() for step in self.steps]

    @property
    def conflicts(self) -> tuple[Step, ...]:
        """The steps that were contradicted: run it again."""
        return tuple(step for step in self.steps if step.outcome == "conflict")

    def __str__(self) -> str:
        lines = [f"{self.table}: {'dry run' if self.dry_run else 'maintenance'}"]
        for step in self.steps:
            lines.append(f"  {step.command}: {step.outcome}: {step.reason}")
            if step.outcome == "done":
                done = ", ".join(f"{name}={value}" for name, value in step.metrics.items())
                lines.append(f"    version {step.version}, {step.seconds:.1f} s{done and ': ' + done}")
            if step.error is not None:
                lines.append(f"    {step.error}")
        return "\n".join(map(visible, lines if self.steps else [*lines, "  nothing is due"]))


# The command of a step to what runs it, and answers with its metrics.
Runners = Mapping[str, Callable[[], Mapping[str, Any]]]


def maintain(
    log: TableLog,
    *,
    vacuum: bool = False,
    dry_run: bool = False,
    request: OptimizeRequest | None = None,
    engine_info: str | None = None,
) -> Maintenance:
    """Run the commands that are due for a table, in this process; where none is due, nothing is committed.

    Writers may go on meanwhile. Where a commit of theirs contradicts a step, nothing of that step is committed, the
    result says so, and the next steps run.

    Parameters
    ----------
    log
        The table.
    vacuum
        Whether VACUUM may run, with the table's own retention: versions older than that cannot be read any more.
    dry_run
        Only tell what would be done, and why.
    request
        Sizes for OPTIMIZE; by default delta-spark's.
    engine_info
        Who writes, for the history.

    Raises
    ------
    UnsupportedFeatureError
        The table needs something of writers that is not supported. Nothing was done.
    DeltaError
        What a step ran into, other than a conflict. What the steps before it committed stays.

    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog(tempfile.mkdtemp())
    >>> versions = [log.write(pa.table({"id": [n]})) for n in range(30)]
    >>> [(step.command, step.outcome) for step in maintain(log).steps]
    [('OPTIMIZE', 'done')]
    >>> maintain(log).steps
    ()
    """
    asked = request or OptimizeRequest()
    runners: Runners = {
        **file_runners(lambda asked: optimize(log, asked, engine_info=engine_info).metrics, asked),
        **log_runners(log, engine_info),
    }
    return course(lambda: examine(log, asked, vacuum), runners, vacuum=vacuum, dry_run=dry_run)


def file_runners(rewrite: Callable[[OptimizeRequest], Mapping[str, Any]], asked: OptimizeRequest) -> Runners:
    """The commands that rewrite rows, by a function that runs an OPTIMIZE."""
    return {
        OPTIMIZE.name: lambda: _files(rewrite(asked)),
        REORG.name: lambda: _files(rewrite(replace(asked, kind=PURGE))),
    }


def log_runners(log: TableLog, engine_info: str | None) -> Runners:
    """The commands that need nobody to rewrite rows."""
    return {
        command: partial(run_log_step, log, command, engine_info)
        for command in (STATISTICS, VACUUM, CHECKPOINT)
    }


def run_log_step(log: TableLog, command: str, engine_info: str | None) -> dict[str, Any]:
    """Run one of `log_runners`; returns its metrics."""
    if command == STATISTICS:
        computed = compute_statistics(log, engine_info=engine_info)
        return {"numFiles": computed.files, "numFilesCountsOnly": computed.counts_only}
    if command == VACUUM:
        deleted = delete_files(log)
        return {"numDeletedFiles": deleted.num_files, "sizeOfDeletedFiles": deleted.num_bytes}
    write_checkpoint(log.storage, find_segment(log.storage))
    return {}


def _files(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Of the metrics of an OPTIMIZE those that say what became of the files."""
    return {
        "numFilesRemoved": metrics["numFilesRemoved"],
        "numFilesAdded": metrics["numFilesAdded"],
        "removedBytes": metrics["filesRemoved"]["totalSize"],
        "addedBytes": metrics["filesAdded"]["totalSize"],
    }


def examine(log: TableLog, request: OptimizeRequest, vacuum: bool) -> Health:
    """The health of a table that can be maintained.

    Where VACUUM may run, it is due as well where the log does not tell what it would delete.

    Raises
    ------
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    """
    snapshot = log.open_snapshot()
    snapshot.table_state.check_writable()
    found = health_of(snapshot, request)
    if vacuum and found.unneeded_files is None:
        reason = "the log does not reach back to the files that earlier versions named: a listing tells"
        return replace(found, due=(*found.due, Due(VACUUM, reason)))
    return found


def course(look: Callable[[], Health], runners: Runners, *, vacuum: bool, dry_run: bool) -> Maintenance:
    """Go through the commands in order, and look again after each that ran: it may have done another one's work.

    Parameters
    ----------
    look
        The table's health at this moment.
    runners
        What runs each command.
    vacuum, dry_run
        As for `maintain`.
    """
    found = look()
    with Work("MAINTAIN", found.table) as work:
        return Maintenance(found.table, dry_run, tuple(_steps(look, found, runners, work, vacuum, dry_run)))


def _steps(
    look: Callable[[], Health], found: Health, runners: Runners, work: Work, vacuum: bool, dry_run: bool
) -> list[Step]:
    first = {each.command: each.reason for each in found.due}
    steps: list[Step] = []
    for command in ORDER:
        due = {each.command: each.reason for each in found.due}
        if command not in due:
            if command == CHECKPOINT and command in first and not dry_run:
                # A commit of a step before reached the table's interval.
                steps.append(Step(command, first[command], "done", found.version))
            continue
        if command == VACUUM and not vacuum:
            steps.append(Step(command, due[command], "not asked for"))
        elif dry_run:
            steps.append(Step(command, due[command], "planned"))
        else:
            with work.phase(command, unit="commands"):
                steps.append(_run(command, due[command], runners[command]))
            found = look()
            if steps[-1].outcome == "done":
                steps[-1] = replace(steps[-1], version=found.version)
    return steps


def _run(command: str, reason: str, runner: Callable[[], Mapping[str, Any]]) -> Step:
    started = time.monotonic()
    try:
        metrics = runner()
    except DeltaConcurrentModificationException as error:
        text = f"[{error.condition}] {error.text}"
        return Step(command, reason, "conflict", seconds=time.monotonic() - started, error=text)
    except UnsupportedOperationError as error:
        if error.condition != MAINTENANCE_NOT_ALLOWED.name:
            raise
        return Step(command, reason, "not allowed", error=f"[{error.condition}] {error.text}")
    return Step(command, reason, "done", seconds=time.monotonic() - started, metrics=metrics)
