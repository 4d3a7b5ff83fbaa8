"""Holds what processes did to a table, by their notes, against the log and against a serial replay of the winners."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from delta_ds import exceptions
from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException
from delta_ds.kernel.format.values.deletion_vector import DeletionVectorDescriptor, read_positions
from delta_ds.kernel.storage.log_store import relative_commit_path
from spark_tests.faults.concurrency.row_commands import rows_of
from spark_tests.faults.concurrency.row_model import (
    FIRST_ROWS,
    OPTIMIZE,
    PURGE,
    Command,
    Row,
    Rows,
    from_json,
)

Step = Mapping[str, Any]
Body = dict[str, Any]

_COMMIT = re.compile(r"_delta_log/\d{20}\.json")
_NO_CHANGE = (OPTIMIZE, PURGE)
# A command's name in `commitInfo`.
_OPERATIONS = {"append": "WRITE", "optimize": "OPTIMIZE", "purge": "REORG"}


@dataclass(frozen=True)
class Committed:
    """A command that became a version."""

    command: Command
    version: int
    read_version: int


class Files:
    """The files of every version by the JSON of the commits alone, and their rows, each file read once.

    Attributes
    ----------
    infos
        The `commitInfo` of each version.
    live
        The adds of each version, by path.
    named
        Every file that any version names, relative to the table.
    """

    def __init__(self, log: DeltaLog) -> None:
        self._storage = log.storage
        self.infos: list[Body] = []
        self.live: list[dict[str, Body]] = []
        self.named: set[str] = set()
        self._rows: dict[str, list[Row]] = {}
        self._of_add: dict[str, list[Row]] = {}
        self.catch_up()

    def catch_up(self) -> None:
        """Read the commits that have come since."""
        first = relative_commit_path(len(self.live)).rpartition("/")[2]
        names = [status.path for status in self._storage.list_from("_delta_log", first)]
        for version, name in enumerate(filter(_COMMIT.fullmatch, names), len(self.live)):
            assert name == relative_commit_path(version)
            self._follow(name, [json.loads(line) for line in self._storage.read(name).splitlines()])

    def _follow(self, name: str, actions: Sequence[dict[str, Body]]) -> None:
        bodies = {kind: [a[kind] for a in actions if kind in a] for kind in ("add", "remove", "cdc")}
        (info,) = [action["commitInfo"] for action in actions if "commitInfo" in action]
        live = dict(self.live[-1]) if self.live else {}
        for body in bodies["remove"]:
            before = live.pop(body["path"], None)
            assert before is not None, f"{name} removes what is not there"
            assert before.get("deletionVector") == body.get("deletionVector"), name
        for body in bodies["add"]:
            assert body["path"] not in live, f"{name} adds what is there"
            live[body["path"]] = body
        self.named |= _files_of(bodies["add"]) | {unquote(body["path"]) for body in bodies["cdc"]}
        self.infos.append(info)
        self.live.append(live)

    def named_by(self, version: int) -> set[str]:
        """The files that a version is made of."""
        return _files_of(self.live[version].values())

    def rows(self, version: int) -> list[Row]:
        """The rows of a version."""
        return [row for body in self.live[version].values() for row in self._live_rows(body)]

    def _live_rows(self, body: Body) -> list[Row]:
        key = json.dumps([body["path"], body.get("deletionVector")])
        if key not in self._of_add:
            rows, vector = self._all_rows(body), _vector(body)
            gone = frozenset(read_positions(self._storage, vector).tolist()) if vector else frozenset()
            self._of_add[key] = [row for place, row in enumerate(rows) if place not in gone]
        return self._of_add[key]

    def _all_rows(self, body: Body) -> list[Row]:
        path = body["path"]
        if path not in self._rows:
            table = pq.ParquetFile(io.BytesIO(self._storage.read(unquote(path)))).read()
            if "part" not in table.column_names:
                part = int(body["partitionValues"]["part"])
                table = table.append_column("part", [[part] * table.num_rows])
            self._rows[path] = rows_of(table)
        return self._rows[path]


def _files_of(adds: Iterable[Body]) -> set[str]:
    vectors = [vector.path for body in adds if (vector := _vector(body))]
    return {unquote(path) for path in (*(body["path"] for body in adds), *vectors) if path}


def _vector(body: Body) -> DeletionVectorDescriptor | None:
    found = body.get("deletionVector")
    if found is None:
        return None
    return DeletionVectorDescriptor(
        found["storageType"], found["pathOrInlineDv"], found.get("offset"), found["sizeInBytes"],
        found["cardinality"],
    )  # fmt: skip


class History:
    """A race on one table, after it is over.

    Parameters
    ----------
    log
        The table.
    level
        Its isolation level.
    steps
        What all processes noted of it; see `row_race_worker.race`.
    files
        Its files, where they were read before; None: they are read here.
    """

    def __init__(self, log: DeltaLog, level: str, steps: Iterable[Step], files: Files | None = None) -> None:
        self.log = log
        self.level = level
        self.steps = list(steps)
        self.files = Files(log) if files is None else files
        self._tables: dict[int, Rows] = {}

    @cached_property
    def winners(self) -> list[Committed]:
        """All versions but the first."""
        commands = {step["said"]: from_json(step["command"]) for step in self.steps}
        infos = self.files.infos[1:]
        return [
            Committed(commands[info["userMetadata"]], version, info["readVersion"])
            for version, info in enumerate(infos, 1)
        ]

    def check(self, every: int = 1) -> None:
        """Check all there is to be checked.

        Parameters
        ----------
        every
            Of how many versions one is read by the kernel too; all of them are held against the replay.
        """
        self._check_outcomes()
        self._check_versions()
        self._check_serial_order()
        self._check_refusals()
        self._check_idle_steps()
        self._check_readable(every)
        self._check_files()

    # --- what became of each step

    def _check_outcomes(self) -> None:
        """Every version is one step's, no step has two, and none that was refused has one."""
        refused = {step["said"] for step in self.steps if "error" in step}
        said = [info.get("userMetadata") for info in self.files.infos[1:]]
        assert len(said) == len(set(said)), "a command was committed twice"
        assert not refused & set(said), "a command was committed, and told to be refused"
        for info, winner in zip(self.files.infos[1:], self.winners, strict=True):
            kind = winner.command.kind
            assert info["operation"] == _OPERATIONS.get(kind, kind.upper()), info
            step = next(step for step in self.steps if step["said"] == info["userMetadata"])
            assert step["before"] < winner.version <= step["after"], step

    def _check_refusals(self) -> None:
        """Every refusal is a named one, and names a version that explains it."""
        for step in self.steps:
            if "error" not in step:
                continue
            kind = getattr(exceptions, step["error"])
            assert issubclass(kind, DeltaConcurrentModificationException), step
            assert not from_json(step["command"]).is_blind, step
            if kind is DeltaConcurrentModificationException:  # OPTIMIZE, whose files are gone
                assert step["command"]["kind"] in _NO_CHANGE, step
                continue
            winner = self.winners[step["winner"] - 1]
            assert step["before"] < winner.version <= step["after"], step
            assert step["winning_operation"] == self.files.infos[winner.version]["operation"], step
            if self.level == "WriteSerializable" and step["error"] == "ConcurrentAppendException":
                assert not winner.command.is_blind, step

    def _check_idle_steps(self) -> None:
        """What neither failed nor made a version had nothing to do in a version that was the newest while it ran."""
        said = {info.get("userMetadata") for info in self.files.infos}
        for step in self.steps:
            command = from_json(step["command"])
            if "error" in step or step["said"] in said or command.kind in _NO_CHANGE:
                continue
            seen = range(step["before"], step["after"] + 1)
            assert any(command.apply(rows := self._table(v)) == rows for v in seen), step

    def _table(self, version: int) -> Rows:
        if version not in self._tables:
            self._tables[version] = {row[0]: row for row in self.files.rows(version)}
        return self._tables[version]

    # --- the rows

    def _check_versions(self) -> None:
        """The rows of every version are those of a replay of the commits up to it, each of which sees what it had to.

        At Serializable that is all that came before. At WriteSerializable an append that came in between may be passed
        over, and nothing else.
        """
        rows: Rows = {row[0]: row for row in FIRST_ROWS}
        appended: dict[int, int] = {}
        assert sorted(self.files.rows(0)) == sorted(rows.values())
        for winner in self.winners:
            unseen: Rows = {}
            if self.level == "WriteSerializable":
                unseen = {
                    n: row for n, row in rows.items() if appended.get(n, 0) > winner.read_version
                }  # fmt: skip
            seen = {number: row for number, row in rows.items() if number not in unseen}
            rows = winner.command.apply(seen) | unseen
            if winner.command.is_blind:
                appended |= {row[0]: winner.version for row in winner.command.rows}
            found = self.files.rows(winner.version)
            assert sorted(found) == sorted(rows.values()), (self.level, winner)

    def _check_serial_order(self) -> None:
        """All winners, one after the other in one order, come to the rows of the newest version."""
        rows: Rows = {row[0]: row for row in FIRST_ROWS}
        for winner in self.serial_order():
            rows = winner.command.apply(rows)
        assert sorted(rows.values()) == sorted(self.files.rows(len(self.files.live) - 1)), self.level

    def serial_order(self) -> list[Committed]:
        """By version, but for appends that a later command has passed over: they come after it."""
        if self.level == "Serializable":
            return self.winners
        places = {winner.version: (winner.version, 0) for winner in self.winners}
        for index, append in enumerate(self.winners):
            if not append.command.is_blind:
                continue
            for later in self.winners[index + 1 :]:
                if later.command.is_blind:
                    continue
                before = self._table(later.version - 1)
                left = [before[row[0]] for row in append.command.rows if row[0] in before]
                if not left:
                    break
                if any(later.command.touches(row) for row in left):
                    if later.read_version >= append.version:
                        break
                    places[append.version] = (later.version, append.version)
        return sorted(self.winners, key=lambda winner: places[winner.version])

    def _check_readable(self, every: int) -> None:
        last = len(self.winners)
        for version in {*range(0, last, every), last}:
            snapshot = self.log.snapshot(version=version)
            assert sorted(rows_of(snapshot.scan().to_arrow())) == sorted(self.files.rows(version)), version

    def _check_files(self) -> None:
        """What was refused has left no file."""
        folder = Path(self.log.storage.address.path)
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert {path for path in there if not path.startswith("_delta_log/")} == self.files.named
