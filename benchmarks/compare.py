"""What became slower beside deltalake since the last release: `python -m benchmarks.compare --peer-python P`.

Each case is measured on both sides in turn, in processes of its own, and its ratio of processor seconds is held
against the one in `ratios.json`. Seconds differ between machines, and on a busy one from minute to minute; ratios
of two sides that take turns differ least. Nothing here is a test: a person looks at what comes out.

    --record RELEASE     write `ratios.json` anew, before a release
    --only WORD          cases whose names hold the word
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import kernel_parts, start_parts
from benchmarks.harness import (
    HERE,
    OURS,
    WRITES,
    Command,
    OnCopy,
    as_table,
    in_turn,
    in_turn_on_copies,
    log_table,
    made_once,
    work_folder,
)
from benchmarks.log_tables import metadata_line
from benchmarks.measure import Measurement
from benchmarks.write_tables import write_small_table

RATIOS = HERE / "ratios.json"
# So much slower than at the last release is shown.
TOLERATED = 1.10
# What takes less is as good as nothing, and told by no clock.
_LEAST_S = 0.01
FILES, ROWS, COMMITS = 100_000, 2_000_000, 200

Seconds = Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """The ratio of a case at the last release and now; None where it was not measured."""

    case: str
    then: float | None
    now: float | None

    @property
    def factor(self) -> float | None:
        """How many times as much it takes now."""
        return None if self.then is None or self.now is None else self.now / self.then

    @property
    def slower(self) -> bool:
        """Whether it is to be looked at."""
        return self.factor is not None and self.factor > TOLERATED


def ratio(seconds: Seconds) -> float:
    """Ours over theirs."""
    ours, theirs = (max(_LEAST_S, seconds[who]) for who in ("delta_ds", "deltalake"))
    return ours / theirs


def changes(then: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """Every case that was measured at one of two times, those that became slowest first."""
    found = [Change(case, then.get(case), now.get(case)) for case in {**then, **now}]
    return sorted(found, key=lambda change: -(change.factor or 0))


def recorded(path: Path = RATIOS) -> dict[str, Any]:
    """What `ratios.json` says: the release, the sizes that were measured, and the ratios by case."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def main() -> int:
    """Measure and print; 1 where a case became slower."""
    options = _arguments()
    now: dict[str, float] = {}
    with work_folder(options.keep) as folder:
        for case, measure in cases(options, folder).items():
            if options.only is None or options.only in case:
                seconds = measure()
                now[case] = round(ratio(seconds), 2)
                shown = ", ".join(f"{who} {taken:.3f} s" for who, taken in seconds.items())
                print(f"{case}: {shown}", file=sys.stderr, flush=True)
    if options.record:
        RATIOS.write_text(
            json.dumps({"release": options.record, "sizes": sizes(), "ratios": now}, indent=1) + "\n"
        )
        return 0
    before = recorded()
    then = (
        before["ratios"] if options.only is None else {c: r for c, r in before["ratios"].items() if c in now}
    )
    found = changes(then, now)
    rows = [[c.case, *map(_shown, (c.then, c.now, c.factor)), "slower" if c.slower else ""] for c in found]
    print(f"Processor seconds beside deltalake's: the ratio at {before['release']}, and now.\n")
    print("\n".join(as_table(["case", before["release"], "now", "factor", ""], rows)))
    return int(any(c.slower for c in found))


def _shown(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def sizes() -> dict[str, int]:
    """What ratios depend on."""
    return {"files": FILES, "rows": ROWS, "commits": COMMITS}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description=__doc__.split("\n")[0])
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", metavar="RELEASE")
    parser.add_argument("--only", metavar="WORD")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.record and options.only:
        parser.error("--record takes all cases: leave --only out")
    return options


# ---------------------------------------------------------------- the cases


def cases(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Seconds]]:
    """All cases by name; each measures itself when it is called."""
    found = dict(_fresh_processes(options, folder))
    found |= _planning(options, folder)
    found |= _writing(options, folder)
    found |= _reading(options, folder)
    return found


def _cpu(found: Mapping[str, Measurement]) -> Seconds:
    return {who: measured.cpu_s for who, measured in found.items()}


def _sides(options: argparse.Namespace, ours: list[str], script: str, *case: str) -> dict[str, Command]:
    peer = [options.peer_python, str(HERE / script)]
    return {"delta_ds": ([*ours, *case], {"DELTA_DS_CACHE": "off"}), "deltalake": ([*peer, *case], {})}


def _fresh_processes(
    options: argparse.Namespace, folder: Path
) -> Iterator[tuple[str, Callable[[], Seconds]]]:
    def measure(what: str) -> Seconds:
        taken = start_parts.measured(options, folder, what)
        return {
            "delta_ds": taken[what, "delta_ds, no cache"].cpu_s,
            "deltalake": taken[what, "deltalake"].cpu_s,
        }

    for what in start_parts.WORK_OF_A_PROCESS:
        yield f"fresh process: {what}", partial(measure, what)


def _planning(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], Seconds]]]:
    last = 1000 * (FILES // 60) + 9999
    predicate = f"id BETWEEN {last - 9999} AND {last}"

    def measure(case: str) -> Seconds:
        table = log_table(folder, "v1", FILES)
        return _cpu(in_turn(_sides(options, OURS, "peer.py", case, table, predicate), options.rounds))

    titles = {"plan": "cold", "again": "again", "replan": "state loaded"}
    for case, title in titles.items():
        yield f"statistics filter, {title}", partial(measure, case)


def _writing(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], Seconds]]]:
    def on_copies(source: Path, extra: list[str] | None, *case: str) -> Seconds:
        sides = _sides(options, WRITES, "write_peer.py", *case)
        commands = {who: OnCopy(command, source, extra) for who, (command, _) in sides.items()}
        return _cpu(in_turn_on_copies(commands, options.rounds))

    def repeated(kind: str, handle: str) -> Seconds:
        small = made_once(folder / "small-10", lambda path: write_small_table(path, 10))
        return on_copies(small, None, kind, str(COMMITS), handle)

    def checkpoint() -> Seconds:
        lines = ['{"commitInfo":{"operation":"SET TBLPROPERTIES"}}', metadata_line({})]
        return on_copies(Path(log_table(folder, "v1", FILES)), lines, "checkpoint")

    for kind in ("commits", "appends"):
        for handle in ("kept", "anew"):
            yield f"{kind}, handle {handle}", partial(repeated, kind, handle)
    yield "checkpoint", checkpoint


def _reading(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], Seconds]]]:
    sized = argparse.Namespace(**{**vars(options), "rows": ROWS})
    for title, measure in kernel_parts.measures(sized, folder).items():
        yield title, partial(_cpu_of, measure)


def _cpu_of(measure: Callable[[], Mapping[str, Measurement]]) -> Seconds:
    return _cpu(measure())


if __name__ == "__main__":
    sys.exit(main())
