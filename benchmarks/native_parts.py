"""The part `native`: Spark's own reader and writer under pydelta, beside plain Parquet and delta-spark, in turn."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import HERE, WORK, as_table, log_table, made_once, spark_seconds
from benchmarks.measure import MARK
from benchmarks.native_tables import files_of, write_dimension, write_vector_table, write_wide_table
from benchmarks.native_worker import READS, ROWS

FILES = 100
DELETED = 0.05
CODECS = ("snappy", "zstd")
WORKER = "benchmarks.native_worker"


class Session:
    """A `native_worker` process that takes turns with others."""

    def __init__(
        self, python: str, settings: Mapping[str, Any], errors: Path, *, worker: str = WORKER
    ) -> None:
        command = [python, "-m", worker, json.dumps(settings)]
        self.format = str(settings["format"])
        self.warnings: set[str] = set()
        self._errors = errors
        with errors.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=HERE.parent,
            )
        hello = self._answer()
        self.spark, self.scan = str(hello["spark"]), str(hello["scan"])

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """Let the session do something.

        Raises
        ------
        RuntimeError
            It failed; the message ends with what it printed.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self._process.stdin.flush()
        found = self._answer()
        self.warnings.update(found.get("warnings", ()))
        return found

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                found: dict[str, Any] = json.loads(line[len(MARK) :])
                return found
        raise RuntimeError(f"the session of {self.format} ended:\n{self._errors.read_text()[-3000:]}")

    def close(self) -> None:
        """End the session and wait for it."""
        self._process.communicate(timeout=60)


@dataclass(frozen=True)
class Competitor:
    """Who does a case: a reader or writer in one of the sessions."""

    session: Session
    name: str

    @property
    def label(self) -> str:
        return f"{self.name}, Spark {self.session.spark}"


@dataclass
class Taken:
    """What one competitor needed for a case, by round; the first does not count."""

    seconds: list[float] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def middle(self) -> float:
        return median(self.seconds[1:])


def native(options: argparse.Namespace, folder: Path) -> list[str]:
    """Reads, planning, appends and the first query of a session."""
    settings = _settings(options, folder)
    with _sessions(options, settings) as sessions:
        versions = " and ".join(f"{s.format} on Spark {s.spark}" for s in sessions)
        lines = [
            f"## Native scan and writer, local[2], {options.rows:,} rows of 10 columns in {FILES} files\n",
            f"{_NOTE} Here: {versions}.",
            "",
            *_reads(options, sessions),
            "",
            *_plans(options, sessions),
            "",
            *_appends(options, sessions),
        ]
        warned = sorted({warning for session in sessions for warning in session.warnings})
    lines += ["", *_first_queries(options, settings)]
    if not options.delta_spark_python:
        lines += ["", "delta-spark was left out: --delta-spark-python and --delta-spark-jars name none."]
    return [*lines, *(f"\ndelta_ds warned: `{warning}`" for warning in warned)]


_NOTE = (
    "One session with this package and, where it is at hand, one with delta-spark on the Spark that it supports; "
    "both are up at the same time and take turns, and both read and write plain Parquet too. *ratio to Parquet* "
    "is to Spark's own Parquet reader or writer in the same session, *ratio to delta-spark* goes across the two. "
    "The first round does not count."
)


# ---------------------------------------------------------------- tables and sessions


