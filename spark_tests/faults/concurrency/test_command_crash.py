"""DELETE, UPDATE, MERGE, OPTIMIZE and VACUUM that are killed at any moment: nothing is lost, and everybody goes on."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction import post_commit
from delta_ds.kernel.transaction.post_commit import Committed
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.faults import BEFORE, LINKED, MIDWAY, Fault, What
from spark_tests.faults.concurrency.row_model import DELETE, OPTIMIZE, PURGE, UPDATE, Command
from spark_tests.faults.concurrency.table_invariants import (
    MERGED,
    OLD_FILES,
    SOME_FILES,
    Template,
    check_survivor,
)
from spark_tests.faults.concurrency.workers import Nursery
from spark_tests.full_form import FULL

pytestmark = pytest.mark.slow

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}


class Commands(Nursery):
    """Commands that may be killed."""

    def __init__(self, folder: Path) -> None:
        super().__init__("command_fork_server", folder)

    def run(self, table: Path, command: Command | None, fault: Fault | None) -> bool:
        """Run a command on a table, or VACUUM; whether the fault killed it."""
        return self.live(
            {"folder": str(table), "command": asdict(command) if command else None},
            fault,
        )


@dataclass(frozen=True)
class Case:
    """A command, and the calls at which it is killed.

    Attributes
    ----------
    command
        None: VACUUM.
    phases
        Every one a call, and the kind of file it is for. Writing is interrupted midway, of several deletions the one
        in the middle; everything else is never begun. Besides, a command is killed before it changes anything.
    """

    command: Command | None
    properties: dict[str, str]
    phases: tuple[What, ...]

    def faults(self, calls: Sequence[What]) -> Iterator[Fault]:
        """Death in every phase, each time that it comes to it; in the full form at every single call."""
        yield Fault(0, BEFORE)
        for what, indices in itertools.groupby(range(len(calls)), key=lambda index: calls[index]):
            run = list(indices)
            if FULL:
                for index in run:
                    yield Fault(index, BEFORE)
                    if what[0] == "write":
                        yield Fault(index, MIDWAY)
            elif what in self.phases:
                yield Fault(run[len(run) // 2], MIDWAY if what[0] == "write" else BEFORE)


# Right before the commit, in the middle of it, right before and after it is there for everybody.
_COMMIT: tuple[What, ...] = (("create", "commit"), ("write", "commit"), LINKED, ("create", "checksum"))
_WRITE: tuple[What, ...] = (("write", "data"), ("flush", "data"))
_MARK: tuple[What, ...] = (("write", "vector"), ("flush", "vector"))

CASES = {
    "merge that marks": Case(MERGED, VECTORS, (*_WRITE, *_MARK, *_COMMIT)),
    "merge that rewrites": Case(MERGED, CHANGES, (*_WRITE, *_COMMIT)),
    "update that marks": Case(Command(UPDATE, modulus=5, rest=1), VECTORS, (*_WRITE, *_COMMIT)),
    "delete that marks": Case(Command(DELETE, modulus=5, rest=1), VECTORS, (*_MARK, *_COMMIT)),
    "delete that rewrites": Case(Command(DELETE, modulus=5, rest=1), CHANGES, (*_WRITE, *_COMMIT)),
    "compaction": Case(Command(OPTIMIZE), VECTORS, (*_WRITE, *_COMMIT)),
    "purge": Case(Command(PURGE), VECTORS, (*_WRITE, *_COMMIT)),
    "vacuum": Case(None, VECTORS, (("unlink", "data"), ("unlink", "vector"), LINKED, ("create", "checksum"))),
}
# The same calls, in another order or on other files: only in the full form.
_FULL_ONLY = ("update that marks", "delete that rewrites", "purge")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with Commands(tmp_path_factory.mktemp("nursery")) as found:
        yield found


@pytest.mark.parametrize("name", [n for n in CASES if FULL or n not in _FULL_ONLY])
def test_after_a_kill_in_any_phase_of_a_command_nothing_is_lost(
    name: str, nursery: Commands, tmp_path: Path
) -> None:
    case = CASES[name]
    commands = SOME_FILES if case.command else OLD_FILES
    template = Template(tmp_path / "table", case.properties, commands)
    assert not nursery.run(template.copy(), case.command, None)
    calls = nursery.seen()
    killed = [kill(template, nursery, case.command, calls, fault) for fault in case.faults(calls)]
    assert not set(case.phases) - set(killed), calls


def kill(
    template: Template, nursery: Commands, command: Command | None, calls: Sequence[What], fault: Fault
) -> What:
    """Kill a command at a call, and check the table."""
    table = template.copy()
    assert nursery.run(table, command, fault), fault
    versions = list(template.versions)
    # What was linked is published, whatever became of its writer.
    for _ in range(calls[: fault.index].count(LINKED)):
        versions.append(command.apply(versions[-1]) if command else versions[-1])
    check_survivor(table, versions, vacuumed=command is None)
    shutil.rmtree(table)
    return calls[fault.index]


@pytest.mark.parametrize("command", [MERGED, Command(OPTIMIZE), Command(DELETE, modulus=5, rest=1)])
def test_an_interrupt_after_the_commit_takes_no_file_away(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever presses Ctrl+C while a checkpoint is written has a commit, and needs its files."""
    template = Template(tmp_path / "table", VECTORS, SOME_FILES)
    table = template.copy()
    with monkeypatch.context() as patched:

        def interrupted(storage: Storage, committed: Committed) -> bool:
            raise KeyboardInterrupt

        patched.setattr(post_commit, "_write_checksum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            row_commands.run(DeltaLog(table), command, "interrupted")
    check_survivor(table, [*template.versions, command.apply(template.versions[-1])])
