"""Holds the notes of a load against the log, and against a serial replay of what was committed."""

from __future__ import annotations

import bisect
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.vacuum import vacuum
from spark_tests.faults.chaos.spark_app import STREAM
from spark_tests.faults.chaos.worker import FEED, READ, VACUUM
from spark_tests.faults.concurrency.row_commands import rows_of
from spark_tests.faults.concurrency.row_history import Committed, Files, History
from spark_tests.faults.concurrency.row_model import APPEND, OPTIMIZE, PURGE, from_json

Step = dict[str, Any]

_OF_VACUUM = ("VACUUM START", "VACUUM END")
_FAR_AHEAD_MS = 4_000_000_000_000


@dataclass
class Noted:
    """What all processes have noted.

    Attributes
    ----------
    steps
        By their names; with what came of them, where they have come to an end.
    fed
        The same of the table that a stream reads.
    faults
        Of the local disk.
    restarts
        Errors of the stream's query.
    """

    steps: dict[str, Step] = field(default_factory=dict)
    fed: dict[str, Step] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    restarts: list[str] = field(default_factory=list)


def read_notes(folder: Path) -> Noted:
    """The notes in a folder."""
    found, steps = Noted(), {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            note = json.loads(line)
            if "fault" in note:
                found.faults[note["fault"]] += 1
            elif "stream" in note:
                found.restarts.append(note["stream"])
            else:
                steps.setdefault(note["said"], {}).update(note)
    for said, step in steps.items():
        if step["kind"] == FEED:
            found.fed[said] = {**step, "kind": APPEND}
        else:
            found.steps[said] = step
    return found


def check_copy(source: DeltaLog, target: DeltaLog) -> tuple[list[str], list[str]]:
    """What a stream from a table that only grows has lost and doubled in the other."""
    wanted = Counter(rows_of(source.snapshot().scan().to_arrow()))
    found = Counter(rows_of(target.snapshot().scan().to_arrow()))
    lost = [f"row {row} of the stream" for row in (wanted - found)]
    return lost, [f"row {row} of the stream" for row in (found - wanted)]


class ChaosHistory(History):
    """A load on one table, after it is over.

    Parameters
    ----------
    log
        The table, without any trouble on the way.
    steps
        See `read_notes`.
    files
        Read while the load ran: VACUUM has taken some of them away since.

    Attributes
    ----------
    lost, doubled
        Operations that were told to be committed and are not there; that are there twice.
    problems
        What else is wrong, each in one line.
    """

    def __init__(self, log: DeltaLog, steps: dict[str, Step], files: Files) -> None:
        super().__init__(log, "WriteSerializable", [], files)
        self.noted = steps
        self.lost: list[str] = []
        self.doubled: list[str] = []
        self.problems: list[str] = []

    @cached_property
    def versions_of(self) -> dict[str, list[int]]:
        """The versions by what their commits said."""
        found: dict[str, list[int]] = {}
        for version, info in enumerate(self.files.infos[1:], 1):
            if info["operation"] not in _OF_VACUUM:
                found.setdefault(str(info.get("userMetadata")), []).append(version)
        return found

    @cached_property
    def winners(self) -> list[Committed]:
        versions = {version: said for said, found in self.versions_of.items() for version in found}
        return [
            Committed(
                from_json(self.noted[said]["command"]), version, self.files.infos[version]["readVersion"]
            )
            for version, said in sorted(versions.items())
            if said in self.noted
        ]

    def check(self, every: int = 1) -> None:
        for law in (
            self._check_told, self._check_known, self._check_rows, self._check_reads, self._check_idle,
            self._check_times, self._check_checksums, self._check_newest_rows, self._check_clean_end,
        ):  # fmt: skip
            self._hold(law)

    def _hold(self, law: Callable[[], None]) -> None:
        try:
            law()
        except AssertionError as error:
            self.problems.append(f"{law.__name__}: {str(error)[:1000]}")
        except (FileNotFoundError, DeltaError) as error:
            self.lost.append(f"{law.__name__}: {error}")

    def _check_told(self) -> None:
        """Every outcome is as it was told."""
        for said, step in self.noted.items():
            versions = self.versions_of.get(said, [])
            if len(versions) > 1:
                self.doubled.append(f"{said} in {versions}")
            if "unnamed" in step:
                self.problems.append(f"unnamed error of {said} ({step['kind']}): {step['unnamed']}")
            if step["kind"] in (READ, VACUUM, STREAM) or "ended" not in step:
                continue
            if step.get("version") is not None and step["version"] not in versions:
                self.lost.append(
                    f"{said} {step['kind']} was told version {step['version']}, is in {versions}"
                )
            says_no = "told" in step and step["told"] != "uncertain"
            if versions and (says_no or ("version" in step and step["version"] is None)):
                told = step.get("text", "there was nothing to do")
                self.problems.append(f"{said} is version {versions}, and was told: {told}")

    def _check_known(self) -> None:
        """Every version is one that somebody has tried."""
        unknown = [
            f"{said} {versions}" for said, versions in self.versions_of.items() if said not in self.noted
        ]
        assert not unknown, f"nobody has tried {unknown}"
        vacuums = Counter(info["operation"] for info in self.files.infos if info["operation"] in _OF_VACUUM)
        tried = sum(step["kind"] == VACUUM for step in self.noted.values())
        assert max(vacuums.values(), default=0) <= tried, f"{tried} VACUUM, and {vacuums}"

    def _check_rows(self) -> None:
        """The rows of every version are those of a replay, and so is some serial order."""
        self._check_versions()
        self._check_serial_order()

    @cached_property
    def _successes(self) -> list[tuple[int, int]]:
        """When a version was known to be there, and the newest one known by then."""
        known = sorted(
            (step["ended"], step["version"])
            for step in self.noted.values()
            if "ended" in step and step.get("version") is not None
        )
        newest, out = 0, []
        for ended, version in known:
            newest = max(newest, version)
            out.append((ended, newest))
        return out

    def _known_at(self, moment: int) -> int:
        place = bisect.bisect_left(self._successes, (moment, -1))
        return self._successes[place - 1][1] if place else 0

    def _check_reads(self) -> None:
        """A read is one version exactly, and none older than one that somebody had before."""
        for said, step in self.noted.items():
            if step["kind"] != READ or "rows" not in step:
                continue
            rows = sorted(tuple(row) for row in step["rows"])
            assert rows == sorted(self.files.rows(step["version"])), (
                f"{said} read other rows: {step['version']}"
            )
            before = self._known_at(step["began"])
            assert step["version"] >= before, f"{said} read version {step['version']} after {before}"

    def _check_idle(self) -> None:
        """Who was told that there was nothing to do had nothing to do."""
        last = len(self.files.live) - 1
        for said, step in self.noted.items():
            maintains = step["kind"] in (READ, VACUUM, OPTIMIZE, PURGE, STREAM)
            if (
                maintains
                or "ended" not in step
                or {"told", "unnamed"} & step.keys()
                or said in self.versions_of
            ):
                continue
            command = from_json(step["command"])
            seen = range(self._known_at(step["began"]), last + 1)
            assert any(command.apply(self._table(v)) == self._table(v) for v in seen), (
                f"{said} had something to do"
            )

    def _check_times(self) -> None:
        """In-commit timestamps grow, however far apart the clocks are."""
        times = [info["inCommitTimestamp"] for info in self.files.infos]
        assert all(first < second for first, second in zip(times, times[1:], strict=False)), times

    def _check_checksums(self) -> None:
        """A `.crc` that is there is that of its version."""
        storage = self.log.storage
        for status in storage.list_from("_delta_log"):
            name = status.path.rpartition("/")[2]
            if name.endswith(".crc"):
                body, version = json.loads(storage.read(status.path)), int(name[:20])
                assert body["numFiles"] == len(self.files.live[version]), name
                assert body["tableSizeBytes"] == sum(f["size"] for f in self.files.live[version].values()), (
                    name
                )

    def _check_newest_rows(self) -> None:
        """The kernel reads the newest version, whichever checkpoint it begins with."""
        snapshot = DeltaLog(self.log.storage.url, self.log.storage.options).snapshot()
        assert snapshot.version == len(self.files.live) - 1
        found = rows_of(snapshot.scan().to_arrow())
        self._count(found)
        assert sorted(found) == sorted(self.files.rows(snapshot.version)), "the newest version has other rows"

    def _count(self, found: Iterable[tuple[int, ...]]) -> None:
        numbers = Counter(row[0] for row in found)
        self.doubled += [f"row {number}" for number, count in numbers.items() if count > 1]
        wanted = {row[0] for row in self.files.rows(len(self.files.live) - 1)}
        self.lost += [f"row {number}" for number in wanted - numbers.keys()]

    def _check_clean_end(self) -> None:
        """When everybody is gone VACUUM leaves the files of the newest version, all of them, and no others."""
        log = DeltaLog(self.log.storage.url, self.log.storage.options)
        vacuum(log, 0, retention_check=False, now_ms=_FAR_AHEAD_MS, record=False)
        there = set()
        for batch in log.storage.list_below("", lambda folder: folder != "_delta_log"):
            there |= {row["path"] for row in batch.to_pylist() if not row["is_folder"]}
        there = {path for path in there if not path.startswith("_delta_log")}
        needed = self.files.named_by(len(self.files.live) - 1)
        assert not needed - there, f"VACUUM has deleted {sorted(needed - there)}"
        assert not there - needed, f"VACUUM has left {sorted(there - needed)}"
