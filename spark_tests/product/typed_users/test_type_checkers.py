"""A user's programs under a type checker: what is right passes, what is wrong is found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MISTAKES = HERE / "mistakes.py"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str]]]:
    """What mypy says of each program: lines and codes. It runs once, outside the repository's own settings."""
    programs = [HERE / "pipeline.py", HERE / "without_spark.py", MISTAKES]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary",
               "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'users'}", *map(str, programs)]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path_factory.mktemp("elsewhere"),
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, list[tuple[int, str]]] = {program.name: [] for program in programs}
    for line in done.stdout.splitlines():
        match = re.match(r"(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$", line)
        if match is not None:
            found[Path(match["file"]).name].append((int(match["line"]), match["code"]))
        else:
            assert ": note: " in line, line
    return found


@pytest.mark.parametrize("program", ["pipeline.py", "without_spark.py"])
def test_programs_that_are_right_pass(said: dict[str, list[tuple[int, str]]], program: str) -> None:
    assert said[program] == []


def test_every_mistake_is_found_and_nothing_else(said: dict[str, list[tuple[int, str]]]) -> None:
    marked = [
        (number, code)
        for number, line in enumerate(MISTAKES.read_text("utf-8").splitlines(), 1)
        for code in line.partition("# mistake: ")[2].split()
    ]
    assert len(marked) > 30
    assert said[MISTAKES.name] == marked
