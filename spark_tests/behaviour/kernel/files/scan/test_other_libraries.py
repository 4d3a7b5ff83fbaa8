"""Rows go to pandas, polars and DuckDB and come back from them, and are the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import PredicateError

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, 4], pa.int64()),
        "name": ["a", None, "ü", ""],
        "price": pa.array([1, None, 3, 4], pa.decimal128(9, 2)),
        "at": pa.array([0, 1, None, 3], pa.timestamp("us", "UTC")),
        "day": pa.array([0, None, 2, 3], pa.date32()),
        "tags": [["x"], [], None, ["y", None]],
        "part": [{"k": 1}, {"k": None}, {"k": 3}, {"k": 4}],
    }
)


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path / "t")
    log.write(ROWS)
    return log


# Rows to another library -> the same rows as Arrow.
LIBRARIES: dict[str, Callable[[Any], pa.Table]] = {
    "pyarrow": pa.table,
    "pyarrow, as a stream": lambda scan: scan.to_reader().read_all(),
    "pandas": lambda scan: pa.Table.from_pandas(scan.to_pandas(), schema=ROWS.schema, preserve_index=False),
    "polars": lambda scan: scan.to_polars().to_arrow(),
    "polars, by itself": lambda scan: polars.DataFrame(scan).to_arrow(),
    "DuckDB": lambda scan: scan.to_duckdb(duckdb.connect()).to_arrow_table(),
    "DuckDB, by itself": lambda scan: duckdb.connect().sql("SELECT * FROM scan").to_arrow_table(),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_are_the_same_in_another_library(log: DeltaLog, library: str) -> None:
    found = LIBRARIES[library](log.snapshot().scan("id IS NULL OR id <> 2"))
    assert found.to_pylist() == ROWS.take([0, 2, 3]).to_pylist()


# Rows of another library.
SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pandas.DataFrame({"id": [1, 2], "name": ["a", None]}, index=["one", "two"]),
    "polars": lambda: polars.DataFrame({"id": [1, 2], "name": ["a", None]}),
    "DuckDB": lambda: duckdb.connect().sql(
        "SELECT * FROM (VALUES (1::BIGINT, 'a'), (2, NULL)) AS t(id, name)"
    ),
    "a scan": lambda: _scan(),
}


def _scan() -> Any:
    import tempfile

    log = DeltaLog(tempfile.mkdtemp())
    log.write(pa.table({"id": [1, 2], "name": ["a", None]}))
    return log.snapshot().scan()


@pytest.mark.parametrize("source", SOURCES)
def test_rows_of_another_library_are_written(tmp_path: Path, source: str) -> None:
    log = DeltaLog(tmp_path)
    log.write(SOURCES[source]())
    assert log.snapshot().scan().to_arrow().to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_a_scan_can_be_read_more_than_once(log: DeltaLog) -> None:
    scan = log.snapshot().scan()
    assert pa.table(scan) == pa.table(scan)


def test_errors_of_a_read_reach_the_reader(log: DeltaLog) -> None:
    with pytest.raises(PredicateError):
        log.snapshot().scan("nope > 1").to_pandas()
    (file,) = Path(log.storage.url).glob("*.parquet")
    scan = log.snapshot().scan()
    file.unlink()
    with pytest.raises(Exception, match="does not exist"):
        pa.table(scan)


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_library_that_is_not_installed_is_named(
    log: DeltaLog, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"delta-ds\[{package}\]"):
        getattr(log.snapshot().scan(), f"to_{package}")()
