"""The reports that listeners get: commits, snapshots, scans, commands, progress."""

from __future__ import annotations

from collections.abc import Mapping

from delta_ds.records import dataclass, field


@dataclass(frozen=True, slots=True)
class CommitReport:
    """One attempt to commit a transaction, whether it worked or not.

    Attributes
    ----------
    table
        Its address, without secrets.
    operation
        As the history has it: `WRITE`, `MERGE`, `OPTIMIZE`, ...
    version
        What was committed; None where it failed.
    read_version
        The version that the transaction read; -1 for a new table.
    error
        The condition of the error where it failed, such as `DELTA_CONCURRENT_APPEND`.
    attempts
        How many versions were tried, from 1 on.
    rebased_on
        The commits that came first and did not contradict this one: version and operation.
    seconds
        All of it, from the call of `commit` on, what follows the commit included.
    prepare_seconds, publish_seconds, conflict_seconds, post_commit_seconds
        Checks and the commit's text; requests to publish it; reading the commits that came first, and pauses;
        checksum, checkpoint, clean-up and manifests.
    commit_bytes
        The size of the commit file.
    files_added, bytes_added, rows_added
        Of the `add` actions, rows without deleted ones; rows None where the statistics do not count them all.
    files_removed, bytes_removed, rows_removed
        Of the `remove` actions; None where the log does not tell.
    change_files
        Files of the change data feed.
    metrics
        `operationMetrics` of the history, as text.

    Examples
    --------
    >>> import delta_ds, pyarrow as pa, tempfile
    >>> reports = []
    >>> with delta_ds.add_listener(reports.append):
    ...     version = delta_ds.DeltaLog(tempfile.mkdtemp()).write(pa.table({"id": [1, 2]}))
    >>> [(r.operation, r.attempts, r.rows_added) for r in reports if isinstance(r, delta_ds.CommitReport)]
    [('WRITE', 1, 2)]
    """

    table: str
    operation: str
    version: int | None
    read_version: int
    error: str | None = None
    attempts: int = 1
    rebased_on: tuple[tuple[int, str], ...] = ()
    seconds: float = 0.0
    prepare_seconds: float = 0.0
    publish_seconds: float = 0.0
    conflict_seconds: float = 0.0
    post_commit_seconds: float = 0.0
    commit_bytes: int = 0
    files_added: int = 0
    bytes_added: int = 0
    rows_added: int | None = 0
    files_removed: int = 0
    bytes_removed: int | None = 0
    rows_removed: int | None = 0
    change_files: int = 0
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """One version of a table that was opened, or whose files were read from the log.

    Attributes
    ----------
    table, version
        What was opened.
    files
        How many live files were found; None where only protocol and metadata were looked for.
    checkpoint_version
        The version of the checkpoint that was read; None without one.
    commits
        How many commits follow it.
    from_cache
        Whether an earlier version was at hand, in memory or on disk, and only what followed was read.
    seconds
        The listing of the log included, where there was one.

    Examples
    --------
    >>> import delta_ds
    >>> reports = []
    >>> with delta_ds.add_listener(reports.append):
    ...     snapshot = delta_ds.DeltaLog("examples/data/sales").snapshot()
    >>> [(r.version == snapshot.version, r.files) for r in reports if isinstance(r, delta_ds.SnapshotReport)]
    [(True, None)]
    """

    table: str
    version: int
    files: int | None
    checkpoint_version: int | None
    commits: int
    from_cache: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The choice of the files that a scan reads.

    Attributes
    ----------
    table, version
        What is scanned.
    files
        How many files the version has.
    files_kept, bytes_kept
        Those that are read.
    skipped
        How many files were left out, by what the log says: `partition values`, `statistics of COLUMN`, ... No values of
        the predicate are in it.
    seconds
        How long it took; reading the log included where that was not read yet.

    Examples
    --------
    >>> import delta_ds
    >>> reports = []
    >>> with delta_ds.add_listener(reports.append):
    ...     files = delta_ds.DeltaLog("/data/orders").snapshot().files("country = 'DE'")
    >>> [(r.files, r.files_kept, r.skipped) for r in reports if isinstance(r, delta_ds.ScanReport)]
    [(4, 2, {'partition values': 2})]
    """

    table: str
    version: int
    files: int
    files_kept: int
    bytes_kept: int
    skipped: Mapping[str, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class CommandReport:
    """One command on a table that took several steps.

    Attributes
    ----------
    table, command
        `OPTIMIZE`, `VACUUM`, `CONVERT`, `COMPUTE STATS`, `FSCK`, `MAINTAIN`, `DELETE`, `UPDATE`, `MERGE`, ....
    seconds
        All of it.
    phases
        Seconds by phase, in order.
    error
        The condition, or class, of the error where it failed.

    Examples
    --------
    >>> import delta_ds
    >>> from delta_ds.kernel.commands.maintain import maintain
    >>> reports = []
    >>> with delta_ds.add_listener(reports.append):
    ...     planned = maintain(delta_ds.DeltaLog("/data/orders"), dry_run=True)
    >>> [(r.command, r.error) for r in reports if isinstance(r, delta_ds.CommandReport)]
    [('MAINTAIN', None)]
    """

    table: str
    command: str
    seconds: float
    phases: Mapping[str, float]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """How far a phase of a command is: at its start, a few times a second, and at its end.

    Attributes
    ----------
    table, command, phase
        What is being done.
    done
        How much of it.
    total
        How much there is; None where that is not known.
    unit
        What is counted: `files`, `commits`, `bins`.
    seconds
        Since the phase began.
    finished
        Whether the phase is over.

    Examples
    --------
    >>> from delta_ds import ProgressReport
    >>> report = ProgressReport("/data/orders", "VACUUM", "deleting", 50, 200, "files", seconds=5.0)
    >>> report.rate, report.remaining_seconds
    (10.0, 15.0)
    """

    table: str
    command: str
    phase: str
    done: int
    total: int | None
    unit: str
    seconds: float
    finished: bool = False

    @property
    def rate(self) -> float | None:
        """Units a second; None at the start."""
        return self.done / self.seconds if self.done and self.seconds > 0 else None

    @property
    def remaining_seconds(self) -> float | None:
        """How long the rest takes at this rate; None where that is not known."""
        rate = self.rate
        return None if rate is None or self.total is None else max(0, self.total - self.done) / rate


Report = CommitReport | SnapshotReport | ScanReport | CommandReport | ProgressReport
