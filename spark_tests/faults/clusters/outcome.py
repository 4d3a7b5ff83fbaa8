"""What scenarios found, and the table of them for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

COLUMNS = {
    "scenario": "scenario",
    "runs": "runs",
    "killed": "executors killed",
    "failed": "tasks failed",
    "rows": "rows checked",
    "orphans": "orphans, all found by VACUUM",
    "missing": "committed files missing",
}


@dataclass
class Outcome:
    """What one scenario did and found.

    Attributes
    ----------
    scenario
        Cluster and command.
    runs
        How often it ran.
    killed, failed
        Executors killed with SIGKILL; tasks that did not end well, those of killed executors among them.
    rows
        How many rows were compared, each with the one expected.
    orphans
        Data files that no version names; VACUUM lists and deletes every one.
    missing
        Files that the newest version names and that are not there.
    """

    scenario: str
    runs: int = 1
    killed: int = 0
    failed: int = 0
    rows: int = 0
    orphans: int = 0
    missing: int = 0

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def together(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """One line a scenario: the sums of its runs."""
    found: dict[str, Outcome] = {}
    for outcome in outcomes:
        kept = found.setdefault(outcome.scenario, Outcome(outcome.scenario, runs=0))
        for field in fields(Outcome)[1:]:
            setattr(kept, field.name, getattr(kept, field.name) + getattr(outcome, field.name))
    return list(found.values())


def markdown(outcomes: Iterable[Outcome]) -> str:
    """The table of the scenarios."""
    lines = [f"| {' | '.join(COLUMNS.values())} |", f"|{'---|' * len(COLUMNS)}"]
    for outcome in together(outcomes):
        values = outcome.as_dict()
        lines.append(f"| {' | '.join(str(values[name]) for name in COLUMNS)} |")
    return "\n".join(lines)


def replace_table(page: Path, table: str) -> None:
    """Put the table between the marks of a page."""
    start, end = "<!-- measured: clusters -->\n", "<!-- end: clusters -->"
    text = page.read_text()
    head, rest = text.split(start)
    page.write_text(f"{head}{start}{table}\n{rest[rest.index(end) :]}")
