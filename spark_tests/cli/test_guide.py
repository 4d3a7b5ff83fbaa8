"""Every command that the guide shows does what it says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def shown() -> list[str]:
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / "command-line.md").read_text(), re.DOTALL)
    return block.splitlines()


def test_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples" / "data" / "sales", tmp_path / "sales")
    folder = tmp_path / "parquet_folder" / "year=2026"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), folder / "part.parquet")
    monkeypatch.chdir(tmp_path)
    lines = shown()
    assert len(lines) > 10
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "pydelta"
        status = main(arguments)
        told = capsys.readouterr()
        assert status == 0, (line, told.err)
        assert told.out.strip(), line
