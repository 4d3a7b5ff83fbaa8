"""Who may ask the server of a table's page, for what, and what it lets a browser do."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.cli.ui import server as server_module
from delta_ds.cli.ui.server import open_server
from delta_ds.cli.ui.view import TableView
from spark_tests.behaviour.cli.ui.serving import Page, served

STATIC = Path(server_module.__file__).parent / "static"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("served") / "t"
    DeltaLog(path).write(pa.table({"id": [1, 2, 3]}))
    with served(path) as found:
        yield found


def test_the_page_and_all_its_files_are_served_with_their_types(page: Page) -> None:
    first = page.get("")
    assert first.status == 200 and first.body == (STATIC / "index.html").read_bytes()
    for file in STATIC.iterdir():
        reply = page.get(file.name)
        assert (reply.status, reply.body) == (200, file.read_bytes())
        assert reply.headers["Content-Type"] == server_module._TYPES[file.suffix]


def test_every_answer_forbids_what_the_page_does_not_need(page: Page) -> None:
    for reply in (page.get(""), page.get("api/table"), page.get("api/nope"), page.send("/")):
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert "frame-ancestors 'none'" in policy and "require-trusted-types-for 'script'" in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in reply.headers


def test_the_page_has_no_script_in_itself_and_nothing_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text()
    assert page.count("<script") == page.count('src="app.js"') == 1
    assert " on" not in page.replace(" one", "").replace(' on"', "") and "style=" not in page
    for file in STATIC.iterdir():
        text = file.read_text().replace("http://www.w3.org/", "")
        assert "http:" not in text and "https:" not in text, file.name
        for danger in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert danger not in text, (file.name, danger)


@pytest.mark.parametrize("path", ["/", "/api/table", "/wrong/", "/wrong/api/table", "/favicon.ico", "/%00/"])
def test_without_the_random_part_nothing_is_told(page: Page, path: str) -> None:
    reply = page.send(path)
    assert reply.status == 403
    assert "random part" in reply.json["message"]
    assert page.server.token not in reply.body.decode()


def test_the_random_part_is_another_one_each_time(page: Page, tmp_path: Path) -> None:
    DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    with served(tmp_path) as other:
        assert other.server.token != page.server.token and len(other.server.token) >= 32


@pytest.mark.parametrize(
    "name", ["localhost", "LOCALHOST:9", "127.0.0.1", "127.0.0.1:12345", "[::1]:80", "192.168.1.7:80"]
)
def test_this_machine_may_be_called_by_addresses_and_its_own_names(page: Page, name: str) -> None:
    # Tunnels have ports of their own; an address is nobody's to give to another machine.
    assert page.get("api/table", Host=name).status == 200


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "127.0.0.1@evil.example",
    ]
    + ["evil.example/127.0.0.1", "[::1", "evil.example#localhost"],
)
def test_another_name_that_leads_here_is_refused(page: Page, name: str) -> None:
    reply = page.get("api/table", Host=name)
    assert reply.status == 403 and "Host" in reply.json["message"]


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "NONSENSE"]
)
def test_only_reading_is_possible(page: Page, method: str) -> None:
    reply = page.send(f"/{page.server.token}/api/table", method, body=b"{}")
    assert reply.status == 405 and reply.headers["Allow"] == "GET, HEAD"
    assert "read-only" in reply.json["message"]


def test_head_is_get_without_the_body(page: Page) -> None:
    path = f"/{page.server.token}/api/table"
    told, whole = page.send(path, "HEAD"), page.send(path)
    assert (told.status, told.body) == (200, b"")
    assert told.headers["Content-Length"] == str(len(whole.body))


@pytest.mark.parametrize(
    "name",
    [
        "../../../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/app.js",
        "/etc/passwd",
        "static/app.js",
        "app.js/",
    ]
    + ["server.py", "__init__.py", "..\\server.py", "app.js%00.html", "_delta_log/00000000000000000000.json"],
)
def test_no_path_leads_to_another_file(page: Page, name: str) -> None:
    assert page.send(f"/{page.server.token}/{name}").status == 404


def test_the_folder_of_the_page_has_a_slash_at_its_end(page: Page) -> None:
    reply = page.send(f"/{page.server.token}")
    assert reply.status == 308 and reply.headers["Location"] == f"/{page.server.token}/"


def test_requests_with_content_or_for_other_hosts_are_refused(page: Page) -> None:
    path = f"/{page.server.token}/api/table"
    assert page.send(path, body=b"x").status == 400
    assert page.send(f"http://127.0.0.1{path}").status == 400
    assert page.send(f"http://[{path}").status == 400


def test_a_malformed_request_is_told_so_in_json(page: Page) -> None:
    with socket.create_connection(("127.0.0.1", page.server.server_port), timeout=120) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000 + b"\r\n\r\n")
        text = raw.makefile("rb").read(4096)
    assert b" 431 " in text.splitlines()[0] and b'"message": "Line too long"' in text


def test_a_defect_shows_its_details_in_the_terminal_alone(
    page: Page, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a secret")

    monkeypatch.setattr(server_module, "answer", fail)
    reply = page.get("api/table")
    assert reply.status == 500 and b"secret" not in reply.body and "KeyError" in reply.json["message"]
    assert "a secret" in capsys.readouterr().err


def test_other_machines_are_let_in_by_an_address_of_theirs_only(page: Page, tmp_path: Path) -> None:
    assert page.server.is_local
    DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    with open_server(TableView(DeltaLog(tmp_path)), "0.0.0.0", 0) as everywhere:
        assert not everywhere.is_local
        assert socket.gethostname().lower() in everywhere.names
    with open_server(TableView(DeltaLog(tmp_path)), "localhost", 0) as here:
        assert here.is_local and here.url.startswith("http://localhost:")


def test_addresses_of_the_newer_kind_stand_in_brackets(tmp_path: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    try:
        server = open_server(TableView(DeltaLog(tmp_path)), "::1", 0)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with server:
        assert server.is_local and server.url.startswith("http://[::1]:")


def test_the_page_needs_nothing_that_only_the_command_line_needs() -> None:
    program = (
        "import sys; sys.modules.update(rich=None, typer=None); from delta_ds.cli.ui import server, view"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
