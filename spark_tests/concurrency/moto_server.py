"""moto's server, with puts on a condition one at a time: by itself it looks first and writes later.

python -m spark_tests.concurrency.moto_server 5000
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class OneConditionAtATime:
    """A WSGI application around another one."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if "HTTP_IF_NONE_MATCH" not in environ:
            found: Iterable[bytes] = self._app(environ, start_response)
            return found
        with self._lock:
            return list(self._app(environ, start_response))


class Handler(WSGIRequestHandler):
    """Keeps connections, and no log."""

    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    app = OneConditionAtATime(create_backend_app("s3"))
    make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True, request_handler=Handler).serve_forever()
