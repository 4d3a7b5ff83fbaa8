"""`pydelta ui` as a process: what it prints, where it listens, how it ends."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from delta_ds.__main__ import main
from spark_tests.behaviour.cli.ui.serving import running

SALES = Path(__file__).resolve().parents[4] / "examples" / "data" / "sales"


@pytest.fixture
def sales(tmp_path: Path) -> str:
    shutil.copytree(SALES, tmp_path / "sales")
    return str(tmp_path / "sales")


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=120) as reply:
        content: bytes = reply.read()
    return content


def test_the_page_is_there_until_ctrl_c(sales: str) -> None:
    with running(sales) as (program, url):
        assert url.startswith("http://127.0.0.1:") and len(url.split("/")[3]) >= 32
        assert b"app.js" in fetch(url)
        found = json.loads(fetch(f"{url}api/table"))
        assert (found["version"], found["newest"]) == (7, 7)
        program.send_signal(signal.SIGINT)
        assert (program.communicate(timeout=120)[1], program.returncode) == ("", 0)
        with pytest.raises(urllib.error.URLError):
            fetch(url)


def test_programs_get_the_address_as_json_and_end_it_politely(sales: str) -> None:
    with running(f"{sales}@v3", "--json") as (program, first):
        assert first == "{" and program.stdout is not None
        url = json.loads(first + program.stdout.readline() + program.stdout.readline())["url"]
        found = json.loads(fetch(f"{url}api/table"))
        assert (found["version"], found["newest"]) == (3, 7)
        program.send_signal(signal.SIGTERM)
        assert program.wait(timeout=120) == 0


def test_everybody_is_let_in_only_with_a_warning(sales: str) -> None:
    with running(sales, "--host", "0.0.0.0") as (program, url):
        assert url.startswith(f"http://{socket.gethostname()}:")
        assert b"app.js" in fetch(f"http://127.0.0.1:{url.rpartition(':')[2]}")
        program.send_signal(signal.SIGINT)
        assert "warning: whoever reaches 0.0.0.0" in program.communicate(timeout=120)[1]


def test_a_port_that_is_taken_is_named(sales: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["ui", sales, "--port", port]) == 2
    assert port in capsys.readouterr().err


def test_a_host_of_somebody_else_is_refused(sales: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", sales, "--host", "192.0.2.1"]) == 2
    assert "192.0.2.1" in capsys.readouterr().err


def test_what_is_no_table_is_told_before_anything_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", str(tmp_path / "no"), "--json"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and json.loads(err)["condition"] == "DELTA_TABLE_NOT_FOUND"


def test_ctrl_c_in_a_terminal_ends_it(sales: str) -> None:
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-m", "delta_ds", "ui", sales, "--no-open"])
    told = b""
    while b"Ctrl+C ends it" not in told:
        told += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


def test_a_browser_gets_an_address_that_works_once(sales: str, tmp_path: Path) -> None:
    # Everybody on a machine sees what programs are started with.
    seen = tmp_path / "seen"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$1" > {seen}.part\nmv {seen}.part {seen}\n')
    program.chmod(0o755)
    with running(sales, "--open", environment={"BROWSER": str(program)}) as (_, url):
        until = time.monotonic() + 60
        while not seen.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        given = seen.read_text().strip()
        assert url.split("/")[3] not in given
        assert b"app.js" in fetch(given)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(given)


def test_without_a_screen_no_browser_is_started(sales: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {seen}\n")
    program.chmod(0o755)
    environment = {"BROWSER": str(program), "DISPLAY": ":99"}
    with running(sales, environment=environment) as (_, url):  # its output is no terminal
        assert fetch(url)
    assert not seen.exists()
