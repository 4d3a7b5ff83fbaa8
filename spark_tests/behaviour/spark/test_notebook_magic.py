"""`%load_ext delta_ds` and `%%delta`: SQL of a cell, in the session of the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError
from delta_ds.spark import notebook


class Shell:
    """What an extension gets of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[str, Any] = {}

    def register_magic_function(
        self, func: Any, magic_kind: str = "line", magic_name: str | None = None
    ) -> None:
        assert magic_kind == "line_cell" and magic_name is not None
        self.magics[magic_name] = func


@pytest.fixture(autouse=True)
def active(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests leave sessions of their own active."""
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: spark))


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    delta_ds.load_ipython_extension(shell)
    return shell


@pytest.fixture
def orders(tmp_path: Path) -> str:
    DeltaLog(tmp_path / "orders").write(pa.table({"id": range(30), "note": pa.nulls(30, pa.string())}))
    return f"delta.`{tmp_path / 'orders'}`"


def test_a_cell_is_run_and_its_first_rows_are_shown(spark: SparkSession, shell: Shell, orders: str) -> None:
    found = shell.magics["delta"]("", f"SELECT id, note FROM {orders} ORDER BY id;\n")
    assert (found.columns, len(found.rows), found.has_more) == (["id", "note"], 20, True)
    html = found._repr_html_()
    assert "The first 20 rows" in html and ">19<" in html and ">20<" not in html and ">null<" in html
    assert repr(found).splitlines()[0] == "The first 20 rows"


def test_options_of_the_line_say_how_many_and_into_what(
    spark: SparkSession, shell: Shell, orders: str
) -> None:
    found = shell.magics["delta"]("--limit 3 --into few", f"SELECT id FROM {orders} WHERE id > 25")
    assert len(found.rows) == 3 and found.has_more
    assert shell.user_ns["few"].count() == 4


def test_a_line_is_a_statement_too(spark: SparkSession, shell: Shell, orders: str) -> None:
    found = shell.magics["delta"](f"SELECT count(*) AS n FROM {orders}")
    assert (found.columns, found.rows, found._card().title) == (["n"], [(30,)], "1 row")


def test_a_statement_that_changes_a_table_changes_it_once(
    spark: SparkSession, shell: Shell, tmp_path: Path, orders: str
) -> None:
    found = shell.magics["delta"]("", f"DELETE FROM {orders} WHERE id >= 10")
    assert found.rows == [(20,)]
    assert [each["operation"] for each in DeltaLog(tmp_path / "orders").history()] == ["DELETE", "WRITE"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--limt 3", "did you mean --limit?"),
        ("--limit many", "--limit many"),
        ("--into 3x", "3x"),
        ("orders", "orders"),
    ],
)
def test_what_the_line_may_not_say_is_refused_with_the_nearest(
    spark: SparkSession, shell: Shell, line: str, said: str
) -> None:
    with pytest.raises(InvalidOptionError, match=said.replace("?", r"\?")):
        shell.magics["delta"](line, "SELECT 1")


def test_an_empty_cell_is_refused(spark: SparkSession, shell: Shell) -> None:
    with pytest.raises(InvalidOptionError, match="no statement"):
        shell.magics["delta"]("", " ;\n")


def test_without_a_session_it_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    with pytest.raises(InvalidOptionError, match="active Spark session, and there is none"):
        shell.magics["delta"]("", "SELECT 1")


def test_a_session_is_registered_once(
    spark: SparkSession, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "_registered", type(notebook._registered)())
    made: list[SparkSession] = []
    monkeypatch.setattr(notebook, "register", made.append)
    for _ in range(2):
        shell.magics["delta"]("", "SELECT 1")
    assert made == [spark]


def test_ipython_itself_takes_it(spark: SparkSession) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    shell = interactive.InteractiveShell()
    shell.run_line_magic("load_ext", "delta_ds")
    cell = shell.run_cell("%%delta --into ones\nSELECT 1 AS one")
    assert cell.success and cell.result.rows == [(1,)]
    assert ">one<" in shell.display_formatter.format(cell.result)[0]["text/html"]
    assert shell.user_ns["ones"].columns == ["one"]
    assert shell.run_cell("%delta SELECT 2 AS two").result.rows == [(2,)]
    refused = shell.run_cell("%%delta --limt 3\nSELECT 1", silent=True)
    assert "did you mean --limit?" in str(refused.error_in_exec)
