"""`pydelta` in a real terminal: width, colours, progress, Ctrl+C, completion by Tab."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pexpect = pytest.importorskip("pexpect", reason="pexpect is not installed")

ROOT = Path(__file__).resolve().parents[3]
SALES = ROOT / "examples" / "data" / "sales"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What says how a terminal is, or that there is none.
_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "CI", "GITHUB_ACTIONS")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder, with `pydelta` on its path as an installation has it."""
    home = tmp_path_factory.mktemp("home")
    program = home / "bin" / "pydelta"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m delta_ds "$@"\n')
    program.chmod(0o755)
    shutil.copytree(SALES, home / "sales")
    return home


def start(home: Path, command: str, *arguments: str, columns: int = 100, **variables: str) -> pexpect.spawn:
    env = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
    path = f"{home / 'bin'}{os.pathsep}{env['PATH']}"
    env |= {"HOME": str(home), "ZDOTDIR": str(home), "PATH": path, "TERM": "xterm-256color", **variables}
    return pexpect.spawn(
        command,
        list(arguments),
        cwd=str(home),
        env=env,
        encoding="utf-8",
        dimensions=(30, columns),
        timeout=240,
    )


def run(home: Path, *arguments: str, status: int = 0, columns: int = 100, **variables: str) -> str:
    """What a command shows in a terminal, once it has ended by itself."""
    program = start(home, "pydelta", *arguments, columns=columns, **variables)
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == status, program.before
    return str(program.before)


@pytest.mark.parametrize("columns", [60, 100])
def test_output_keeps_to_the_width_of_the_terminal(home: Path, columns: int) -> None:
    lines = _CONTROL.sub("", run(home, "history", "sales", columns=columns)).splitlines()
    assert max(map(len, lines)) <= columns
    assert any(len(line) > columns // 2 for line in lines)


def test_everything_is_shown_at_once_without_a_pager(home: Path) -> None:
    shown = run(home, "show", "sales", "-n", "1000", PAGER="less", MANPAGER="less")
    assert len(shown.splitlines()) > 100


def test_a_command_that_deletes_waits_for_no_answer(home: Path) -> None:
    assert "files" in run(home, "vacuum", "sales")


def test_a_terminal_has_colours_unless_they_are_not_wanted(home: Path) -> None:
    assert _COLOUR.search(run(home, "health", "sales"))
    assert not _COLOUR.search(run(home, "health", "sales", TERM="dumb"))
    plain = run(home, "detail", "missing", status=3, NO_COLOR="1")
    assert "31m" not in plain and "[DELTA_TABLE_NOT_FOUND]" in plain
    assert "31m" in run(home, "detail", "missing", status=3)


def test_json_has_no_colours_and_no_bars(home: Path) -> None:
    assert not _CONTROL.search(run(home, "fsck", "sales", "--contents", "--json"))


def test_long_work_shows_a_bar_that_goes_when_it_is_done(home: Path) -> None:
    (home / "scratch").mkdir()
    shown = run(home, "bench", "--scratch", "scratch", "--rows", "1000", "--commits", "10", "--rounds", "1")
    assert re.search(r"commit .*━.* \d+/10 ", _COLOUR.sub("", shown))
    assert "\x1b[2K" in shown, "the line of a bar is never erased"
    after = _CONTROL.sub("", shown.rpartition("\x1b[2K")[2])
    assert "a table made for this" in after and "━" not in after
    assert list((home / "scratch").iterdir()) == []


def test_a_conversion_counts_its_files_in_every_phase(home: Path) -> None:
    folder = home / "parquet"
    folder.mkdir()
    for number in range(40):
        pq.write_table(pa.table({"id": [number]}), folder / f"{number}.parquet")
    shown = _COLOUR.sub("", run(home, "convert", "parquet"))
    for phase in ("reading footers", "collecting statistics"):
        assert re.search(rf"CONVERT: {phase} .*━.* 40/40 ", shown), phase
    assert "━" not in _CONTROL.sub("", shown.rpartition("\x1b[2K")[2])


def test_ctrl_c_has_a_status_of_its_own_and_leaves_nothing(home: Path) -> None:
    (home / "interrupted").mkdir()
    program = start(
        home, "pydelta", "bench", "--scratch", "interrupted", "--rows", "1000", "--commits", "100000"
    )
    program.expect(r"commit .* \d+/100000")
    program.sendintr()
    program.expect("interrupted")
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 130
    assert "Traceback" not in program.before
    assert list((home / "interrupted").iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_completes_commands_and_options(home: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    installer = start(home, shell)
    # Typed in two parts, so that what is typed is not taken for the answer.
    installer.sendline("pydelta --install-completion && echo 'is the''re'")
    installer.expect("is there")
    installer.close(force=True)
    prompt = start(home, shell, PS1="ready> ", PROMPT="ready> ")
    prompt.sendline({"fish": "function fish_prompt; echo 'rea''dy> '; end"}.get(shell, "PS1='rea''dy> '"))
    prompt.expect("ready> ")
    for typed, completed in (
        ("pydelta checkp", "oint"),
        ("pydelta vacuum --dry", "-run"),
        ("pydelta fsck sal", "es"),
    ):
        prompt.send(f"{typed}\t")
        # In zsh typer's script loads itself at the first Tab, and answers from the second on.
        if prompt.expect([completed, pexpect.TIMEOUT], timeout=30 if shell == "bash" else 3):
            prompt.send("\t")
            prompt.expect(completed)
        prompt.sendcontrol("u")
    prompt.close(force=True)


# What the scripts of shells ask, whether the shell is here or not.
ASKED = {
    "bash": {"COMP_WORDS": "pydelta h", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "pydelta h"},
    "fish": {"_TYPER_COMPLETE_ARGS": "pydelta h", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", ASKED)
def test_completion_asks_nothing_but_the_names_of_commands(home: Path, shell: str) -> None:
    asked = start(home, "pydelta", _PYDELTA_COMPLETE=f"complete_{shell}", **ASKED[shell])
    asked.expect(pexpect.EOF)
    asked.close()
    assert re.findall(r"\bh\w+\b", asked.before)[:1] == ["history"] and "health" in asked.before
    assert "checkpoint" not in asked.before


@pytest.mark.parametrize("shell", ASKED)
def test_each_shell_has_a_script_that_asks_so(home: Path, shell: str) -> None:
    shown = start(home, "pydelta", _PYDELTA_COMPLETE=f"source_{shell}")
    shown.expect(pexpect.EOF)
    shown.close()
    assert shown.exitstatus == 0 and f"complete_{shell}" in shown.before
