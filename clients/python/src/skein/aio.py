"""The client for asyncio: what ``skein.Skein`` does, in coroutines and asynchronous iterators."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _wire as wire
from ._wire import Chunk, Done, Event, Frame, Gap, Options, SkeinError, Started, TenantEvent

if TYPE_CHECKING:
    from . import contract as c
    from ._calls import AsyncCalls, AsyncThreadCalls
else:
    AsyncCalls = AsyncThreadCalls = object

_BROKEN = (OSError, EOFError, asyncio.TimeoutError, ValueError)


@dataclass
class _Answer:
    """An answer of HTTP, whose body is read as it comes."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader

    async def body(self) -> AsyncIterator[bytes]:
        """Returns the pieces of the body. One that is cut off raises an EOFError."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self._line()).split(b";")[0], 16):
                yield await asyncio.wait_for(self.reader.readexactly(size), wire.QUIET)
                await self._line()
            return
        if "content-length" not in self.headers:  # it ends with the connection
            while some := await asyncio.wait_for(self.reader.read(1 << 16), wire.QUIET):
                yield some
            return
        left = int(self.headers["content-length"])
        if left > 0:
            yield await asyncio.wait_for(self.reader.readexactly(left), wire.QUIET)

    async def read(self) -> bytes:
        return b"".join([some async for some in self.body()])

    async def _line(self) -> bytes:
        return (await asyncio.wait_for(self.reader.readuntil(b"\n"), wire.QUIET)).strip()


class Skein(AsyncCalls):
    """A client of Skein for asyncio: see ``skein.Skein``."""

    def __init__(self, url: str = Options.url, *, key: str | Callable[[], str] | None = None, tenant: str | None = None, timeout: float = Options.timeout) -> None:
        self._options = wire.options(url, key, tenant, timeout)
        self._seq = 0

    def thread(self, ref: str) -> Thread:
        """Returns a thread, by its id, or by ``key:`` and its key. Nothing is sent."""
        return Thread(self, ref)

    async def _send(self, name: str, data: Any, *, command_id: str | None = None, expected_version: int | None = None, writer_token: str | None = None, thread_id: str | None = None) -> Any:
        """Executes a command."""
        reply = await self._json(wire.call_path("commands", name), wire.command(data, command_id, expected_version, writer_token, thread_id))
        self._seq = max(self._seq, reply.get("seq", 0))
        return reply

    async def _query(self, name: str, ask: Any) -> Any:
        """Executes a query."""
        return await self._json(wire.call_path("queries", name), ask)

    if not TYPE_CHECKING:  # there they have the signatures of _calls.pyi
        send, query = _send, _query

    async def events(self, *, after: str | None = None, types: Sequence[str] | None = None) -> AsyncIterator[TenantEvent]:
        """Follows the events of the tenant: from now on, or after a position."""
        query = wire.search(types=",".join(types) if types else None)
        async for frame in self._stream(f"/api/events{query}", wire.Position(after, None)):
            yield TenantEvent(frame.id, wire.event_of(frame))

    @asynccontextmanager
    async def _ask(self, method: str, path: str, body: bytes, more: dict[str, str]) -> AsyncIterator[_Answer]:
        url = urllib.parse.urlsplit(self._options.url)
        secure = ssl.create_default_context() if url.scheme == "https" else None
        reader, writer = await asyncio.open_connection(url.hostname, url.port or (443 if secure else 80), ssl=secure, limit=1 << 20)
        try:
            headers = wire.headers_of(self._options, self._seq, {"Host": url.netloc, "Connection": "close", "Content-Length": str(len(body)), **more})
            lines = [f"{method} {url.path}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), wire.QUIET)).decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in head[1:] if line)
            yield _Answer(int(head[0].split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}, reader)
        finally:
            writer.close()

    async def _json(self, path: str, ask: Any) -> Any:
        last: list[Exception] = []
        try:
            return await asyncio.wait_for(self._until_answered(path, json.dumps(ask).encode(), last), self._options.timeout)
        except asyncio.TimeoutError:
            raise wire.unanswered(path, last[0] if last else None) from None

    async def _until_answered(self, path: str, body: bytes, last: list[Exception]) -> Any:
        failures = 0
        while True:
            after = 0.0
            try:
                async with self._ask("POST", path, body, {"Content-Type": "application/json"}) as answer:
                    raw = await answer.read()
                    if answer.status < 300:
                        return json.loads(raw)
                    refused = wire.refusal(raw, answer.status)
                    if not refused.retry:
                        raise refused
                    last[:] = [refused]
                    after = wire.retry_after(answer.headers)
            except _BROKEN as e:
                last.append(e)
            await asyncio.sleep(wire.pause(failures, after))
            failures += 1

    async def _stream(self, path: str, at: wire.Position, over: Callable[[Frame], bool] = lambda last: False, body: bytes = b"", headers: dict[str, str] | None = None) -> AsyncIterator[Frame]:
        deadline = time.monotonic() + self._options.timeout
        while True:
            after = 0.0
            last: Exception | None = None
            try:
                async with self._ask("POST" if body else "GET", path, body, {**(headers or {}), **at.headers()}) as answer:
                    if answer.status != 200:
                        after = wire.retry_after(answer.headers)
                        raise wire.refusal(await answer.read(), answer.status)
                    at.log, at.opened = answer.headers.get("skein-log", at.log), True
                    decoder = wire.Frames()
                    async for some in answer.body():
                        for frame in decoder.feed(some):
                            at.note(frame)
                            yield frame
                            if over(frame):
                                return
            except SkeinError as e:
                if not e.retry:
                    raise
                last = e
            except _BROKEN as e:
                last = e
            if not at.opened and time.monotonic() >= deadline:
                raise wire.unanswered(path, last)
            await asyncio.sleep(at.pause(after, deadline - time.monotonic()))
            at.failures += 1


class Thread(AsyncThreadCalls):
    """A thread of a ``Skein``."""

    def __init__(self, skein: Skein, ref: str) -> None:
        self._skein, self.ref = skein, ref

    async def _send(self, name: str, data: Any, *, command_id: str | None = None, expected_version: int | None = None, writer_token: str | None = None) -> Any:
        """Executes a command on the thread."""
        return await self._skein._send(name, data, command_id=command_id, expected_version=expected_version, writer_token=writer_token, thread_id=self.ref)

    async def _query(self, name: str, ask: Any) -> Any:
        """Executes a query about the thread."""
        return await self._skein._query(name, {**ask, "threadId": self.ref})

    if not TYPE_CHECKING:  # there they have the signatures of _calls.pyi
        send, query = _send, _query

    async def events(self, *, after: int | None = None, types: Sequence[str] | None = None, log: str | None = None) -> AsyncIterator[Event]:
        """Follows the thread's events: all of them, or those after a version."""
        query = wire.search(types=",".join(types) if types else None)
        at = wire.Position(None if after is None else str(after), log)
        async for frame in self._skein._stream(f"{wire.thread_path(self.ref)}/events{query}", at, lambda f: f.event == "lifecycle.deleted"):
            yield wire.event_of(frame)

    async def chunks(self, *, execution: str | None = None, after: int | None = None) -> AsyncIterator[Chunk | Gap]:
        """Follows what a run streams, until its last chunk."""
        query = wire.search(execution=execution)
        at = wire.Position(None if after is None else str(after), None)
        async for frame in self._skein._stream(f"{wire.thread_path(self.ref)}/chunks{query}", at, wire.is_last):
            yield wire.streamed(frame)

    async def run(self, data: c.ThreadReact, *, command_id: str | None = None) -> AsyncIterator[Started | Chunk | Gap | Done]:
        """Has the thread's agent react, and follows the run until it ends: see ``skein.Thread.run``."""
        body, headers = wire.reaction(data, command_id)
        run = wire.Run()
        async for frame in self._skein._stream(f"{wire.thread_path(self.ref)}/react", wire.Position(None, None), wire.is_done, body, headers):
            told = run.told(frame)
            self._skein._seq = max(self._skein._seq, run.seq)
            if told is not None:
                yield told
