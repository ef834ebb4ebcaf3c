"""Events over NATS: those that are live, merged with those of the log."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from . import _wire as wire
from ._nats_request import Connection, Denials, Message, closed, failure
from ._wire import Event, SkeinError, TenantEvent

_MOST_MESSAGES, _MOST_BYTES = 1024, 8 << 20
_PAGE = 1000
_POLL = 0.5  # seconds between looks at what the connection does not tell by itself
REFILLS = 8  # how often what was announced is looked for in the log: a replica may lag behind
_KNOWN_THREADS = 16384
T = TypeVar("T", covariant=True)


class Queries(Protocol):
    """What streams are made of."""

    async def ask(self, name: str, ask: dict[str, Any], begun: bool) -> Any:
        """Executes a query; of a stream that has begun, until it is answered."""


class Feed:
    """A subscription of a reader that may be slow: messages wait for it within bounds. What does not fit, or
    may have come while the connection was lost, was missed, and is read from what stores it."""

    def __init__(self, nc: Connection, subject: str, wanted: Callable[[str], bool]) -> None:
        self._nc, self._subject, self._wanted = nc, subject, wanted
        self._waiting: deque[Message] = deque()
        self._bytes, self._missed, self._news = 0, True, asyncio.Event()
        self._denials, self._connects = Denials(nc), nc.stats["reconnects"]
        self._subscription: Any = None
        self._heard = False  # a message has come, so that the subscription is permitted

    async def subscribe(self) -> None:
        """Subscribes, also again: what came meanwhile was missed."""
        await self.close()
        self._missed = True
        try:
            self._subscription = await self._nc.subscribe(self._subject, cb=self.add)
        except Exception as e:
            raise failure(e, self._subject) from e

    async def close(self) -> None:
        """Unsubscribes."""
        subscription, self._subscription = self._subscription, None
        try:
            if subscription is not None and not self._nc.is_closed:
                await subscription.unsubscribe()
        except Exception:  # the connection is being closed, and the subscription with it
            pass

    async def add(self, m: Message) -> None:
        """Takes a message that has come."""
        self._heard = True
        if not self._wanted(".".join(m.subject.split(".")[4:])):
            return
        if len(self._waiting) >= _MOST_MESSAGES or self._bytes + len(m.data) > _MOST_BYTES:
            self._missed = True
        else:
            self._waiting.append(m)
            self._bytes += len(m.data)
        self._news.set()

    def miss(self) -> None:
        """Notes that messages were missed."""
        self._missed = True

    def check(self) -> None:
        """Raises why the subscription ended, if it did."""
        self._denials.check(self._subject)
        if self._nc.is_closed:
            raise closed()

    def missed(self) -> bool:
        """Reports whether messages were missed since the last call."""
        self.check()
        if self._nc.stats["reconnects"] != self._connects:
            self._connects, self._missed, self._heard = self._nc.stats["reconnects"], True, False
        missed, self._missed = self._missed, False
        return missed

    def take(self) -> Message | None:
        """Returns the next message, if there is one."""
        if not self._waiting:
            return None
        m = self._waiting.popleft()
        self._bytes -= len(m.data)
        return m

    async def wait(self, seconds: float) -> None:
        """Waits until there may be something to do."""
        if self._denials.others() and not self._heard:
            await self.subscribe()  # if this was denied too, it is told now
            return
        self._news.clear()
        if not self._waiting:
            try:
                await asyncio.wait_for(self._news.wait(), min(seconds, _POLL))
            except asyncio.TimeoutError:
                pass


@asynccontextmanager
async def feed(nc: Connection, timeline: str, wanted: Callable[[str], bool]) -> AsyncGenerator[Feed, None]:
    """Subscribes to a timeline, to messages of types that are wanted."""
    one = Feed(nc, timeline + ">", wanted)
    try:
        await one.subscribe()
        yield one
    finally:
        await one.close()


@dataclass(frozen=True)
class Placed:
    """An event, with the sequence in the log of its commit."""

    event: Event
    seq: float


def placed(m: Message) -> Placed | None:
    """Decodes a message of the timeline. What is no event is None."""
    try:
        return Placed(wire.event_in(json.loads(m.data)), float((m.headers or {}).get("Skein-Seq", "nan")))
    except (ValueError, KeyError, TypeError):
        return None


class Place(Protocol[T]):
    """What a reader of events knows of the log, which has all of them, and of its place in it."""

    over: bool

    def stored(self) -> AsyncGenerator[T, None]:
        """Reads what the log has after the place."""
    def follows(self, e: Placed) -> bool:
        """Reports whether an event comes after the place."""
    def lacks(self, e: Placed) -> bool:
        """Reports whether events are missing between the place and one that follows."""
    def move(self, e: Placed) -> Iterator[T]:
        """Moves the place to an event, and returns it if it was asked for."""


async def follow(live: Feed, place: Place[T]) -> AsyncGenerator[T, None]:
    """Merges live events with those of the log, each once and in its order."""
    while not place.over:
        if live.missed():
            async for one in place.stored():
                live.check()  # nothing is shown of a stream that does not go on
                yield one
            continue
        m = live.take()
        if m is None:
            await live.wait(math.inf)
            continue
        e = placed(m)
        for failures in range(REFILLS):
            if e is None or not (place.follows(e) and place.lacks(e)):
                break
            if failures:
                await asyncio.sleep(wire.pause(min(failures, 4), 0.0))
            async for one in place.stored():
                yield one
        if e is not None and not place.over and place.follows(e):
            for one in place.move(e):  # what the log lacks was erased
                yield one


def wanted(types: Sequence[str] | None) -> Callable[[str], bool]:
    """Returns whether a type is one of those that are asked for. A pattern that none can match is refused."""
    for one in types or ():
        if not re.fullmatch(r"\*|[^\s*>.]+(\.[^\s*>.]+)*(\.\*)?", one):
            raise SkeinError("invalid_request", f"{one[:80]!r} is not a pattern of event types; use item.created, or item.* for all of an entity", param="/types")
    return lambda kind: not types or any(one == kind or (one.endswith("*") and kind.startswith(one[:-1])) for one in types)


def is_stored(kind: str) -> bool:
    """Reports whether the log has events of a type."""
    return kind != "chunk.emitted"


class ThreadPlace:
    """A place among the events of a thread, whose versions have no gaps."""

    def __init__(self, queries: Queries, thread: str, after: int | None, types: Sequence[str] | None, log: str | None) -> None:
        self.over = False
        self._queries, self._thread, self._log = queries, thread, log
        self._version = self._after = after or 0
        self._wants, self._begun = wanted(types), False

    def follows(self, e: Placed) -> bool:
        return e.event.version > self._version

    def lacks(self, e: Placed) -> bool:
        return e.event.version > self._version + 1

    def move(self, e: Placed) -> Iterator[Event]:
        self._version, self.over = e.event.version, e.event.type == "lifecycle.deleted"
        if self._wants(e.event.type):
            yield e.event

    async def stored(self) -> AsyncGenerator[Event, None]:
        start: int | None = self._version + 1
        while start is not None:
            ask = {"threadId": self._thread, "fromVersion": start, "limit": _PAGE, **({"log": self._log} if self._log else {})}
            page = await self._queries.ask("event.list", ask, self._begun)
            self._begun, self._log = True, self._log or page.get("log")
            for raw in page["events"]:
                for event in self.move(Placed(wire.event_in(raw), math.nan)):
                    yield event
                if self.over:
                    return
            if not page["events"] and start == self._after + 1:
                await self._last()  # nothing came after what was seen before
            start = page.get("nextVersion")
            self._version = max(self._version, (start or 1) - 1)

    async def _last(self) -> None:
        """Ends where the event that was seen last is that the thread was deleted."""
        if self._version > 0:
            page = await self._queries.ask("event.list", {"threadId": self._thread, "fromVersion": self._version, "limit": 1, **({"log": self._log} if self._log else {})}, True)
            self.over = [e["type"] for e in page["events"]] == ["lifecycle.deleted"]


class TenantPlace:
    """A place in the log."""

    over = False

    def __init__(self, queries: Queries, after: str | None, types: Sequence[str] | None) -> None:
        given = re.fullmatch(r"(\d{1,15})(?:\.(\d{1,15})(?:\.([A-Za-z0-9][A-Za-z0-9_-]{0,63}))?)?", after or "0")
        if not given:
            raise SkeinError("invalid_request", f"after is {str(after)[:40]!r}; it takes the position of an event", param="/after")
        self._queries, self._wants, self._log, self._begun = queries, wanted(types), given[3], False
        self._after = (int(given[1]), float(given[2] or "inf"))  # what is up to there is left out
        self._seq = float(max(int(given[1]), 1) - 1)  # of the last commit that was passed, whole or in part
        self._version = math.inf  # of the last event in that commit, if it was not passed whole
        self._index = -1  # of that event
        self._versions: dict[str, int] = {}  # the last ones that were seen

    async def begin(self) -> None:
        """Moves the place to the end of the log."""
        end = await self._queries.ask("history.get", {}, False)
        self._seq, self._log, self._begun = end["lastSeq"], end.get("log"), True

    def follows(self, e: Placed) -> bool:
        return e.seq > self._seq or (e.seq == self._seq and e.event.version > self._version)

    def lacks(self, e: Placed) -> bool:
        last = self._version if e.seq == self._seq else self._versions.get(e.event.thread_id)
        return last is not None and e.event.version != last + 1

    def move(self, e: Placed) -> Iterator[TenantEvent]:
        self._index = self._index + 1 if e.seq == self._seq else 0
        self._seq, self._version = e.seq, e.event.version
        if len(self._versions) >= _KNOWN_THREADS:
            self._versions.clear()  # which only delays that a gap is noticed
        self._versions[e.event.thread_id] = e.event.version
        if (e.seq, self._index) > self._after and e.event.thread_id.startswith(("T-", "thrd_")) and self._wants(e.event.type):
            yield TenantEvent(f"{int(e.seq)}.{self._index}" + (f".{self._log}" if self._log else ""), e.event)

    def _passed(self, seq: float) -> None:
        if seq >= self._seq:
            self._seq, self._version = seq, math.inf

    async def stored(self) -> AsyncGenerator[TenantEvent, None]:
        while True:
            ask: dict[str, Any] = {"fromSeq": int(self._seq) + 1, "limit": _PAGE, **({"log": self._log} if self._log else {})}
            if self._version != math.inf:
                ask.update(fromSeq=int(self._seq), afterVersion=int(self._version))
            page = await self._queries.ask("history.list", ask, self._begun)
            self._begun, self._log = True, self._log or page.get("log")
            for entry in page["entries"]:
                if "event" not in entry:  # it cannot be read
                    self._passed(entry["seq"])
                    self._versions.pop(entry.get("threadId", ""), None)
                elif self.follows(e := Placed(wire.event_in(entry["event"]), entry["seq"])):
                    for one in self.move(e):
                        yield one
            after = page.get("nextSeq")
            if page["entries"] and (after is None or after > self._seq):
                self._passed(self._seq)  # the last commit was passed whole
            if after is None:
                return
            if after > self._seq + 1:
                self._passed(after - 1)
