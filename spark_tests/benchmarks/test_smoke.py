"""The benchmarks' generators make tables that the kernel reads, and the harness prints what it measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data_tables import write_data_table, z85
from benchmarks.log_tables import write_log_table
from delta_ds import DeltaLog

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("layout", ["json", "v1", "v2", "v1_tail"])
def test_log_table_of_every_layout_holds_the_asked_number_of_files(tmp_path: Path, layout: str) -> None:
    table = write_log_table(tmp_path / "table", layout, files=120, commits=5, tail=4)
    assert DeltaLog(table).snapshot().live_files().num_rows == 120


@pytest.mark.parametrize("layout", ["json", "v1", "v2", "v1_tail"])
def test_filters_keep_the_same_files_in_every_layout(tmp_path: Path, layout: str) -> None:
    table = write_log_table(tmp_path / "table", layout, files=400, commits=5, tail=4)
    snapshot = DeltaLog(table).snapshot()
    assert snapshot.files("day = '2025-01-03'").num_rows == 2
    assert snapshot.files("id BETWEEN 100000 AND 104999").num_rows == 5


def test_data_table_holds_the_asked_rows(tmp_path: Path) -> None:
    table = write_data_table(tmp_path / "table", rows=1000, files=4)
    rows = DeltaLog(table).snapshot().scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(1000))


def test_deletion_vectors_hide_their_share_of_rows(tmp_path: Path) -> None:
    table = write_data_table(tmp_path / "table", rows=1000, files=4, deleted_share=0.1)
    rows = DeltaLog(table).snapshot().scan().to_arrow()
    assert rows.num_rows == 900
    assert 0 not in rows["id"].to_pylist()


def test_z85_matches_the_published_example() -> None:
    assert z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"


def test_run_prints_tables_for_the_parts_without_spark() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--files", "200", "--rounds", "1"]
    command += ["--only", "imports", "--only", "load", "--only", "plan"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for title in ("## Imports", "## Snapshot load, 200 files", "## Planning, 200 files"):
        assert title in done.stdout


def test_measured_process_that_fails_shows_its_error() -> None:
    from benchmarks.measure import run_once

    with pytest.raises(RuntimeError, match="no such thing"):
        run_once([sys.executable, "-c", "raise SystemExit('no such thing')"])
