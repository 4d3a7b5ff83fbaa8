"""`python -m spark_tests.engines.conformance acceptance DIR... [--engine kernel|spark|native]`, or `conflicts FILE...`.

Exit status: 0 all passed, 1 a case failed, 2 nothing could be run.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spark_tests.engines.conformance.acceptance import Verdict, run_case, run_kernel_case
from spark_tests.engines.conformance.cases import Case, NoCasesError, find_cases
from spark_tests.engines.conformance.engines import Engine, KernelEngine
from spark_tests.engines.conformance.sampling import sample

CANNOT_RUN = 2


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.yardstick == "conflicts":
        return run_conflicts(options.files)
    try:
        cases = [case for directory in options.directories for case in find_cases(directory)]
    except NoCasesError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    cases = [c for c in cases if fnmatch.fnmatchcase(c.name, options.case)]
    if not cases:
        print(f"no case matches {options.case!r}", file=sys.stderr)
        return CANNOT_RUN
    if options.sample:
        cases = sample(cases)
    if options.engine != "kernel":
        engine = _spark_engine(options.engine)
        return CANNOT_RUN if engine is None else report(_run_here(cases, engine), options.verbose)
    return report(_run_in_processes(cases, options.jobs), options.verbose)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spark_tests.engines.conformance", description=__doc__)
    commands = parser.add_subparsers(dest="yardstick", required=True)
    acceptance = commands.add_parser("acceptance", help="read recorded tables, compare everything recorded")
    acceptance.add_argument("directories", nargs="+", metavar="DIR", help="cases, their tables/, or one case")
    acceptance.add_argument("--engine", choices=("kernel", "spark", "native"), default="kernel")
    acceptance.add_argument("--case", default="*", metavar="PATTERN", help="only cases of such a name (glob)")
    acceptance.add_argument("--sample", action="store_true", help="few cases that show every feature tag")
    acceptance.add_argument("--jobs", type=int, default=1, help="processes (kernel engine only)")
    acceptance.add_argument("--verbose", action="store_true", help="every failure, and seconds of each case")
    conflicts = commands.add_parser("conflicts", help="run recorded commit conflicts through Transaction")
    conflicts.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a list of cases, JSON")
    return parser


def _spark_engine(name: str) -> Engine | None:
    """The engine of that name in a session of its own; None, and a word on why, where Spark lacks it."""
    from delta_ds.spark.engines.classic.jvm import NotNative
    from spark_tests.engines.conformance.native_engine import NativeEngine
    from spark_tests.engines.conformance.spark_engine import SparkEngine

    try:
        return NativeEngine() if name == "native" else SparkEngine()
    except NotNative as refusal:
        print(f"there is no native scan here: {refusal.reason}", file=sys.stderr)
        return None


def _run_here(cases: Iterable[Case], engine: Engine) -> Iterator[Verdict]:
    try:
        for case in cases:
            yield run_case(case, engine)
    finally:
        engine.close()


def _run_in_processes(cases: list[Case], jobs: int) -> Iterator[Verdict]:
    if jobs <= 1 or len(cases) == 1:
        yield from _run_here(cases, KernelEngine())
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # A function of this module would not be found: here it is `__main__`, in the processes it is not.
        yield from pool.map(run_kernel_case, cases)


def run_conflicts(files: Sequence[Path]) -> int:
    """Run the cases of some files, one line each and the totals; return the exit status."""
    from spark_tests.engines.conformance.conflicts import NoConflictsError, load_cases, run_cases

    try:
        cases = load_cases(files)
    except NoConflictsError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    passed = failed = 0
    for verdict in run_cases(cases):
        if verdict.failure is None:
            passed += 1
            print(f"PASS {verdict.name}", flush=True)
        else:
            failed += 1
            print(f"FAIL {verdict.name} ({verdict.what}): {' '.join(verdict.failure.split())}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def report(verdicts: Iterable[Verdict], verbose: bool = False) -> int:
    """Print what failed and why, what was not compared, and the totals; return the exit status."""
    passed = failed = 0
    uncounted: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for verdict in verdicts:
        uncounted.update(verdict.uncounted)
        notes.update(verdict.notes)
        if verdict.disputed:
            outcome = f"differs: {verdict.line()}" if verdict.failures else "agrees"
            print(f"disputed {verdict.name}: not counted ({outcome}); {verdict.disputed}", flush=True)
        elif verdict.failures:
            failed += 1
            print(f"FAILED {verdict.line()}", flush=True)
        else:
            passed += 1
        if verbose:
            print(f"  {verdict.name} {verdict.seconds:.2f} s", *verdict.failures, sep="\n    ", flush=True)
    for reason, count in sorted(uncounted.items()):
        print(f"not compared: file counts of {count} filters ({reason})")
    for reason, count in sorted(notes.items()):
        print(f"served by another path: {count} reads ({reason})")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
