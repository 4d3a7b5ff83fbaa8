"""The benchmarks of commands: their tables, every case on tables of a thousand rows, and what is printed."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

from benchmarks.command_parts import TABLES, Taken, first_rows, rows_of
from benchmarks.command_tables import make_tables, numbers, sizes
from benchmarks.command_worker import COMMANDS, linked_copy, measure
from benchmarks.process_tree import Process, Watch, memory, parse, processes, tree
from delta_ds import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = sizes(0)


def test_half_of_the_source_of_a_merge_is_in_the_table(tmp_path: Path) -> None:
    made = make_tables(tmp_path, TINY, ["plain", "source"])
    known = DeltaLog(made["plain"]).snapshot().scan().to_arrow()["id"].to_pylist()
    source = ds.dataset(made["source"]).to_table()["id"].to_pylist()
    assert (len(set(source)), len(set(source) & set(known))) == (TINY.merged, TINY.merged // 2)


def test_table_in_which_rows_are_marked_has_the_same_rows(tmp_path: Path) -> None:
    made = make_tables(tmp_path, TINY, ["plain", "vectors"])
    plain, marked = (DeltaLog(made[name]).snapshot() for name in ("plain", "vectors"))
    assert marked.metadata.configuration == {"delta.enableDeletionVectors": "true"}
    assert marked.scan().to_arrow().sort_by("id") == plain.scan().to_arrow().sort_by("id")


def test_changed_copy_leaves_the_table_alone(tmp_path: Path) -> None:
    source = make_tables(tmp_path, TINY, ["to vacuum"])["to vacuum"]
    before = sorted(path.name for path in Path(source).rglob("*"))
    with linked_copy(source, str(tmp_path)) as copy:
        files = [path for path in Path(copy).rglob("*") if path.is_file()]
        assert min(path.stat().st_mtime for path in files) == max(path.stat().st_mtime for path in files)
        for path in files:
            path.unlink()
    assert sorted(path.name for path in Path(source).rglob("*")) == before


def test_every_case_of_every_command_does_its_work(spark: SparkSession, tmp_path: Path) -> None:
    tables = make_tables(tmp_path, TINY, ["plain", "vectors", "source", "small files", "to vacuum", "log"])
    both = {"sizes": {"large": numbers(TINY)}, "tables": {"large": {**tables, "to order": tables["plain"]}}}
    settings = {"format": "pydelta", "rounds": 1, "folder": str(tmp_path), "warm": [], **both}
    found: dict[str, dict[str, Any]] = {}
    for command, (names, _) in TABLES.items():
        for record in measure(spark, {**settings, "command": command, "table": names[-1]}):
            found[record["case"]] = record
    assert not [record["failed"] for record in found.values() if "failed" in record]
    assert set(found) == {case for cases in COMMANDS.values() for case in cases}
    answers = {name: record["answer"].partition(",")[0] for name, record in found.items()}
    assert answers["delete 1 %, lying together"] == answers["delete 1 %, spread over all files"] == "990 rows"
    assert answers["merge, half of the source matched"] == "1"
    assert found["merge, half of the source matched"]["answer"].startswith("1,050 rows")
    assert found["compaction"]["shown"] == "10 files became 1"
    assert answers["compaction with nothing to do"] == "0 files rewritten"
    assert (answers["vacuum, dry run"], answers["vacuum"]) == ("40 files left", "20 files left")


def test_processes_of_the_tree_are_those_below_its_root() -> None:
    stat = "7 (a (b) c) S 3 7 7 0 -1 0 0 0 0 0 100 50 25 25 20 0 1 0 99 1000 256 0 0"
    found = parse(stat)
    assert (found.parent, found.name) == (3, "a (b) c")
    assert found.cpu_s == 200 / os.sysconf("SC_CLK_TCK")
    assert found.rss_mb == 256 * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    running = {3: parse(stat.replace(" S 3 ", " S 1 ")), 7: found, 8: parse(stat.replace(" S 3 ", " S 7 "))}
    assert set(tree(running, 3)) == {3, 7, 8} and set(tree(running, 8)) == {8} and not tree(running, 9)


def test_memory_of_what_the_jvm_is_starting_does_not_count() -> None:
    running = {
        1: Process(0, "python3.11", 0, 10),
        2: Process(1, "java", 0, 1000),
        3: Process(2, "python", 0, 20),
        4: Process(2, "java", 0, 1000),
        5: Process(2, "Executor task l", 0, 1000),
    }
    assert memory(running) == (1000, 30)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_watch_sees_the_time_and_memory_of_this_process() -> None:
    with Watch() as watch:
        held = bytearray(os.urandom(1 << 20)) * 64
        sum(range(2_000_000))
    assert len(held) == 64 << 20
    assert watch.used.peak_mb >= processes()[os.getpid()].rss_mb > 64
    assert watch.used.cpu_s >= 0 and watch.used.seconds > 0


def test_sides_that_find_different_rows_are_called_out() -> None:
    cost = {"seconds": 2.0, "cpu_s": 3.0, "peak_mb": math.nan, "jvm_mb": math.nan, "python_mb": math.nan}
    ours = Taken([{**cost, "answer": "10 rows, 0a", "shown": ""}])
    theirs = Taken([{**cost, "seconds": 4.0, "answer": "10 rows, 0b", "shown": ""}])
    first, second = rows_of(
        ("delete", "plain", "delete"), {"pydelta, Spark 4.3.0": ours, "delta, Spark 4.2.0": theirs}
    )
    assert first[:5] == ["delete", "copy-on-write", "pydelta, Spark 4.3.0", "2.00 s", "3.0 s"]
    assert first[5:10] == ["", "", "", "0.50", "1.00"]
    assert "not all found the same" in str(first[10]) and "not all found the same" in str(second[10])


def test_side_that_failed_says_why() -> None:
    rows = rows_of(("delete", "plain", "delete"), {"pydelta, Spark 4.3.0": Taken(failed="SchemaError: no")})
    assert "**failed**: SchemaError: no" in json.dumps(rows)


def test_first_command_of_a_session_is_held_against_the_second() -> None:
    runs = [{"seconds": 6.0, "cpu_s": 9.0}, {"seconds": 2.0, "cpu_s": 6.0}, {"seconds": 1.0, "cpu_s": 1.0}]
    first = Taken(small=runs, session={"seconds": 8.0, "cpu_s": 12.0})
    later = Taken(small=runs)
    found = {("delete", "plain", "a"): {"pydelta": first}, ("delete", "plain", "b"): {"pydelta": later}}
    assert first_rows(found) == [
        ["a", "copy-on-write", "pydelta", "8.00 s, 12.0 s", "6.00 s, 9.0 s", "2.00 s, 6.0 s", "3.0, 1.5"]
    ]
