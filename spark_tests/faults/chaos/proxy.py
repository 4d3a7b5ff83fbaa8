"""An HTTP proxy in front of a store's server that makes trouble by a plan.

    python -m spark_tests.faults.chaos.proxy PORT SERVER_PORT FLAVOUR SEED RATE COMMIT_RATE

It takes words on its standard input: `expire SECONDS` (nobody is let in for that long), `calm` (no more trouble),
`counts` (tell, as JSON, how often each kind of trouble was met). It ends with its input.

Every request goes over a connection of its own to the server, with the client's own headers: signatures hold. Bodies
are kept in memory up to a size; longer ones are passed on piece by piece, and only ever cut.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass

from spark_tests.faults.chaos import plan as plans
from spark_tests.faults.chaos.plan import Plan, refusal

PATIENCE = 6.0  # seconds; what clients of the load wait for an answer
_KEPT = 8 << 20
_PIECE = 1 << 16
_HOP = (b"connection", b"keep-alive", b"expect", b"proxy-connection")


class CutError(Exception):
    """The connection to the client ends here."""


@dataclass
class Message:
    """A request or an answer: its first line and headers, and its body where that is not too long to be kept."""

    start: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes | None = None

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def length(self) -> int | None:
        """Of the body; None: it comes in chunks, or ends with the connection."""
        value = self.header(b"content-length")
        return None if value is None else int(value)

    @property
    def chunked(self) -> bool:
        return b"chunked" in (self.header(b"transfer-encoding") or b"").lower()

    def head(self) -> bytes:
        kept = [(name, value) for name, value in self.headers if name.lower() not in _HOP]
        return b"\r\n".join([self.start, *(name + b": " + value for name, value in kept), b""])


async def read_head(reader: asyncio.StreamReader) -> Message | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    start, *lines = raw[:-4].split(b"\r\n")
    return Message(start, [tuple(map(bytes.strip, line.split(b":", 1))) for line in lines])  # type: ignore[misc]


async def read_body(reader: asyncio.StreamReader, message: Message, *, until_end: bool) -> bytes:
    """The body as it is on the wire, its chunks with their lengths."""
    if message.chunked:
        pieces = []
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            pieces += [line, await reader.readexactly(size + 2)]
            if not size:
                return b"".join(pieces)
    if message.length is not None:
        return await reader.readexactly(message.length)
    return await reader.read() if until_end else b""


class Proxy:
    """The server that clients connect to."""

    def __init__(self, server_port: int, flavour: str, plan: Plan, patience: float = PATIENCE) -> None:
        self._server_port = server_port
        self._flavour = flavour
        self._plan = plan
        self._patience = patience
        self.calm = False
        self.closed_until = 0.0
        self._late: set[asyncio.Task[None]] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The loop itself holds its tasks weakly: one that waits would be collected with its connection.
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            while (request := await read_head(reader)) is not None:
                await self._answer(request, reader, writer)
        except (CutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except Exception:  # of the proxy itself, which would look like the store's
            traceback.print_exc()
            os._exit(1)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def trouble(self, request: Message) -> str | None:
        if self.calm:
            return None
        if time.monotonic() < self.closed_until:
            self._plan.counts[plans.EXPIRED] += 1
            return plans.EXPIRED
        method, target, _ = request.start.decode("latin-1").split(" ", 2)
        return self._plan.choose(method, target, request.body or b"")

    async def _answer(
        self, request: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if (request.header(b"expect") or b"").lower() == b"100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if (request.length or 0) > _KEPT:
            kind = self.trouble(request)
            await self._pass_on(request, reader, writer, cut=kind is not None)
            return
        request.body = await read_body(reader, request, until_end=False)
        kind = self.trouble(request)
        if kind == plans.CUT_BEFORE:
            raise CutError
        method = request.start.split(b" ")[0]
        if kind == plans.HUNG:
            await asyncio.sleep(self._patience * 3)
            raise CutError
        if kind == plans.LATE:
            late = asyncio.create_task(self._forward_later(request))
            self._late.add(late)
            late.add_done_callback(self._late.discard)
            await asyncio.sleep(self._patience * 3)
            raise CutError
        if kind == plans.EXPIRED or kind in plans.REFUSED:
            status = 403 if kind == plans.EXPIRED else int(kind)
            answer = refusal(self._flavour, status)
            writer.write(answer if method != b"HEAD" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            await writer.drain()
            return
        if kind == plans.CUT_REQUEST:
            await self._forward(request, half=True)
            raise CutError
        if kind == plans.DELAYED:
            await asyncio.sleep(self._plan.between(0.05, 1.5))
        answer_bytes, ends = await self._forward(request)
        if kind == plans.DOUBLED:
            answer_bytes, ends = await self._forward(request)
        if kind in (plans.LOST, plans.LOST_REFUSED):
            raise CutError
        if kind == plans.CUT_ANSWER:
            writer.write(answer_bytes[: len(answer_bytes) * 2 // 3])
            await writer.drain()
            raise CutError
        writer.write(answer_bytes)
        await writer.drain()
        if ends:
            raise CutError

    async def _forward_later(self, request: Message) -> None:
        await asyncio.sleep(self._patience * self._plan.between(1.05, 2.0))
        with suppress(OSError, CutError, asyncio.IncompleteReadError):
            await self._forward(request)

    async def _forward(self, request: Message, *, half: bool = False) -> tuple[bytes, bool]:
        """Send a kept request; the answer as it is on the wire, and whether it ends with the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port, limit=_PIECE * 4)
        try:
            body = request.body or b""
            sent = request.head() + b"Connection: close\r\n\r\n" + body
            if half:
                writer.write(sent[: len(sent) - max(len(body) // 2, 1)])
                await writer.drain()
                return b"", True
            writer.write(sent)
            await writer.drain()
            answer = await read_head(reader)
            while answer is not None and answer.start.split(b" ")[1] == b"100":
                answer = await read_head(reader)
            if answer is None:
                raise CutError
            status = answer.start.split(b" ")[1]
            if request.start.startswith(b"HEAD ") or status in (b"204", b"304"):
                return answer.head() + b"\r\n", False
            ends = answer.length is None and not answer.chunked
            found = await read_body(reader, answer, until_end=True)
            return answer.head() + (b"Connection: close\r\n" if ends else b"") + b"\r\n" + found, ends
        finally:
            writer.close()

    async def _pass_on(
        self, request: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, cut: bool
    ) -> None:
        """A long request, piece by piece; one that is cut ends in its middle."""
        server_reader, server = await asyncio.open_connection("127.0.0.1", self._server_port)
        try:
            server.write(request.head() + b"Connection: close\r\n\r\n")
            left = request.length or 0
            while left:
                piece = await reader.read(min(left, _PIECE))
                if not piece or (cut and left < (request.length or 0) // 2):
                    raise CutError
                left -= len(piece)
                server.write(piece)
                await server.drain()
            while piece := await server_reader.read(_PIECE):
                writer.write(piece)
                await writer.drain()
            raise CutError  # its end is the end of the connection
        finally:
            server.close()


async def main() -> None:
    port, server_port, flavour, seed, rate, commit_rate = sys.argv[1:]
    plan = Plan(int(seed), float(rate), float(commit_rate))
    proxy = Proxy(int(server_port), flavour, plan)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", int(port), limit=_PIECE * 4)
    loop = asyncio.get_running_loop()
    words = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    async with server:
        while line := (await words.readline()).decode().split():
            if line[0] == "expire":
                proxy.closed_until = time.monotonic() + float(line[1])
            elif line[0] == "calm":
                proxy.calm = True
            else:
                print(json.dumps(plan.counts), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
