"""The client for asyncio over NATS: what ``skein.aio.Skein`` does, over a connection of nats-py that the
caller makes and closes."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from . import _nats_feed as feeds
from . import _wire as wire
from . import aio
from ._nats_chunks import TYPES, ChunkReader
from ._nats_request import Connection, Requests, closed
from ._wire import Chunk, Done, Event, Gap, Options, SkeinError, Started, TenantEvent

if TYPE_CHECKING:
    from . import contract as c

__all__ = ["Connection", "Skein", "Thread"]

# The queries that take no minSeq: they wait for no read model.
UNORDERED = frozenset(("consumer.create", "consumer.delete", "consumer.next", "consumer.settle", "kv.get", "kv.list", "push.list", "thread.shared", "webhook.list"))


class Skein(aio.Skein):
    """A client of Skein over NATS: see ``skein.aio.Skein``.

    ``timeout`` is how many seconds a request may take with its repeats.
    """

    def __init__(self, nc: Connection, *, tenant: str, timeout: float = Options.timeout) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", tenant):
            raise SkeinError("invalid_request", f"the tenant {tenant[:80]!r} is not 1 to 64 letters, digits, dashes and underscores, the first a letter or digit")
        self._nc, self._tenant, self._requests, self._seq = nc, tenant, Requests(nc, timeout), 0

    def thread(self, ref: str) -> Thread:
        """Returns a thread, by its id, or by ``key:`` and its key. Nothing is sent."""
        return Thread(self, ref)

    async def _send(self, name: str, data: Any, *, command_id: str | None = None, expected_version: int | None = None, writer_token: str | None = None, thread_id: str | None = None) -> Any:
        """Executes a command."""
        reply = await self._requests.send(self._subject("cmd", name), wire.command(data, command_id, expected_version, writer_token, thread_id))
        self._seq = max(self._seq, reply.get("seq", 0))
        return reply

    async def _query(self, name: str, ask: Any) -> Any:
        """Executes a query."""
        fresh = {**ask, "minSeq": self._seq} if self._seq and name not in UNORDERED and "minSeq" not in ask else ask
        # Asking for the next event of a consumer takes it: a second request would take another one.
        wait = ask.get("waitMs", 5000) if name == "consumer.next" else None
        return await self._requests.send(self._subject("query", name), fresh, wait / 1000 if isinstance(wait, (int, float)) else None)

    if not TYPE_CHECKING:  # there they have the signatures of _calls.pyi
        send, query = _send, _query

    async def ask(self, name: str, ask: dict[str, Any], begun: bool) -> Any:
        """Executes a query of a stream; of one that has begun, until it is answered, however long nobody does."""
        failures = 0
        while True:
            try:
                return await self._query(name, ask)
            except SkeinError as e:
                if not begun or not e.retry:
                    raise
                if self._nc.is_closed:
                    raise closed() from e
            await asyncio.sleep(wire.pause(failures, 0.0))
            failures += 1

    async def events(self, *, after: str | None = None, types: Sequence[str] | None = None) -> AsyncGenerator[TenantEvent, None]:
        """Follows the events of the tenant: from now on, or after a position."""
        place = feeds.TenantPlace(self, after, types)
        async with feeds.feed(self._nc, self._timeline("*"), feeds.is_stored) as live:
            if after is None:
                live.missed()  # nothing: what is committed after the end of the log comes live, or is missed from here on
                await place.begin()
            async with aclosing(feeds.follow(live, place)) as events:
                async for one in events:
                    yield one

    def _timeline(self, thread: str) -> str:
        return f"skein.timeline.{self._tenant}.{thread}."

    def _subject(self, kind: str, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{1,64}", name):
            raise SkeinError("invalid_request", f"{name[:80]!r} cannot exist: a name is noun.verb, such as thread.get")
        return f"skein.{kind}.{self._tenant}.{name}"

    async def _thread_id(self, ref: str) -> str:
        """Returns the id of a thread, which may be named by its key."""
        if ref.startswith("key:"):
            return str((await self._query("thread.get", {"threadId": ref}))["id"])
        if re.fullmatch(r"T-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|thrd_[A-Za-z0-9]{27,59}", ref):
            return ref
        raise SkeinError("invalid_request", f"{ref[:80]!r} is neither a thread's id nor key: and its key", param="/threadId")


class Thread(aio.Thread):
    """A thread of a ``Skein``."""

    _skein: Skein

    def __init__(self, skein: Skein, ref: str) -> None:
        super().__init__(skein, ref)

    async def events(self, *, after: int | None = None, types: Sequence[str] | None = None, log: str | None = None) -> AsyncGenerator[Event, None]:
        """Follows the thread's events: all of them, or those after a version."""
        skein = self._skein
        thread = await skein._thread_id(self.ref)
        place = feeds.ThreadPlace(skein, thread, after, types, log)
        async with feeds.feed(skein._nc, skein._timeline(thread), feeds.is_stored) as live, aclosing(feeds.follow(live, place)) as events:
            async for one in events:
                yield one

    async def chunks(self, *, execution: str | None = None, after: int | None = None) -> AsyncGenerator[Chunk | Gap, None]:
        """Follows what a run streams, until its last chunk."""
        if execution is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", execution):
            raise SkeinError("invalid_request", f"{execution[:80]!r} is not an execution's id", param="/execution")
        skein = self._skein
        thread = await skein._thread_id(self.ref)
        async with feeds.feed(skein._nc, skein._timeline(thread), TYPES.__contains__) as live:
            async with aclosing(ChunkReader(skein, thread, live, execution, after).read()) as chunks:
                async for one in chunks:
                    yield one

    async def run(self, data: c.ThreadReact, *, command_id: str | None = None) -> AsyncGenerator[Started | Chunk | Gap | Done, None]:
        """Has the thread's agent react, and follows the run until it ends: see ``skein.Thread.run``."""
        skein = self._skein
        reply = await skein._send("thread.react", data, command_id=command_id or str(uuid.uuid4()), thread_id=self.ref)
        execution = (reply.get("result") or {}).get("executionId", "")
        thread = Thread(skein, reply["threadId"])
        yield Started(thread.ref, execution)

        async def get(**fresh: int) -> Any:
            return await skein.ask("execution.get", {"threadId": thread.ref, "executionId": execution, **fresh}, True)

        news = thread.events(after=reply["version"], types=["execution.created", "queue.removed", "thread.finished", "lifecycle.deleted"])
        async with aclosing(news):
            x = await _begun(skein, thread.ref, execution, get)
            if x is None:
                x = await _until(news, execution, True, get)
            async with aclosing(thread.chunks(execution=execution)) as chunks:
                async for one in chunks:
                    yield one
            if not x.get("finished"):
                x = await get()
            if not x.get("finished"):
                x = await _until(news, execution, False, get)
            skein._seq = max(skein._seq, x["seq"])
            yield Done(x)


async def _begun(skein: Skein, thread: str, execution: str, get: Any) -> Any:
    """Returns an execution, or None while its message waits in the agent's queue."""
    try:
        return await get()
    except SkeinError as e:
        if e.code != "not_found":
            raise
    queue = await skein.ask("queue.list", {"threadId": thread}, True)
    if any(q.get("executionId") == execution for q in queue["queued"]):
        return None
    return await get(minSeq=queue["seq"])


async def _until(news: AsyncGenerator[Event, None], execution: str, begin: bool, get: Any) -> Any:
    """Reads events until one begins or ends a run, and returns its execution as of then."""
    async for e in news:
        if e.type == "queue.removed" and e.data.get("executionId") == execution:
            raise SkeinError("not_found", f"execution {execution} will not start: its message was removed from the queue", 404)
        begins = begin and e.type == "execution.created" and e.data["id"] == execution
        if begins or e.type == "lifecycle.deleted" or (e.type == "thread.finished" and e.data.get("executionId") == execution):
            return await get(minVersion=e.version)
    return await get()  # the thread was deleted
