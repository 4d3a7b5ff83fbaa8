"""What has to hold of a table after jobs whose tasks failed and whose executors were killed."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.storage.uri import decode


def check_table(path: str) -> tuple[int, int]:
    """Orphans and missing files of a table; nothing writes to it any more.

    Raises
    ------
    AssertionError
        A file is added twice, the history has a gap, or a data file lies there that VACUUM would not find.
    """
    log = DeltaLog(path)
    versions = [commit["version"] for commit in log.history()]
    assert versions == list(range(max(versions), -1, -1)), f"the history has a gap: {versions}"
    _check_adds(Path(path), max(versions))
    live = {decode(name) for name in log.snapshot().files()["path"].to_pylist()}
    removed = _removed(Path(path), max(versions))
    there = set(_data_files(Path(path)))
    missing = live - there
    unused = there - live
    found = set(vacuum(log, 0, dry_run=True, retention_check=False).paths.to_pylist())
    assert found >= unused, f"VACUUM would leave {sorted(unused - found)[:5]}"
    assert not found & live, f"VACUUM would delete {sorted(found & live)[:5]}"
    vacuum(log, 0, retention_check=False)
    left = set(_data_files(Path(path)))
    assert left == live - missing, f"VACUUM left {sorted(left - live)[:5]}"
    return len(unused - removed), len(missing)


def _check_adds(table: Path, newest: int) -> None:
    live: set[str] = set()
    for version in range(newest + 1):
        actions = _actions(table, version)
        gone = [action["remove"]["path"] for action in actions if "remove" in action]
        come = [action["add"]["path"] for action in actions if "add" in action]
        assert max(Counter(come).values(), default=1) == 1, f"version {version} adds a file twice"
        assert max(Counter(gone).values(), default=1) == 1, f"version {version} removes a file twice"
        assert live >= set(gone), f"version {version} removes what is not there"
        live -= set(gone)
        assert not live & set(come), f"version {version} adds what is there"
        live |= set(come)


def _removed(table: Path, newest: int) -> set[str]:
    """Files that a version named: removed ones, and change files."""
    found = set()
    for version in range(newest + 1):
        for action in _actions(table, version):
            for kind in ("remove", "cdc"):
                if kind in action:
                    found.add(decode(action[kind]["path"]))
    return found


def _actions(table: Path, version: int) -> list[dict[str, dict[str, str]]]:
    text = (table / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def _data_files(table: Path) -> list[str]:
    """All Parquet files below a table, in folders of whatever name, but for those of the log."""
    found = []
    for folder, folders, files in os.walk(table):
        if "_delta_log" in folders:
            folders.remove("_delta_log")
        found += [
            os.path.relpath(os.path.join(folder, name), table) for name in files if name.endswith(".parquet")
        ]
    return found
