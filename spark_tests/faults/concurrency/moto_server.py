"""moto's server, with puts on a condition one at a time: by itself it looks first and writes later.

python -m spark_tests.faults.concurrency.moto_server 5000 7

With a second number every seventh of these puts goes wrong: it is done and the answer is an error, it is done and
there is no answer, or it is not done, in turn.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

DONE_AND_FAILED, DONE_AND_CUT_OFF, REFUSED = range(3)
ERRORS = {
    DONE_AND_FAILED: ("500 Internal Server Error", "InternalError"),
    REFUSED: ("503 Slow Down", "SlowDown"),
}

App = Callable[[dict[str, Any], Any], Iterable[bytes]]


class OneConditionAtATime:
    """A WSGI application around moto's.

    Parameters
    ----------
    every
        Which puts on a condition go wrong; 0: none.
    """

    def __init__(self, app: App, every: int) -> None:
        self._app = app
        self._every = every
        self._lock = threading.Lock()
        self._puts = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if "HTTP_IF_NONE_MATCH" not in environ:
            return self._app(environ, start_response)
        with self._lock:
            self._puts += 1
            trouble = self._trouble()
            answer = [] if trouble == REFUSED else self._buffered(environ)
        if trouble == DONE_AND_CUT_OFF:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError("cut off")
        status, headers, body = answer if trouble is None else _error(trouble)
        start_response(status, headers)
        return [body]

    def _trouble(self) -> int | None:
        if not self._every or self._puts % self._every:
            return None
        return self._puts // self._every % 3

    def _buffered(self, environ: dict[str, Any]) -> list[Any]:
        started: list[Any] = []
        body = b"".join(self._app(environ, lambda *given: started.append(given)))
        ((status, headers, *_),) = started
        return [status, headers, body]


def _error(trouble: int) -> tuple[str, list[tuple[str, str]], bytes]:
    status, code = ERRORS[trouble]
    body = f"<Error><Code>{code}</Code><Message>on purpose</Message></Error>".encode()
    return status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))], body


class Handler(WSGIRequestHandler):
    """Keeps connections, and no log."""

    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    port, every = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    app = OneConditionAtATime(create_backend_app("s3"), every)
    make_server("127.0.0.1", port, app, threaded=True, request_handler=Handler).serve_forever()
