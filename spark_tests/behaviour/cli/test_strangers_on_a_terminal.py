"""Texts of a stranger's table on a terminal: shown as they are, and never taken for commands or markup."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.cli import output
from delta_ds.events.formatter import undirected_lines
from delta_ds.kernel.base.card import visible
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.cli.commands import COMMAND_LINES, all_commands, command_line
from spark_tests.full_form import examples

# The clipboard, the screen, a title, another command's output, the direction of reading, markup of rich, an emoji.
EVIL = "\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2J\x9b31m\r\nno damage found\u202e\u2066\u2028\x7f[red]x[/y] :bomb: \\"
SHOWN = (
    r"\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2J\x9b31m\x0d\x0ano damage found\u202e\u2066\u2028\x7f[red]x[/y] :bomb: "
    "\\"
)
_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OF_BARS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_FEATURES = ["appendOnly", "invariants", "changeDataFeed", "domainMetadata", "rowTracking", "columnMapping"]


def stranger(path: Path) -> Path:
    """A table that says the same wherever it may say something."""
    table = TableBuilder(path)
    name = f"c{EVIL}"
    schema = pa.schema([("id", pa.int64()), (name, pa.string()), ("p", pa.string())])
    properties = {
        "delta.enableChangeDataFeed": "true", f"k{EVIL}": f"v{EVIL}", "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id", "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "3",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version",
    }  # fmt: skip
    table.create(
        schema, partition_columns=["p"], properties=properties, reader_features=["columnMapping"],
        writer_features=_FEATURES,
    )  # fmt: skip
    lines = [json.loads(line) for line in table.commit_file(0).read_bytes().splitlines()]
    for metadata in (line["metaData"] for line in lines if "metaData" in line):
        found = json.loads(metadata["schemaString"])
        for number, field in enumerate(found["fields"], start=1):
            field["metadata"] = {
                "comment": EVIL, "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": ["id", "text", "p"][number - 1],
            }  # fmt: skip
        metadata.update(schemaString=json.dumps(found), name=EVIL, description=EVIL)
    table.raw_commit("".join(json.dumps(line) + "\n" for line in lines).encode(), 0)
    for number in range(1, 4):
        add = table.write_file(
            pa.table({"id": [number], "text": [EVIL]}),
            path=f"file{number}{EVIL}.parquet".replace("/", ""),
            partition_values={"p": EVIL},
        )
        add["add"] |= {"baseRowId": number, "defaultRowCommitVersion": number, "tags": {EVIL: EVIL}}
        info = {
            "userName": EVIL, "userMetadata": EVIL, "engineInfo": EVIL, "operationParameters": {EVIL: EVIL},
            "operationMetrics": {EVIL: EVIL}, "clusterId": EVIL,
        }  # fmt: skip
        table.commit(add, {"txn": {"appId": EVIL, "version": number}}, operation=f"WRITE{EVIL}", **info)
    (table.path / f"nobody's{EVIL}.parquet".replace("/", "")).write_bytes(b"x")
    return table.path


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    return stranger(tmp_path / "table")


def test_every_command_is_tried_here() -> None:
    assert all_commands() == set(COMMAND_LINES)


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize("name", sorted(set(COMMAND_LINES) - {"ui"}))
def test_no_command_lets_a_table_steer_the_terminal(
    name: str,
    colours: bool,
    table: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for console in (output._console, output.errors):
        monkeypatch.setattr(console, "_force_terminal", colours)
        monkeypatch.setattr(console, "_color_system", ColorSystem.STANDARD if colours else None)
    status = main(command_line(name, table))
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert status in (0, 1), err
    if name == "detail":
        assert bool(_COLOUR.search(out)) == colours
    # Where there are colours, bars come and go on the error stream.
    printed = _COLOUR.sub("", out) + (_OF_BARS.sub("", err) if colours else err)
    assert not _STEERING.search(printed)
    assert "\nno damage found\u202e" not in printed


@pytest.mark.parametrize(
    "name", ["detail", "history", "properties", "files", "log", "show", "changes", "blame"]
)
def test_what_a_table_says_is_shown_whole(name: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = ["--wide"] if name == "history" else []
    assert main([*command_line(name, table), *whole]) == 0
    # JSON in a cell spells a control character in its own way.
    assert visible(EVIL) == SHOWN
    found = capsys.readouterr().out
    assert SHOWN in found or "[red]x[/y] :bomb: " in found


@pytest.mark.parametrize("name", sorted(set(COMMAND_LINES) - {"ui", "convert"}))
def test_json_is_exact_and_steers_nothing(name: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command_line(name, table), "--json"]) in (0, 1)
    out, err = capsys.readouterr()
    assert not _STEERING.search(out + err)
    found = json.loads(out)
    if name == "show":
        assert found[0][f"c{EVIL}"] == EVIL
    if name == "detail":
        assert found["description"] == EVIL


@given(text=st.text(st.characters(codec=None), max_size=20))
@settings(max_examples=examples(200), deadline=None)
def test_json_of_any_text_is_read_back(text: str) -> None:
    for encoding in ("utf-8", "ascii", "latin-1", None):
        written = output._json({text: [text]}, encoding, indent=2)
        assert json.loads(written) == {text: [text]}
        written.encode(encoding or "utf-8")
        assert not _STEERING.search(written)


@given(text=st.text(st.characters(codec=None), max_size=20))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_is_visible_is_one_line_of_plain_letters(text: str) -> None:
    found = visible(text)
    assert not _STEERING.search(found) and "\n" not in found
    assert visible(found) == found
    found.encode()
    if text.isprintable():
        assert found == text


def test_errors_name_what_is_wrong_without_obeying_it(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(table), "--where", f"`nope{EVIL}` = 1"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("error: [") and err.count("\n") == 1 and not _STEERING.search(err)


def test_a_wrong_command_line_is_told_without_obeying_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", f"{tmp_path}/\x1b[2J@v3", "-v", "2"]) == 2
    assert main(["show", "a", "b\x1b[2J"]) == 2
    assert main(["sh\x1b[2Jow"]) == 2
    assert "\x1b[2J" not in capsys.readouterr().err


def test_log_lines_that_nobody_has_directed_are_spelled_out(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("somebody.else")
    logger.propagate = False
    with undirected_lines(visible):
        logger.warning("of a table: %s", EVIL)
    logger.warning("as before")
    assert not _STEERING.search(capsys.readouterr().err)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_an_encoding_lacks_are_spelled_out(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaLog(tmp_path / "t").write(pa.table({"id": ["日本 ü"]}))
    for arguments in (["show"], ["show", "--json"]):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main([*arguments[:1], str(tmp_path / "t"), *arguments[1:]]) == 0
        printed: Any = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
        if "--json" in arguments:
            assert json.loads(printed) == [{"id": "日本 ü"}]
