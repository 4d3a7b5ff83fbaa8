"""Lazy frames, relations and datasets over a table, beside polars' `scan_delta`, DuckDB's `delta_scan` and deltalake's.

    python -m benchmarks.lazy_frames --files 300000 --rows 20000000

In an environment with polars, duckdb and deltalake beside what this package needs; DuckDB fetches its extension `delta`
once. Where it cannot, DuckDB reads the dataset of deltalake in its place. The table of many files is only a log: its
query has a filter that no file can match. Each query runs in a process of its own, opening the table included, without
the cache of snapshots; imports are not counted. Prints Markdown; the ratio is ours to that of the peer below it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.data_tables import write_data_table
from benchmarks.harness import as_table
from benchmarks.log_tables import write_log_table
from benchmarks.measure import Measurement, cpu_seconds, report, run_once

NOWHERE = -5
_MOST_FILES = 20_000
# The work -> a filter as (column, low, high), the columns that are asked for.
QUERIES: dict[str, tuple[tuple[str, int, int] | None, list[str]]] = {
    "a filter that no file matches": (("id", NOWHERE, NOWHERE + 1), ["id", "city"]),
    "one column of all rows": (None, ["amount"]),
    "all columns of all rows": (None, []),
    "a range in one file, two columns": (("id", 1000, 1999), ["id", "city"]),
    "a number that every file has, two columns": (("quantity", 50, 50), ["id", "city"]),
}
LOG_ONLY = "a filter that no file matches"


def polars_query(frame: Any, work: str) -> int:
    """How many rows a lazy frame gives."""
    import polars as pl

    where, columns = QUERIES[work]
    if where is not None:
        name, low, high = where
        frame = frame.filter(pl.col(name) >= low, pl.col(name) <= high)
    return int((frame.select(columns) if columns else frame).collect().height)


def duckdb_query(connection: Any, source: str, work: str) -> int:
    """How many rows a query of DuckDB gives, as Arrow."""
    where, columns = QUERIES[work]
    text = f"SELECT {', '.join(columns) or '*'} FROM {source}"
    if where is not None:
        name, low, high = where
        text += f" WHERE {name} >= {low} AND {name} <= {high}"
    return int(connection.sql(text).to_arrow_table().num_rows)


def ours_polars(table: str, work: str) -> int:
    from delta_ds import DeltaLog

    return polars_query(DeltaLog(table).to_polars(), work)


def scan_delta(table: str, work: str) -> int:
    import polars as pl

    return polars_query(pl.scan_delta(table), work)


def ours_duckdb(table: str, work: str) -> int:
    import duckdb

    from delta_ds import DeltaLog

    with duckdb.connect() as connection:
        DeltaLog(table).to_duckdb(connection=connection).create_view("t")
        return duckdb_query(connection, "t", work)


def deltalake_dataset(table: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(table).to_pyarrow_dataset()


def dataset_query(dataset: Any, work: str) -> int:
    """How many rows a dataset of pyarrow gives."""
    import pyarrow.compute as pc

    where, columns = QUERIES[work]
    filter_ = None
    if where is not None:
        name, low, high = where
        filter_ = (pc.field(name) >= low) & (pc.field(name) <= high)
    return int(dataset.to_table(columns=columns or None, filter=filter_).num_rows)


def ours_dataset(table: str, work: str) -> int:
    from delta_ds import DeltaLog

    return dataset_query(DeltaLog(table).to_pyarrow_dataset(), work)


def theirs_dataset(table: str, work: str) -> int:
    return dataset_query(deltalake_dataset(table), work)


def duckdb_over_deltalake(table: str, work: str) -> int:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("t", deltalake_dataset(table))
        return duckdb_query(connection, "t", work)


def delta_scan(table: str, work: str) -> int:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("LOAD delta")
        return duckdb_query(connection, f"delta_scan('{table}')", work)


WAYS: dict[str, Callable[[str, str], int]] = {
    "delta_ds, to_polars": ours_polars,
    "polars.scan_delta": scan_delta,
    "delta_ds, to_duckdb": ours_duckdb,
    "DuckDB's delta_scan": delta_scan,
    "DuckDB, deltalake's dataset": duckdb_over_deltalake,
    "delta_ds, to_pyarrow_dataset": ours_dataset,
    "deltalake's to_pyarrow_dataset": theirs_dataset,
}
OURS = [way for way in WAYS if way.startswith("delta_ds")]
# Refuses tables with deletion vectors, and needs gigabytes and minutes for a log of 300,000 files.
NARROW = [way for way in WAYS if "deltalake's" in way]


def measured(way: str, table: str, work: str) -> None:
    """In a process of its own: one query, reported."""
    import deltalake  # noqa: F401
    import duckdb  # noqa: F401
    import polars  # noqa: F401
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    import delta_ds.api.delta_log  # noqa: F401
    import delta_ds.kernel.files.scan.arrow_dataset
    import delta_ds.kernel.files.scan.polars_source  # noqa: F401

    cpu, start = cpu_seconds(), time.perf_counter()
    found = WAYS[way](table, work)
    report(time.perf_counter() - start, found, cpu_seconds() - cpu)


def ways_here() -> list[str]:
    """Those that can be run here."""
    import duckdb

    with duckdb.connect() as connection:
        try:
            connection.execute("INSTALL delta")
        except duckdb.Error as error:
            print(f"DuckDB's delta_scan is left out: {str(error).splitlines()[0]}\n")
            return [way for way in WAYS if way != "DuckDB's delta_scan"]
    return [way for way in WAYS if way != "DuckDB, deltalake's dataset"]


def compare(ways: list[str], table: Path, works: list[str], rounds: int) -> list[list[object]]:
    """A line for each work and way: medians of the rounds, which go through all ways in turn."""
    lines: list[list[object]] = []
    for work in works:
        found: dict[str, list[Measurement]] = {way: [] for way in ways}
        for way in ways * rounds:
            command = [sys.executable, "-m", "benchmarks.lazy_frames", "--worker", way, str(table), work]
            found[way].append(run_once(command, {"DELTA_DS_CACHE": "off"}))
        answers = {way: {each.answer for each in runs} for way, runs in found.items()}
        right = answers[ways[0]]
        # deltalake's dataset gives no rows for a filter on a column that the log has no statistics of.
        wrong = [way for way in ways if answers[way] != right]
        assert len(right) == 1 and all("deltalake's" in way for way in wrong), f"{work}: {answers}"
        middles = {
            way: [median(getattr(each, n) for each in runs) for n in ("work_s", "cpu_s", "peak_mb")]
            for way, runs in found.items()
        }
        for place, (way, (seconds, cpu, peak)) in enumerate(middles.items()):
            peer = next(iter(ways[place + 1 : place + 2]), None)
            ratio = ""
            if way.startswith("delta_ds") and peer is not None and peer not in (*wrong, *OURS):
                theirs = middles[peer]
                ratio = f"{seconds / theirs[0]:.2f}, CPU {cpu / theirs[1]:.2f}, peak {peak / theirs[2]:.2f}"
            if way in wrong:
                ratio = f"wrong: {answers[way]} rows, not {right}"
            lines.append([work, way, f"{seconds:.2f} s", f"{cpu:.2f} s", f"{peak:.0f} MiB", ratio])
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--files", type=int, default=300_000)
    arguments.add_argument("--rows", type=int, default=20_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.worker:
        measured(*given.worker)
        return
    ways = ways_here()
    head = ["work", "by", "time", "CPU", "peak", "ours / peer"]
    with tempfile.TemporaryDirectory() as folder:
        log = write_log_table(Path(folder, "log"), "v1", given.files)
        print(f"## {given.files:,} files, only a log\n")
        able = [way for way in ways if given.files <= _MOST_FILES or way not in NARROW]
        print("\n".join(as_table(head, compare(able, log, [LOG_ONLY], given.rounds))), flush=True)
        works = [work for work in QUERIES if work != LOG_ONLY]
        for title, share in (("", 0.0), (", a hundredth deleted by vectors", 0.01)):
            data = write_data_table(Path(folder, f"data{share}"), given.rows, 50, share)
            print(f"\n## {given.rows:,} rows of 8 columns in 50 files{title}\n")
            able = [way for way in ways if not share or way not in NARROW]
            print("\n".join(as_table(head, compare(able, data, works, given.rounds))), flush=True)


if __name__ == "__main__":
    main()
