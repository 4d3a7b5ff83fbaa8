"""`pydelta sql`: a SELECT over tables, by DuckDB, and nothing but a SELECT."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.kernel.commands.dml.delete import delete

duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table under other names than its columns', with a deleted row, in the working directory."""
    log = DeltaLog(tmp_path / "orders")
    log.write(
        pa.table({"id": [1, 2, 3], "country": ["DE", "FR", "DE"]}),
        options={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )
    delete(log, "id = 3")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "orders"


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    found = main(["sql", *arguments])
    out, err = capsys.readouterr()
    assert found == status, err
    return " ".join((out + err).replace("│", "").split())


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    status = main(["sql", *arguments, "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    return json.loads(out)


def test_tables_are_named_by_their_paths_with_or_without_a_version(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rows(capsys, f"SELECT count(*) AS n FROM '{orders}'") == [{"n": 2}]
    assert rows(capsys, "SELECT count(*) AS n FROM 'orders@v0'") == [{"n": 3}]
    assert rows(capsys, "SELECT country FROM orders WHERE id > 1") == [{"country": "FR"}]
    assert rows(capsys, "FROM orders SELECT id ORDER BY id DESC") == [{"id": 2}, {"id": 1}]


def test_a_name_in_the_query_stands_for_a_table(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT new.id FROM old LEFT JOIN new USING (id) WHERE new.id IS NOT NULL ORDER BY ALL"
    named = ("--table", f"old={orders}@v0", "--table", f"new={orders}")
    assert rows(capsys, query, *named) == [{"id": 1}, {"id": 2}]
    assert "names no orders" in run(capsys, "SELECT 1", "--table", f"orders={orders}", status=2)


def test_names_of_common_table_expressions_are_no_tables(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "WITH german AS (SELECT * FROM orders WHERE country = 'DE') SELECT id FROM german"
    assert rows(capsys, query) == [{"id": 1}]


def test_text_shows_the_first_rows_and_json_has_all(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT n FROM range(30) AS numbers(n)"
    assert "only the first 20 rows" in run(capsys, query)
    assert len(rows(capsys, query)) == 30
    assert len(rows(capsys, query, "-n", "2")) == 2


def test_columns_of_one_name_are_all_there(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows(capsys, "SELECT 1 AS a, 2 AS a, 3 AS a_1")
    assert list(row.values()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("CREATE TABLE x AS SELECT 1", "CREATE"),
        ("INSERT INTO orders VALUES (9, 'XX')", "INSERT"),
        ("DELETE FROM orders", "DELETE"),
        ("COPY orders TO 'stolen.csv'", "COPY"),
        ("SELECT 1; DROP TABLE orders", "SELECT, DROP"),
        ("ATTACH 'x.db'", "ATTACH"),
        ("", "empty"),
    ],
)
def test_what_is_no_select_is_refused_by_name(
    orders: Path, capsys: pytest.CaptureFixture[str], query: str, kind: str
) -> None:
    assert f"one SELECT is answered, and this is {kind}" in run(capsys, query, status=2)
    assert DeltaLog(orders).snapshot().version == 1
    assert os.listdir() == ["orders"]


def test_other_files_are_not_read(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("secret.csv").write_text("a\n1\n")
    assert "secret" in run(capsys, "SELECT * FROM read_csv('secret.csv')", status=3)
    assert "secret.csv" in run(capsys, "SELECT * FROM 'secret.csv'", status=3)


@pytest.mark.parametrize("query", ["SELECT FROM WHERE", "SELECT wrong FROM orders", "SELECT nope(1)"])
def test_a_query_that_makes_no_sense_is_a_wrong_command_line(
    orders: Path, capsys: pytest.CaptureFixture[str], query: str
) -> None:
    assert "QUERY" in run(capsys, query, status=2)


def test_a_table_that_is_not_there_is_told_as_by_every_command(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nowhere" in run(capsys, "SELECT * FROM nowhere", status=3)
    assert "elsewhere" in run(capsys, "SELECT * FROM n", "--table", "n=elsewhere", status=3)


def test_a_missing_file_is_named_and_the_traceback_is_not_shown(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = orders.rglob("*.parquet")
    file.unlink()
    said = run(capsys, "SELECT * FROM orders WHERE id > 0", status=3)
    assert file.name in said and "DELTA_QUERY_FAILED" in said and "Traceback" not in said


def test_without_duckdb_the_extra_is_named(
    orders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    assert "delta-ds[duckdb]" in run(capsys, "SELECT 1", status=2)