def _settings(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What the sessions are told, which reads which tables above all."""
    rows = options.rows
    wide = made_once(folder / f"wide-{rows}", lambda path: write_wide_table(path, rows, FILES))
    vectors = made_once(folder / f"wide-{rows}-vectors", lambda path: write_vector_table(path, wide, DELETED))
    dimension = made_once(folder / "dimension", write_dimension)
    first = rows // 2
    last = first + max(1, rows // 100) - 1
    files = files_of(wide)
    tables = {
        "wide": str(wide),
        "vectors": str(vectors),
        "dimension": str(dimension),
        "log": log_table(folder, "v1", options.files),
        # A folder, as Parquet is kept: so many files by name would cost a job of their own to list.
        "files": [str(wide)],
        "selected": [path for path, low, high in files if low <= last and high >= first],
        "dimension_files": [path for path, _, _ in files_of(dimension)],
    }
    return {"tables": tables, "one_percent": f"id BETWEEN {first} AND {last}", "folder": str(folder)}


def _formats(options: argparse.Namespace) -> dict[str, str]:
    """The interpreters by format."""
    found = {"pydelta": sys.executable}
    if options.delta_spark_python:
        found["delta"] = options.delta_spark_python
    return found


@contextmanager
def _sessions(options: argparse.Namespace, settings: Mapping[str, Any]) -> Iterator[list[Session]]:
    """The sessions, this package's first.

    Raises
    ------
    RuntimeError
        This package does not read natively here, so there is nothing to measure.
    """
    with ExitStack() as stack, tempfile.TemporaryDirectory(dir=WORK) as scratch:
        started = []
        for fmt, python in _formats(options).items():
            target = Path(scratch) / fmt
            target.mkdir()
            cache = target / "cache"
            cache.mkdir(mode=0o700)
            own = {
                "format": fmt,
                "jars": options.delta_spark_jars,
                "folder": str(target),
                "cache": str(cache),
            }
            session = Session(python, {**settings, **own}, target / "stderr.txt")
            stack.callback(session.close)
            started.append(session)
        if "parquet" not in started[0].scan:
            raise RuntimeError(f"there is no native scan here: Spark calls its scan {started[0].scan!r}")
        yield started


def _both(sessions: Sequence[Session]) -> list[Competitor]:
    """Plain Parquet and the session's own format, for every session."""
    return [Competitor(session, name) for session in sessions for name in ("parquet", session.format)]


def _rounds(
    rounds: int, competitors: Sequence[Competitor], step: Callable[[Competitor], dict[str, Any]]
) -> dict[Competitor, Taken]:
    """A case by all competitors in turn.

    Raises
    ------
    RuntimeError
        They did not find the same.
    """
    found = {competitor: Taken() for competitor in competitors}
    for _ in range(rounds + 1):
        for competitor, taken in found.items():
            taken.last = step(competitor)
            taken.seconds.append(taken.last["seconds"])
            _agree({c: t.last["answer"] for c, t in found.items() if t.last})
    return found


def _agree(answers: Mapping[Competitor, object]) -> None:
    if len({json.dumps(answer) for answer in answers.values()}) > 1:
        shown = ", ".join(f"{competitor.label}: {answer}" for competitor, answer in answers.items())
        raise RuntimeError(f"not all found the same: {shown}")


def _ratios(found: Mapping[Competitor, Taken], competitor: Competitor) -> list[str]:
    """The cells ratio to Parquet and ratio to delta-spark."""
    own = found[competitor].middle
    cells = []
    for name, session in (("parquet", competitor.session), ("delta", None)):
        rivals = [c for c in found if c.name == name and session in (None, c.session)]
        cells.append(f"{own / found[rivals[0]].middle:.2f}" if rivals else "")
    return cells


def _row(case: str, found: Mapping[Competitor, Taken], competitor: Competitor) -> list[object]:
    taken = found[competitor]
    times = [f"{taken.seconds[0]:.2f} s", f"{taken.middle:.3f} s"]
    return [case, competitor.label, *times, *_ratios(found, competitor)]


_HEAD = ["case", "who", "first round", "time", "ratio to Parquet", "ratio to delta-spark"]


# ---------------------------------------------------------------- the cases


def _reads(options: argparse.Namespace, sessions: Sequence[Session]) -> list[str]:
    rows = []
    for case in READS:
        found = _rounds(options.rounds, _both(sessions), lambda c, case=case: _read(c, case))  # type: ignore[misc]
        rows += [_row(case, found, competitor) for competitor in found]
        print(case, [(c.label, round(t.middle, 2)) for c, t in found.items()], file=sys.stderr, flush=True)
    _check_rows(sessions)
    chosen = {s.format: s.ask("broadcast", reader=s.format)["answer"] for s in sessions}
    note = (
        "Reads go to Spark's `noop` sink where they do not end in a value. For the filter Parquet is given just the "
        "files that can match; for vectors, the files without them. Rows were compared once, by number and hash. "
        "The dimension has one row a day; broadcast was chosen before running: "
        + ", ".join(f"{fmt} {'yes' if yes else '**no**'}" for fmt, yes in chosen.items())
        + "."
    )
    return ["### Reads", "", note, "", *as_table(_HEAD, rows)]


def _read(competitor: Competitor, case: str) -> dict[str, Any]:
    return competitor.session.ask("read", case=case, reader=competitor.name)


def _check_rows(sessions: Sequence[Session]) -> None:
    for case in ROWS:
        # Plain Parquet knows nothing of deletion vectors.
        rivals = [c for c in _both(sessions) if c.name != "parquet" or "vectors" not in case]
        _agree({c: c.session.ask("check", case=case, reader=c.name)["answer"] for c in rivals})


def _plans(options: argparse.Namespace, sessions: Sequence[Session]) -> list[str]:
    last = 1000 * (options.files // 60) + 9999
    predicates = {
        "none": "true",
        "partition": "day = DATE'2025-01-03'",
        "statistics": f"id BETWEEN {last - 9999} AND {last}",
    }
    rows = []
    for kind, predicate in predicates.items():
        for cold in (True, False):

            def step(competitor: Competitor, predicate: str = predicate, cold: bool = cold) -> dict[str, Any]:
                return competitor.session.ask("plan", predicate=predicate, cold=cold)

            found = _rounds(options.rounds, [Competitor(s, s.format) for s in sessions], step)
            for competitor, taken in found.items():
                _, who, *cells = _row(kind, found, competitor)
                state = "cold" if cold else "state loaded"
                rows.append([kind, state, who, taken.last["answer"], *cells[:2], cells[3]])
    head = ["filter", "state", "who", "files kept", "first round", "time", "ratio to delta-spark"]
    note = (
        "From `load` to the tasks of a scan, in a session that runs already. *Cold*: nothing of the table is known "
        "(delta-spark's cache of logs emptied, no cache of ours); *state loaded*: as the next query finds it."
    )
    title = f"### Planning, {options.files:,} files, V1 checkpoint"
    return [title, "", note, "", *as_table(head, rows)]


def _appends(options: argparse.Namespace, sessions: Sequence[Session]) -> list[str]:
    count = max(1, options.rows // 2)
    rows = []
    for codec in CODECS:

        def step(competitor: Competitor, codec: str = codec) -> dict[str, Any]:
            return competitor.session.ask("append", rows=count, writer=competitor.name, codec=codec)

        found = _rounds(options.rounds, _both(sessions), step)
        for competitor, taken in found.items():
            size = f"{taken.last['bytes'] / (1 << 20):.1f} MiB"
            rows.append([*_row(codec, found, competitor), size, taken.last["statistics"] or ""])
    note = (
        "Each appends the same rows, computed as they are written, in 8 tasks to an empty table; a Delta format "
        "collects its statistics within the time."
    )
    head = [*_HEAD, "size", "columns with statistics"]
    return [f"### Append of {count:,} rows", "", note, "", *as_table(head, rows)]


def _first_queries(options: argparse.Namespace, settings: Mapping[str, Any]) -> list[str]:
    """The first query of a fresh session, each in a process of its own."""
    whom = [(fmt, reader) for fmt in _formats(options) for reader in ("parquet", fmt)]
    taken: dict[tuple[str, str], list[dict[str, Any]]] = {who: [] for who in whom}
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        for _ in range(options.rounds):
            for (fmt, reader), found in taken.items():
                own = {"format": fmt, "reader": reader, "jars": options.delta_spark_jars, "folder": scratch}
                command = [_formats(options)[fmt], "-m", WORKER, json.dumps({**settings, **own})]
                found.append(spark_seconds(command))
    answers = {json.dumps(run["answer"]) for runs in taken.values() for run in runs}
    if len(answers) > 1:
        raise RuntimeError(f"the first queries do not agree: {sorted(answers)}")
    middle = {who: median(run["seconds"] for run in runs) for who, runs in taken.items()}
    rows = []
    for (fmt, reader), runs in taken.items():
        own = middle[fmt, reader]
        to_delta = f"{own / middle['delta', 'delta']:.2f}" if ("delta", "delta") in middle else ""
        started = f"{median(run['session'] for run in runs):.2f} s"
        where = f"session of {fmt}"
        rows.append([where, reader, started, f"{own:.2f} s", f"{own / middle[fmt, 'parquet']:.2f}", to_delta])
    note = (
        "A filter and two aggregates over one file in a hundred, `register` included: what a fresh process waits "
        "for beyond the start of Spark."
    )
    head = ["where", "reader", "Spark's start", "first query", "ratio to Parquet", "ratio to delta-spark"]
    return ["### First query of a fresh session", "", note, "", *as_table(head, rows)]
