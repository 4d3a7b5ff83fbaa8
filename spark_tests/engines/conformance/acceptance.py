"""Run recorded cases against an engine, and compare everything that each case records.

Source: `corpora/README.md`, the section on `acceptance`.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_tests.engines.conformance.cases import Case, prepare
from spark_tests.engines.conformance.compare import difference, not_within, wrong_kind
from spark_tests.engines.conformance.engines import Engine, KernelEngine, OpenTable

# Keys of a recorded read that are compared one to one with what the engine says.
FACTS = (
    "files", "active_files", "schema", "partition_columns", "properties", "min_reader", "min_writer",
    "reader_features", "writer_features", "metadata_id", "table_name", "table_description",
)  # fmt: skip
# Left out of a record where they are nothing.
COUNTS = ("files_with_dv", "dv_cardinality")
KNOWN_READ_KEYS = {*FACTS, *COUNTS, "timestamp", "rows", "expected", "scan_error", "error", "operation"}
KNOWN_CASE_KEYS = {
    "name", "what", "source", "source_path", "features", "expect", "error", "oracle", "session_timezone",
    "versions", "reads", "log_mtimes_ms", "skipping", "source_check", "timestamp_travel", "cdf", "txns",
    "domains", "encodings", "notes", "snapshot", "history_error", "row_tracking", "placeholders",
    "partial_data", "disputed",
}  # fmt: skip


@dataclass(slots=True)
class Verdict:
    """What came out of one case; it has passed when there are no failures.

    `uncounted`: filters whose files could not be counted, by the reason. `notes`: see `OpenTable`.
    """

    name: str
    disputed: str | None = None
    failures: list[str] = field(default_factory=list)
    uncounted: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        """The reason of a failing case in one line."""
        more = f" (+{len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        return " ".join(f"{self.name}: {self.failures[0]}{more}".split())


class Judge:
    """Compares one case's record with an engine's answers, and notes down every failure."""

    def __init__(self, case: Case, engine: Engine, table: OpenTable, verdict: Verdict) -> None:
        self.case, self.engine, self.table, self.verdict = case, engine, table, verdict
        self.encodings = dict(case.record.get("encodings") or {})

    def fail(self, what: str, why: str) -> None:
        self.verdict.failures.append(f"{what}: {why}")

    def same(self, what: str, actual: Any, wanted: Any) -> None:
        if actual != wanted:
            self.fail(what, f"{_short(actual)} instead of {_short(wanted)}")

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Run a block that must work; an error is a failure of `what`."""
        try:
            yield
        except Exception as error:  # any error an engine lets out is a finding, whatever its class
            self.fail(what, self.engine.failure(error).text)

    def refuse(self, what: str, wanted: str, call: Callable[[], Any]) -> None:
        """Run a call that must fail with an error of our own that speaks of the cause `wanted`."""
        try:
            call()
        except Exception as error:
            failure = self.engine.failure(error)
            problem = wrong_kind(failure.kind, failure.condition, wanted)
            if problem:
                self.fail(what, f"{problem}: {failure.text}")
        else:
            self.fail(what, f"was read, must fail with {wanted}")

    def content(self, what: str, recorded: dict[str, Any], read: Callable[[], pa.Table]) -> None:
        """Compare rows with the recorded ones."""
        with self.attempt(what):
            wanted = self.expected(recorded)
            if wanted.num_rows != recorded.get("rows", wanted.num_rows):
                self.fail(what, f"the record says {recorded['rows']} rows, its file holds {wanted.num_rows}")
            problem = difference(read(), wanted)
            if problem:
                self.fail(what, problem)

    def expected(self, recorded: dict[str, Any]) -> pa.Table:
        with pq.ParquetFile(self.case.folder / recorded["expected"]) as file:
            return file.read()


