"""The benchmarks' generators make tables that the kernel reads, and the harness prints what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data_tables import write_data_table, z85
from benchmarks.large_logs import live_files, write_large_log
from benchmarks.log_tables import write_log_table
from benchmarks.measure import failures, run_once
from benchmarks.native_tables import WIDE, write_dimension, write_vector_table, write_wide_table
from benchmarks.write_tables import add_body, added_in, commits_of, write_small_table
from delta_ds import DeltaLog
from delta_ds.kernel.files.scan.scan import Scan
from spark_tests.full_form import FULL

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("layout", ["json", "v1", "v2", "v1_tail"])
def test_log_table_of_every_layout_holds_the_asked_number_of_files(tmp_path: Path, layout: str) -> None:
    table = write_log_table(tmp_path / "table", layout, files=120, commits=5, tail=4)
    assert DeltaLog(table).open_snapshot().live_files().num_rows == 120


@pytest.mark.parametrize("layout", ["json", "v1", "v2", "v1_tail"])
def test_filters_keep_the_same_files_in_every_layout(tmp_path: Path, layout: str) -> None:
    table = write_log_table(tmp_path / "table", layout, files=400, commits=5, tail=4)
    snapshot = DeltaLog(table).snapshot()
    assert snapshot.files("day = '2025-01-03'").num_rows == 2
    assert snapshot.files("id BETWEEN 100000 AND 104999").num_rows == 5


def test_large_log_holds_the_asked_number_of_files_and_filters_find_them(tmp_path: Path) -> None:
    table = write_large_log(tmp_path / "table", files=400, commits=4)
    snapshot = DeltaLog(table).open_snapshot()
    assert Scan(snapshot, "day = '2025-01-03'").files().num_rows == 2
    assert Scan(snapshot, "id BETWEEN 100000 AND 104999").files().num_rows == 5
    assert Scan(snapshot, "event_time = '2025-01-01 03:20:30'").files().num_rows == 1
    assert snapshot.live_files().num_rows == live_files(400, 4) == 400


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
    command += ["--rows", "2000"]
    for part in ("imports", "load", "plan", "curve", "kernel"):
        command += ["--only", part]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    titles = ("Imports", "Snapshot load, 200 files", "Planning, 200 files", "Without Spark")
    for title in (
        *titles,
        "Loading and planning by number of files",
        "The same by commits since the checkpoint",
    ):
        assert f"## {title}" in done.stdout


full_form = pytest.mark.skipif(
    not FULL,
    reason="takes minutes for what only benchmarks use; DELTA_DS_FULL=1 runs it",
)


@full_form
@pytest.mark.parametrize(
    ("part", "title"),
    [
        ("commits", "## 2 commits, one after the other"),
        ("writers", "## 2 writers x 2 appends"),
        ("checkpoint", "## Checkpoint, 60 files"),
    ],
)
def test_run_prints_a_table_for_each_part_that_writes_without_spark(part: str, title: str) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--rounds", "1", "--only", part]
    command += ["--files", "60", "--commits", "2", "--writers", "2", "--appends", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert title in done.stdout
    assert "| delta_ds |" in done.stdout


@full_form
def test_run_prints_what_fresh_processes_pay() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--rounds", "1", "--only", "start"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| statistics filter | delta_ds, from cache |" in done.stdout


def test_small_table_of_the_write_benchmarks_is_a_table(tmp_path: Path) -> None:
    table = write_small_table(tmp_path / "table", checkpoint_interval=10)
    snapshot = DeltaLog(table).snapshot()
    assert (snapshot.version, [f.name for f in snapshot.schema]) == (0, ["id", "event_time", "user"])
    log = DeltaLog(table)
    assert log.start_transaction().add(add_body()).commit("WRITE", {"mode": "Append"}) == 1
    assert (commits_of(table), added_in(table)) == ([0, 1], 1)


def test_file_added_twice_is_noticed(tmp_path: Path) -> None:
    table = write_small_table(tmp_path / "table", checkpoint_interval=10)
    body = add_body()
    for _ in range(2):
        DeltaLog(table).start_transaction().add(body).commit("WRITE", {"mode": "Append"})
    with pytest.raises(RuntimeError, match="twice"):
        added_in(table)


@pytest.mark.spark
@pytest.mark.slow
@full_form
def test_spark_parts_that_write_print_their_tables() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--rounds", "1", "--rows", "500"]
    command += ["--only", "append"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "## Append in Spark" in done.stdout
    assert "pydelta, zstd, no statistics" in done.stdout


@pytest.mark.spark
@pytest.mark.slow
@full_form
def test_connect_part_prints_a_line_for_each_of_its_cases() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--rounds", "1", "--rows", "8000", "--only", "connect"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "## Spark Connect" in done.stdout
    assert all(f"| {case} |" in done.stdout for case in ("count", "join of two ranges", "append", "merge"))


@pytest.mark.spark
@pytest.mark.slow
@full_form
def test_native_part_prints_a_table_for_each_of_its_cases() -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--rounds", "1", "--rows", "2000", "--files", "60"]
    done = subprocess.run([*command, "--only", "native"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for title in ("### Reads", "### Planning, 60 files", "### Append of 1,000 rows", "### First query"):
        assert title in done.stdout
    assert "broadcast was chosen before running: pydelta yes" in done.stdout
    assert "delta-spark was left out" in done.stdout
    appended = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("| snappy | pydelta", "| zstd | pydelta"))
    ]
    assert [line.split("|")[-2].strip() for line in appended] == ["9", "9"]


def test_wide_table_holds_the_rows_and_statistics_of_all_columns(tmp_path: Path) -> None:
    table = write_wide_table(tmp_path / "wide", rows=1000, files=4)
    snapshot = DeltaLog(table).snapshot()
    assert sorted(snapshot.scan().to_arrow()["id"].to_pylist()) == list(range(1000))
    for text in snapshot.files()["stats"].to_pylist():
        found = json.loads(text)
        assert set(found["nullCount"]) == {name for name, _ in WIDE}
        assert set(found["minValues"]) == set(found["nullCount"]) - {"flag"}
    assert snapshot.files("id BETWEEN 500 AND 509").num_rows == 1
    assert snapshot.files("user > 'user-~'").num_rows == 0


def test_vectors_hide_their_share_of_another_tables_files(tmp_path: Path) -> None:
    plain = write_wide_table(tmp_path / "wide", rows=1000, files=4)
    rows = DeltaLog(write_vector_table(tmp_path / "vectors", plain, 0.05)).snapshot().scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [n for n in range(1000) if n % 250 % 20]


def test_dimension_has_each_day_once(tmp_path: Path) -> None:
    wide = DeltaLog(write_wide_table(tmp_path / "wide", rows=1000, files=1)).snapshot().scan().to_arrow()
    days = DeltaLog(write_dimension(tmp_path / "days")).snapshot().scan().to_arrow()["sold_on"].to_pylist()
    assert len(set(days)) == len(days)
    assert set(wide["sold_on"].to_pylist()) <= set(days)


def test_failures_are_counted_by_name() -> None:
    answers = iter([1, 0, 0])
    assert failures(lambda: 1 / next(answers), 3) == {"ZeroDivisionError": 2}


def test_measured_process_that_fails_shows_its_error() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        run_once([sys.executable, "-c", "raise SystemExit('no such thing')"])
