"""Whatever makes a scan of the newest version fail is a finding of fsck."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError, NotADeltaTableError, UnsupportedFeatureError
from delta_ds.kernel.commands.fsck import check
from spark_tests.faults.corrupted import damage
from spark_tests.faults.corrupted.every_command import bounded
from spark_tests.faults.corrupted.templates import KINDS, copy_of
from spark_tests.full_form import FULL, QUICK

SCANS: dict[str, Callable[[Path], object]] = {
    "all": lambda path: DeltaLog(path).snapshot().scan().to_arrow(),
    "filter": lambda path: DeltaLog(path).snapshot().scan("id > 2 and part >= date'1970-01-01'").to_arrow(),
    "struct": lambda path: DeltaLog(path).snapshot().scan("s.t = 'x'", columns=["s"]).to_arrow(),
    "count": lambda path: DeltaLog(path).snapshot().scan("id > 2").count(),
}


def failing_scans(path: Path) -> dict[str, DeltaError]:
    found = {name: _error(scan, path) for name, scan in SCANS.items()}
    return {name: error for name, error in found.items() if error is not None}


def _error(scan: Callable[[Path], object], path: Path) -> DeltaError | None:
    try:
        scan(path)
    except DeltaError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(400 if FULL else 2 if QUICK else 8))
@pytest.mark.parametrize("way", sorted(damage.WAYS))
def test_what_makes_a_scan_fail_is_found(
    way: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    random = Random(f"fsck {way} {seed}")
    path = copy_of(random.choice(KINDS), tmp_path / "table")
    damage.WAYS[way](path, random)
    with bounded(way):
        failing = failing_scans(path)
        try:
            found = list(check(DeltaLog(path), contents=True))
        except (NotADeltaTableError, UnsupportedFeatureError):
            return  # in words of its own, as of a table that only newer clients can read
    assert not failing or any(finding.kind.damage for finding in found), failing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("contents", [False, True])
def test_nothing_is_found_where_nothing_is_damaged(kind: str, contents: bool, tmp_path: Path) -> None:
    path = copy_of(kind, tmp_path / "table")
    assert not [f for f in check(DeltaLog(path), contents=contents) if f.kind.damage]
