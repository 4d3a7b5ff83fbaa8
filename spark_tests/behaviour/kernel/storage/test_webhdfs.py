"""Commits on HDFS by its REST interface: a rename that spares an existing file, against a small namenode."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage import clients
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for, open_storage
from spark_tests.behaviour.kernel.storage.write_contract import race_threads

pytest.importorskip("requests", reason="requests is not installed, which fsspec needs for WebHDFS")


class Namenode(ThreadingHTTPServer):
    """As much of WebHDFS as a commit needs. `gateway`: answers a failed rename as HttpFS does."""

    gateway = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: Namenode

    def do_GET(self) -> None:
        path, query = self._asked()
        if query["op"] == "OPEN":
            return self._answer(200, self.server.files[path])
        if path in self.server.files:
            status = {"type": "FILE", "length": len(self.server.files[path]), "pathSuffix": ""}
            return self._answer(200, {"FileStatus": status})
        return self._fail(404, "FileNotFoundException", f"File does not exist: {path}")

    def do_PUT(self) -> None:
        path, query = self._asked()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if query["op"] in ("CREATE", "APPEND") and "data" not in query:
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}{self.path}&data=true")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if query["op"] == "CREATE":
            self.server.files[path] = body
            return self._answer(201, b"")
        if query["op"] == "APPEND":
            self.server.files[path] += body
            return self._answer(200, b"")
        if query["op"] == "RENAME":
            return self._rename(path, query)
        return self._answer(200, {"boolean": True})

    do_POST = do_PUT

    def do_DELETE(self) -> None:
        path, _ = self._asked()
        self._answer(200, {"boolean": self.server.files.pop(path, None) is not None})

    def _rename(self, path: str, query: dict[str, str]) -> None:
        target = query["destination"]
        with self.server.lock:
            done = target not in self.server.files
            if done:
                self.server.files[target] = self.server.files.pop(path)
        if self.server.gateway:
            return self._answer(200, {"boolean": done})
        if done:
            return self._answer(200, b"")
        assert query["renameoptions"] == "NONE"
        return self._fail(403, "FileAlreadyExistsException", f"rename destination {target} already exists")

    def _asked(self) -> tuple[str, dict[str, str]]:
        url = urlsplit(self.path)
        return unquote(url.path).removeprefix("/webhdfs/v1"), {
            k: v[0] for k, v in parse_qs(url.query).items()
        }

    def _fail(self, status: int, exception: str, message: str) -> None:
        self._answer(status, {"RemoteException": {"exception": exception, "message": message}})

    def _answer(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture(params=[False, True], ids=["namenode", "gateway"])
def namenode(request: pytest.FixtureRequest) -> Iterator[Namenode]:
    server = Namenode()
    server.gateway = request.param
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def storage(namenode: Namenode) -> Storage:
    return open_storage(f"webhdfs://127.0.0.1:{namenode.server_port}/t 1")


def test_a_commit_is_created_once_and_leaves_no_temporary_file(storage: Storage, namenode: Namenode) -> None:
    store = log_store_for(storage)
    store.publish(0, b"first")
    with pytest.raises(FileExistsError):
        store.publish(0, b"second")
    assert namenode.files == {f"/t 1/{relative_commit_path(0)}": b"first"}


def test_of_eight_threads_one_wins_and_keeps_it(storage: Storage, namenode: Namenode) -> None:
    won = race_threads(storage, relative_commit_path(0), 8)
    assert [*namenode.files.values()] == won
    assert len(won) == 1


def test_without_a_client_of_hdfs_a_table_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "find_spec", lambda name: None)

    def no_libhdfs(*_: Any, **__: Any) -> None:
        raise OSError("Unable to load libjvm\nand where it was looked for")

    monkeypatch.setattr("fsspec.core.url_to_fs", no_libhdfs)
    with pytest.raises(StorageError, match=r"pip install 'delta_ds\[hdfs\]'") as caught:
        log_store_for(open_storage("hdfs://host:8020/t"))
    assert "\n" not in str(caught.value)
