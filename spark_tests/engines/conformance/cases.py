"""The cases of a folder in the documented form: finding them, and preparing a copy that can be read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASE_DIRECTORY = "@@CASE_DIR@@"


@dataclass(frozen=True, slots=True)
class Case:
    """One table on disk and the record of what the reference reader makes of it."""

    folder: Path
    record: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.record.get("name", self.folder.name))

    @property
    def table(self) -> str:
        """The path of the table."""
        return str(self.folder / "table")

    @property
    def timezone(self) -> str:
        return str(self.record.get("session_timezone") or "UTC")

    @property
    def latest(self) -> int | None:
        """The newest version the reference saw; None where it could not open the table."""
        version = self.record["versions"].get("latest")
        return None if version is None else int(version)


class NoCasesError(Exception):
    """The folder holds no case."""


def find_cases(directory: str | os.PathLike[str]) -> list[Case]:
    """Every case of a `tables` folder, of its parent, or the one case that the folder itself is.

    Raises
    ------
    NoCasesError
        There is no `case.json` where one may lie.
    """
    root = Path(directory)
    for candidate in (root, root / "tables"):
        found = list(_cases_in(candidate))
        if found:
            return found
    raise NoCasesError(f"{root} holds no cases: no case.json in it, in a folder of it, or of its tables/")


def _cases_in(root: Path) -> Iterator[Case]:
    if not root.is_dir():
        return
    folders = [root] if (root / "case.json").is_file() else sorted(root.iterdir())
    for folder in folders:
        record = folder / "case.json"
        if record.is_file():
            yield Case(folder, json.loads(record.read_text(encoding="utf-8")))


def prepare(case: Case, destination: Path) -> Case:
    """Copy a case to `destination`, and put in absolute paths (in its record too) and commit times."""
    shutil.copytree(case.folder, destination, dirs_exist_ok=True, copy_function=shutil.copy)
    # A corpus may be read-only, and copies inherit that; engines and clean-up need to write.
    for folder, _, files in os.walk(destination):
        os.chmod(folder, 0o755)
        for name in files:
            os.chmod(os.path.join(folder, name), 0o644)
    destination = destination.resolve()
    log = destination / "table" / "_delta_log"
    record = case.record
    if record.get("placeholders"):
        _put_in_paths(log, destination)
        here = json.dumps(str(destination))[1:-1]
        record = json.loads(json.dumps(record, ensure_ascii=False).replace(CASE_DIRECTORY, here))
    if log.is_dir():
        _set_commit_times(log, record.get("log_mtimes_ms") or {})
    return Case(destination, record)


def _put_in_paths(log: Path, case_directory: Path) -> None:
    for file in log.iterdir():
        if file.is_file() and file.suffix != ".parquet":
            file.write_bytes(file.read_bytes().replace(CASE_DIRECTORY.encode(), str(case_directory).encode()))


def _set_commit_times(log: Path, times_ms: dict[str, Any]) -> None:
    if "rule" in times_ms:
        times_ms = dict(_times_in_commits(log))
    for version, time_ms in times_ms.items():
        file = log / f"{int(version):020d}.json"
        if file.exists():
            os.utime(file, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def _times_in_commits(log: Path) -> Iterator[tuple[str, int]]:
    for file in log.glob("[0-9]" * 20 + ".json"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if '"commitInfo"' in line:
                yield file.stem, json.loads(line)["commitInfo"]["timestamp"]
                break
