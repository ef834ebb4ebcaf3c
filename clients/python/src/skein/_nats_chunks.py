"""What a run streams, over NATS."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from typing import Any

from . import _wire as wire
from ._nats_feed import REFILLS, Feed, Queries, placed
from ._wire import Chunk, Event, Gap

TYPES = ("chunk.emitted", "execution.created", "execution.status.changed", "thread.finished")
_PAGE = 256
_ASK_EVERY = 15.0  # seconds after which the execution is asked for, in case its end was missed
_END_GRACE = 1.0  # seconds in which the last chunk may arrive after the execution's end


class ChunkReader:
    """Merges live chunks with those that are stored for an hour. The indexes of a run have no gaps and no
    repeats, so the last one tells whether another chunk is new, and whether some were missed."""

    def __init__(self, queries: Queries, thread: str, live: Feed, execution: str | None, after: int | None) -> None:
        self._queries, self._thread, self._live, self._execution = queries, thread, live, execution
        self._next = 0 if after is None else after + 1
        self._attempt = 0  # the claim of the last chunk
        self._seq = 0  # its sequence in the stream of chunks; 0 if unknown
        self._begun = self._done = False
        self._end: Any = None  # the execution that has ended, whose last chunk has not arrived
        self._until = math.inf  # when it is no longer waited for, or when the execution is asked for

    async def read(self) -> AsyncGenerator[Chunk | Gap, None]:
        """Returns the chunks until the last one."""
        while not self._done:
            if self._live.missed():
                async for one in self._stored():
                    yield one
                if not self._done:
                    await self._ask()
                continue
            if (m := self._live.take()) is not None:
                if (e := placed(m)) is not None:
                    async for one in self._live_event(e.event, int((m.headers or {}).get("Nats-Sequence", 0))):
                        yield one
            elif time.monotonic() >= self._until:
                if self._end is None:
                    await self._ask()
                else:
                    async for one in self._finish():
                        yield one
            else:
                await self._live.wait(self._until - time.monotonic())

    async def _live_event(self, e: Event, seq: int) -> AsyncGenerator[Chunk | Gap, None]:
        if e.type == "execution.created":
            self._execution = self._execution or e.data["id"]
        elif e.type == "chunk.emitted":
            if self._execution is None and e.data["type"] != "finish":  # a finish is that of an earlier run
                self._execution = e.data["executionId"]
            if e.data["executionId"] != self._execution or not self._is_new(e.data):
                return
            for failures in range(REFILLS):
                if not self._lacks(e.data) or (failures and self._seq >= seq):
                    break
                if failures:  # a replica may lag behind
                    await asyncio.sleep(wire.pause(min(failures, 4), 0.0))
                async for one in self._stored():
                    yield one
            if not self._done and self._is_new(e.data):
                for one in self._move(e.data, seq):
                    yield one
        elif self._execution is not None and self._execution == (e.data["executionId"] if e.type == "thread.finished" else e.envelope.get("subject")):
            await self._ask()

    def _is_new(self, d: Any) -> bool:
        """Reports whether a chunk comes after the last one, or is of a newer claim. What an older claim
        still sends does not count."""
        return bool(d["attempt"] >= self._attempt and d["index"] >= self._next) or 0 < self._attempt < int(d["attempt"])

    def _lacks(self, d: Any) -> bool:
        """Reports whether chunks are missing before a new one."""
        return not self._done and self._is_new(d) and bool(d["index"] > self._next)

    def _move(self, d: Any, seq: int) -> Iterator[Chunk | Gap]:
        if d["index"] > self._next:
            yield Gap(d["executionId"], self._next, d["index"] - 1)
        self._next, self._attempt, self._seq = d["index"] + 1, d["attempt"], max(self._seq, seq)
        if self._end is not None:
            self._until = time.monotonic() + _END_GRACE  # more may follow
        self._done = d["type"] == "finish"
        yield wire.chunk_in(d)

    async def _stored(self) -> AsyncGenerator[Chunk | Gap, None]:
        """Reads what is stored after the last chunk."""
        while self._execution is not None:
            ask: dict[str, Any] = {"threadId": self._thread, "executionId": self._execution, "limit": _PAGE}
            if self._seq > 0:
                ask["fromSeq"] = self._seq + 1
            elif self._next > 0:
                ask.update({"fromIndex": self._next} if self._begun else {"afterIndex": self._next - 1})
            page = await self._queries.ask("chunk.list", ask, self._begun)
            self._begun = True
            for stored in page["chunks"]:
                d, self._seq = stored["event"]["data"], stored["seq"]
                if d["executionId"] != self._execution:
                    continue
                if self._is_new(d):
                    for one in self._move(d, self._seq):
                        yield one
                else:
                    self._done = d["type"] == "finish"  # it was seen before
                if self._done:
                    return
            if "nextSeq" not in page:
                return
            self._seq = max(self._seq, page["nextSeq"] - 1)

    async def _ask(self) -> None:
        """Asks for the execution, or for the one that is active, as it is now."""
        self._until = math.inf if self._end is None else self._until
        fresh = {"minSeq": (await self._queries.ask("history.get", {}, self._begun))["lastSeq"]}
        if self._end is None:
            self._until = time.monotonic() + _ASK_EVERY
        if self._execution is None:
            page = await self._queries.ask("execution.list", {"threadId": self._thread, "status": "executing", **fresh}, self._begun)
            self._begun = True
            if page["executions"]:
                self._execution = page["executions"][-1]["id"]
                self._live.miss()  # its chunks are to be read
            return
        x = await self._queries.ask("execution.get", {"threadId": self._thread, "executionId": self._execution, **fresh}, self._begun)
        if x["status"] == "executing" or self._end is not None:
            return
        self._end = x
        ended = datetime.fromisoformat(x.get("updatedAt") or x["createdAt"]).timestamp()
        # Nothing comes of a run that ended long ago. Of one that is read, more may: this clock may be ahead.
        old = self._attempt == 0 and time.time() - ended > 5 * _END_GRACE
        self._until = time.monotonic() + (0.0 if old else _END_GRACE)

    async def _finish(self) -> AsyncGenerator[Chunk | Gap, None]:
        """Ends a run whose last chunk was never written, or has expired: its execution says how."""
        async for one in self._stored():
            yield one
        if not self._done:
            failed = self._end["status"] == "failed"
            data = {"finishReason": "error", "errorText": self._end.get("errorText", "")} if failed else {"finishReason": "stop"}
            for one in self._move({"executionId": self._execution, "index": self._next, "attempt": max(self._attempt, 1), "type": "finish", "data": data}, 0):
                yield one
