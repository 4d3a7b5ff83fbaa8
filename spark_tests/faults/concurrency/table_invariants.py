"""What has to hold of a table in which a command was killed, or not."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.vacuum.command import vacuum
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.row_history import Files
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    DELETE,
    FIRST_ROWS,
    MERGE,
    OPTIMIZE,
    Command,
    Rows,
    row_of,
)

# Changes rows that are there and adds some, in every partition.
NEXT = Command(MERGE, tuple(row_of(number, 1) for number in range(2, 8)))

MERGED = Command(MERGE, (row_of(0, 5), row_of(1, 7), row_of(2, -1), row_of(3, 9), row_of(8, -1)))
# Several files in every partition, and deleted rows; and what there is for VACUUM to delete.
SOME_FILES = (
    Command(APPEND, tuple(row_of(100 + 3 * number, number) for number in range(4))),
    Command(APPEND, tuple(row_of(101 + 3 * number, number) for number in range(4))),
    Command(DELETE, modulus=7, rest=2),
)
OLD_FILES = (*SOME_FILES, MERGED, Command(OPTIMIZE))


class Template:
    """A table as it is before a command, to be copied for each time that it is killed.

    Attributes
    ----------
    versions
        The rows of each version.
    """

    def __init__(self, folder: Path, properties: Mapping[str, str], commands: Sequence[Command]) -> None:
        self._folder = folder
        self._copies = 0
        log = DeltaLog(folder)
        row_commands.create(log, properties, partitioned=True)
        self.versions: list[Rows] = [{row[0]: row for row in FIRST_ROWS}]
        for version, command in enumerate(commands, 1):
            assert row_commands.run(log, command, str(version)) == version
            self.versions.append(command.apply(self.versions[-1]))

    def copy(self) -> Path:
        self._copies += 1
        copied = self._folder.with_name(f"{self._folder.name}-{self._copies}")
        shutil.copytree(self._folder, copied)
        return copied


def rows_at(log: DeltaLog, version: int | None = None) -> Rows:
    found = row_commands.rows_of(log.snapshot(version=version).scan().to_arrow())
    assert len(found) == len({row[0] for row in found}), "a row is there twice"
    return {row[0]: row for row in found}


def check_survivor(folder: Path, versions: Sequence[Rows], *, vacuumed: bool = False) -> None:
    """Check that nothing is lost, that what was left behind can be found, and that everybody goes on.

    Parameters
    ----------
    folder
        The table's.
    versions
        The rows of each version that there has to be.
    vacuumed
        Whether files of older versions may be gone.
    """
    log, last = DeltaLog(folder), len(versions) - 1
    assert vacuumed or Files(log).named <= files_below(folder)
    for version in range(last if vacuumed else max(last - 2, 0), last + 1):
        assert rows_at(log, version) == versions[version], version
    assert row_commands.run(log, NEXT, "next") == last + 1
    needed = Files(log).named_by(last + 1)
    vacuum(log, 0, retention_check=False)
    assert files_below(folder) == needed, (files_below(folder) ^ needed, needed - files_below(folder))
    assert rows_at(log) == NEXT.apply(versions[last])


def files_below(folder: Path) -> set[str]:
    """All files but those of the log, whatever they are called."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if path.parts[0] != "_delta_log"}
