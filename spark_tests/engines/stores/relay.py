"""A relay in front of a server that counts the requests which pass it, by what a pattern finds in them."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_COPY = re.compile(rb"\nx-amz-copy-source:", re.IGNORECASE)
_REQUEST = re.compile(rb"(?:^|\n)([A-Z]+) (/\S*) HTTP/1\.1\r")


class Relay:
    """Counts of methods (`PUT`, `GET`, ...), and of `COPY`: puts whose content is another object's."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.seen: Counter[str] = Counter()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            for one, other, look in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass_on, args=(one, other, look), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, look: bool) -> None:
        try:
            while data := one.recv(1 << 16):
                if look:
                    self.seen["COPY"] += len(_COPY.findall(data))
                    self.seen.update(method.decode() for method, _ in _REQUEST.findall(data))
                other.sendall(data)
        except OSError:
            pass
        finally:
            # A close alone would not be told to the other end while a thread still reads from it.
            for end in (one, other):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def close(self) -> None:
        self._listener.close()


@contextmanager
def relay(port: int) -> Iterator[Relay]:
    """A relay in front of a port of loopback, until the block ends."""
    running = Relay(port)
    threading.Thread(target=running.serve, daemon=True).start()
    try:
        yield running
    finally:
        running.close()
