"""An emulated S3 and STS that remember who signed each request, and a machine's own sources of credentials."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_SIGNED = re.compile(r"Credential=([^/]+)/")


class SignedRequests:
    """moto's server. `signers`: the access keys of its requests of S3, `tokens`: their session tokens, in order."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        from spark_tests.faults.concurrency.moto_server import Handler

        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.signers: list[str | None] = []
        self.tokens: list[str | None] = []
        self.encryption: list[str | None] = []
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        signed = environ.get("HTTP_AUTHORIZATION", "")
        if "/sts/" not in signed and environ["PATH_INFO"] != "/":
            match = _SIGNED.search(signed)
            self.signers.append(match[1] if match else None)
            self.tokens.append(environ.get("HTTP_X_AMZ_SECURITY_TOKEN"))
            if environ["REQUEST_METHOD"] == "PUT":
                self.encryption.append(environ.get("HTTP_X_AMZ_SERVER_SIDE_ENCRYPTION"))
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer

    def of(self, call: Callable[[], object]) -> tuple[set[str | None], set[str | None]]:
        """The signers and the tokens of the requests of a call."""
        self.signers.clear()
        self.tokens.clear()
        call()
        return set(self.signers), set(self.tokens)

    def make_bucket(self, name: str) -> None:
        import s3fs

        s3fs.S3FileSystem(key="maker", secret="s", endpoint_url=self.url, skip_instance_cache=True).mkdir(
            name
        )

    def stop(self) -> None:
        self._server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: _Machine

    def do_PUT(self) -> None:
        self._answer("token")

    def do_GET(self) -> None:
        if self.path.startswith("/container"):
            self._answer(json.dumps(_credentials("container")))
        elif self.path.rstrip("/").endswith("security-credentials"):
            self._answer("role-of-machine")
        else:
            self._answer(json.dumps(_credentials("instance")))

    def _answer(self, text: str) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


def _credentials(who: str) -> dict[str, str]:
    return {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "LastUpdated": "2020-01-01T00:00:00Z",
        "AccessKeyId": f"key-of-{who}",
        "SecretAccessKey": "secret",
        "Token": f"token-of-{who}",
        "Expiration": "2099-01-01T00:00:00Z",
    }


class _Machine(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []


@contextmanager
def machine() -> Iterator[str]:
    """The address of an EC2 metadata service, which below `/container` is one of container credentials."""
    server = _Machine()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
