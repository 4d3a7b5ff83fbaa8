"""The queries that lazy frames are measured by give the same rows by polars, by DuckDB and by pyarrow."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("polars", reason="the extra polars is not installed")
pytest.importorskip("duckdb", reason="the extra duckdb is not installed")

from benchmarks import lazy_frames  # noqa: E402
from benchmarks.data_tables import write_data_table  # noqa: E402
from benchmarks.log_tables import write_log_table  # noqa: E402


@pytest.mark.parametrize("deleted_share", [0.0, 0.1])
def test_every_query_is_answered_alike(tmp_path: Path, deleted_share: float) -> None:
    table = str(write_data_table(tmp_path / "t", 2000, 4, deleted_share))
    found = {work: lazy_frames.ours_polars(table, work) for work in lazy_frames.QUERIES}
    assert found == {work: lazy_frames.ours_duckdb(table, work) for work in lazy_frames.QUERIES}
    assert found["all columns of all rows"] == 2000 * (1 - deleted_share)
    assert found[lazy_frames.LOG_ONLY] == 0 < found["a number that every file has, two columns"]


def test_no_file_is_opened_where_none_matches(tmp_path: Path) -> None:
    table = str(write_log_table(tmp_path / "t", "v1", 500))
    assert lazy_frames.ours_polars(table, lazy_frames.LOG_ONLY) == 0
    assert lazy_frames.ours_duckdb(table, lazy_frames.LOG_ONLY) == 0


def test_a_dataset_answers_every_query_as_polars_does(tmp_path: Path) -> None:
    table = str(write_data_table(tmp_path / "t", 2000, 4, 0.1))
    for work in lazy_frames.QUERIES:
        assert lazy_frames.ours_dataset(table, work) == lazy_frames.ours_polars(table, work)