def run_case(case: Case, engine: Engine) -> Verdict:
    """Prepare a case in a folder of its own, run every check on it, and say what came out."""
    verdict = Verdict(case.name, disputed=case.record.get("disputed"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="yardstick-") as scratch:
        case = prepare(case, Path(scratch) / "case")
        judge = Judge(case, engine, engine.table(case.table, case.timezone), verdict)
        for check in CHECKS:
            with judge.attempt(check.__name__.removeprefix("check_")):
                check(judge)
        verdict.notes.update(judge.table.notes)
    verdict.seconds = time.monotonic() - started
    return verdict


def run_kernel_case(case: Case) -> Verdict:
    """`run_case` under the kernel; can be sent to another process."""
    return run_case(case, KernelEngine())


def check_record(judge: Judge) -> None:
    """A key that this yardstick does not know is not compared, and that must not stay silent."""
    unknown = set(judge.case.record) - KNOWN_CASE_KEYS
    for read in judge.case.record["reads"].values():
        unknown |= set(read) - KNOWN_READ_KEYS
    if unknown:
        judge.fail("record", f"holds keys that the yardstick does not compare: {sorted(unknown)}")


def check_opening(judge: Judge) -> None:
    record = judge.case.record
    if record["expect"] == "error" and record["error"]["stage"] == "snapshot":
        judge.refuse("open", record["error"]["class"], judge.table.open)
        return
    if record["expect"] == "error":
        judge.refuse("scan", record["error"]["class"], lambda: judge.table.rows(None, judge.encodings))
    with judge.attempt("open"):
        state = judge.table.state(None)
        judge.same("latest version", state["version"], judge.case.latest)
        for key in ("txns", "domains"):
            if key in record:
                judge.same(key, state[key], record[key])
        for key, wanted in (record.get("snapshot") or {}).items():
            judge.same(f"snapshot {key}", state[key], wanted)


def check_versions(judge: Judge) -> None:
    record = judge.case.record
    for version in record["versions"]["readable"]:
        if str(version) not in record["reads"]:
            with judge.attempt(f"version {version}"):
                judge.same(f"version {version}", judge.table.state(version)["version"], version)
    for entry in record["versions"].get("unreadable") or []:
        version = entry["version"]

        def read(version: int = version) -> None:
            judge.table.state(version)
            judge.table.rows(version, judge.encodings)

        judge.refuse(f"unreadable version {version}", entry["error"], read)


def check_reads(judge: Judge) -> None:
    reads = judge.case.record["reads"]
    history: dict[int, tuple[int, str | None]] = {}
    if any("operation" in read for read in reads.values()):
        with judge.attempt("history"):
            history = judge.table.history()
    for text, read in reads.items():
        version, what = int(text), f"v{text}"
        if "error" in read:
            judge.refuse(what, read["error"]["class"], lambda v=version: judge.table.state(v))  # type: ignore[misc]
            continue
        with judge.attempt(what):
            _check_state(judge, what, read, judge.table.state(version))
        if "operation" in read:
            judge.same(f"{what} in history", history.get(version), (read["timestamp"], read["operation"]))
        if "expected" in read:
            judge.content(what, read, lambda v=version: judge.table.rows(v, judge.encodings))  # type: ignore[misc]
        elif not judge.case.record.get("partial_data"):  # those tables must not be scanned without a filter
            wanted = read["scan_error"]["class"]
            judge.refuse(f"{what} scan", wanted, lambda v=version: judge.table.rows(v, judge.encodings))  # type: ignore[misc]


def _check_state(judge: Judge, what: str, read: dict[str, Any], state: dict[str, Any]) -> None:
    for key in FACTS:
        if key in read:
            judge.same(f"{what} {key}", state[key], read[key])
    if "operation" not in read:  # else the record's time is that of the history, adjusted to be monotonic
        judge.same(f"{what} timestamp", state["timestamp"], read["timestamp"])
    for key in COUNTS:
        judge.same(f"{what} {key}", state[key], read.get(key, 0))


def check_changes(judge: Judge) -> None:
    for entry in judge.case.record.get("cdf") or []:
        start, end = entry["starting"], entry["ending"]
        encodings = entry.get("encodings") or judge.encodings

        def read(start: int = start, end: int = end, encodings: dict[str, str] = encodings) -> pa.Table:
            return judge.table.changes(start, end, encodings)

        what = f"changes {start}..{end}"
        if "error" in entry:
            judge.refuse(what, entry["error"]["class"], read)
        else:
            judge.content(what, entry, read)


def check_row_tracking(judge: Judge) -> None:
    entry = judge.case.record.get("row_tracking")
    if entry:
        encodings = entry.get("encodings") or judge.encodings
        judge.content("row ids", entry, lambda: judge.table.row_ids(entry["version"], encodings))


def check_timestamp_travel(judge: Judge) -> None:
    for entry in judge.case.record.get("timestamp_travel") or []:
        what, moment = f"travel to {entry['timestamp']}", entry["timestamp_ms"]
        if "error" in entry:
            judge.refuse(what, entry["error"], lambda m=moment: judge.table.version_at(m))  # type: ignore[misc]
        else:
            with judge.attempt(what):
                judge.same(what, judge.table.version_at(moment), entry["version"])


def check_skipping(judge: Judge) -> None:
    entries = judge.case.record.get("skipping") or []
    latest = judge.case.record["reads"].get(str(judge.case.latest), {})
    whole = judge.expected(latest) if entries and "expected" in latest and not judge.encodings else None
    for entry in entries:
        predicate = entry["filter"]
        what = f"filter {predicate!r}"
        if "error" in entry:
            judge.refuse(what, entry["error"], lambda p=predicate: judge.table.filtered(p, scan=True))  # type: ignore[misc]
            continue
        with judge.attempt(what):
            _check_filter(judge, what, entry, whole)


def _check_filter(judge: Judge, what: str, entry: dict[str, Any], whole: pa.Table | None) -> None:
    answer = judge.table.filtered(entry["filter"], scan=entry["rows"] is not None)
    if answer.files is None:
        judge.verdict.uncounted[answer.uncounted or "no reason given"] += 1
    elif answer.files > entry["files_after_skipping"]:
        judge.fail(what, f"{answer.files} files are left, recorded are {entry['files_after_skipping']}")
    if answer.rows is not None:
        judge.same(f"{what} rows", answer.rows.num_rows, entry["rows"])
        problem = not_within(answer.rows, whole) if whole is not None else None
        if problem:
            judge.fail(what, problem)


CHECKS: tuple[Callable[[Judge], None], ...] = (
    check_record, check_opening, check_versions, check_reads, check_changes, check_row_tracking,
    check_timestamp_travel, check_skipping,
)  # fmt: skip


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."
