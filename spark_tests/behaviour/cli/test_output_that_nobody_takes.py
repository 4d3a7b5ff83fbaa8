"""Output that is not taken: a full disk, a closed stream, a reader that has heard enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from delta_ds.__main__ import main
from delta_ds.cli.output import FAILED, UNREAD
from spark_tests.behaviour.cli.commands import COMMAND_LINES, command_line
from spark_tests.full_form import FULL

SALES = Path(__file__).resolve().parents[3] / "examples" / "data" / "sales"
COMMANDS = [*sorted(set(COMMAND_LINES) - {"blame", "diff"}), "--help", "--version"]


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    shutil.copytree(SALES, tmp_path / "sales")
    return tmp_path / "sales"


def arguments(name: str, table: Path) -> list[str]:
    return [name] if name.startswith("--") else command_line(name, table)


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_and_a_failure(
    name: str,
    form: tuple[str, ...],
    sales: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main([*arguments(name, sales), *(() if name.startswith("--") else form)]) == FAILED
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "No space left on device" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_has_gone_ends_a_command_in_silence(
    name: str, sales: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, pipe = os.pipe()
    os.close(gone)
    with open(pipe, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(arguments(name, sales)) == UNREAD
    assert capsys.readouterr().err == ""


def test_without_an_output_stream_nothing_is_begun(
    sales: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted((sales / "_delta_log").iterdir())
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["restore", str(sales), "--version", "1"]) == FAILED
    assert capsys.readouterr().err == "error: cannot write the output: the standard output is closed\n"
    assert sorted((sales / "_delta_log").iterdir()) == before


@pytest.mark.parametrize("name", COMMANDS if FULL else ["show", "checkpoint", "--help"])
@pytest.mark.parametrize(
    ("redirection", "status", "lines"),
    [
        (">&-", FAILED, 1),
        ("> /dev/full", FAILED, 1),
        ("| true; exit ${PIPESTATUS[0]}", UNREAD, 0),
        (">&- 2>&-", FAILED, 0),
        ("> /dev/full 2> /dev/full", FAILED, 0),
        ("<&- >&- 2>&-", FAILED, 0),
    ],
)
def test_a_process_ends_as_a_shell_expects(
    name: str, redirection: str, status: int, lines: int, sales: Path
) -> None:
    line = f'"$0" -m delta_ds {" ".join(arguments(name, sales))} {redirection}'
    done = subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (status, lines), done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "2> /dev/full", "2>&1 > /dev/null | true"])
def test_errors_that_nobody_hears_are_failures_all_the_same(closed: str, tmp_path: Path) -> None:
    line = f'"$0" -m delta_ds detail {tmp_path}/no {closed}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (FAILED, "", "")
