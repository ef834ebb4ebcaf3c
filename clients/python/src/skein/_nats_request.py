"""Requests over NATS, and what is used of a connection of nats-py."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from . import _wire as wire
from ._wire import SkeinError

_FIRST_PATIENCE, _LONGEST_PATIENCE = 8.0, 30.0  # of an attempt; a service answers no later than the longest
_AFTER_WAIT = 3.0  # seconds that an answer may take in addition to what a request waits for
_COPIES_AHEAD = 16
_HEADERS_ROOM = 64  # bytes that headers may take of what a request may have
_POLL, _FIRST_POLL = 0.1, 0.01  # seconds between looks at what the connection does not tell by itself
_FIRST = 0.5  # seconds after a request in which it is denied, if it is
_DENIED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE)


class Message(Protocol):
    """What is used of a message."""

    subject: str
    data: bytes

    @property
    def headers(self) -> Mapping[str, str] | None: ...


class Subscription(Protocol):
    """What is used of a subscription."""

    async def unsubscribe(self) -> None: ...


class Connection(Protocol):
    """What is used of a connection of nats-py, which the caller makes and closes."""

    stats: dict[str, int]

    @property
    def is_closed(self) -> bool: ...
    @property
    def last_error(self) -> Exception | None: ...
    @property
    def max_payload(self) -> int: ...
    async def request(self, subject: str, payload: bytes = ..., timeout: float = ..., *, headers: dict[str, str] | None = ...) -> Any: ...
    async def subscribe(self, subject: str, queue: str = ..., cb: Callable[[Any], Awaitable[None]] | None = ...) -> Any: ...


def closed() -> SkeinError:
    """Returns the error of what needs a connection that is open."""
    return SkeinError("unavailable", "the connection is closed: make another one, and another Skein with it")


def failure(error: Exception, subject: str) -> SkeinError:
    """Returns the error of an operation on a subject that the connection failed."""
    if isinstance(error, SkeinError):
        return error
    kind = type(error).__name__  # nats-py need not be there
    if kind == "NoRespondersError":
        return SkeinError("unavailable", f"no responders on {subject}: is skein serve running on this server?")
    if kind in ("ConnectionClosedError", "ConnectionDrainingError"):
        return closed()
    return SkeinError("unavailable", f"no answer on {subject}: {str(error) or kind}", details={"outcome": "unknown"})


class Denials:
    """Notices what the server denies from now on: it tells so as the last error of the connection."""

    def __init__(self, nc: Connection) -> None:
        self._nc, self._before, self._last = nc, nc.last_error, nc.last_error

    def others(self) -> bool:
        """Reports whether anything was denied since the last call: of what is denied at once only the last is told."""
        error, before = self._nc.last_error, self._last
        self._last = error
        return error is not None and error is not before and _DENIED.search(str(error)) is not None

    def check(self, subject: str) -> None:
        """Raises a SkeinError if an operation on a subject was denied, or the inbox of requests."""
        error = self._nc.last_error
        found = _DENIED.search(str(error)) if error is not None and error is not self._before else None
        if not found:
            return
        kind, denied = found[1].lower(), found[2]
        inbox = kind == "subscription" and denied.lower().startswith("_inbox.")
        if not inbox and denied.lower() != subject.lower():
            return
        hint = ": connect with the inbox_prefix that skein access user prints" if inbox else ""
        what = f"publish on {subject}" if kind == "publish" else f"subscribe to {denied if inbox else subject}"
        raise SkeinError("forbidden", f"these credentials may not {what}{hint}", 403)


class Requests:
    """Sends requests, and repeats those that nobody answered: commands have an id, which makes that safe."""

    def __init__(self, nc: Connection, timeout: float) -> None:
        self._nc, self._timeout = nc, timeout
        self._spent = 0  # copies that no answer stands for

    async def send(self, subject: str, body: Any, singly: float | None = None) -> Any:
        """Sends a request until it is answered for good. One that is sent singly, and may wait for so many
        seconds, is not sent again before that."""
        payload, most = json.dumps(body).encode(), self._nc.max_payload - _HEADERS_ROOM
        if len(payload) > most:
            raise SkeinError("payload_too_large", f"the request has {len(payload)} bytes; at most {most} are allowed", 413, details={"size": len(payload), "limit": most})
        deadline, patience, failures, lost = time.monotonic() + self._timeout, max(_FIRST_PATIENCE, (singly or 0.0) + _AFTER_WAIT), 0, False
        while True:
            begun = time.monotonic()
            try:
                return await self._attempt(subject, payload, max(min(patience, deadline - begun), _POLL), singly is None)
            except Exception as e:
                refusal = failure(e, subject)
                lost = lost or refusal.details.get("outcome") == "unknown"
                if not refusal.retry:
                    raise refusal from e
                wait = wire.pause(failures, 0.0)
                if self._nc.is_closed or time.monotonic() + wait >= deadline:
                    if lost:
                        refusal.details = {**refusal.details, "outcome": "unknown"}
                    raise refusal from e
            patience = max(patience, min(2 * (time.monotonic() - begun), _LONGEST_PATIENCE))  # an answer that takes longer would never come
            await asyncio.sleep(wait)
            failures += 1

    async def _attempt(self, subject: str, payload: bytes, patience: float, copies: bool) -> Any:
        """Sends a request, and copies of it while nobody answers: one Skein of several may hang."""
        denials, until = Denials(self._nc), time.monotonic() + patience
        waiting: set[asyncio.Task[Any]] = set()
        failed: BaseException = closed()
        sent, last, again, hidden = 0, 0.0, 0.0, False
        try:
            while True:
                now = time.monotonic()
                if now < until and (sent == 0 or (copies and now >= again and (hidden or self._spend()))):
                    headers = {"Skein-Wait-Ms": str(max(1, int(1000 * (until - now))))}  # so that Skein waits no longer
                    waiting.add(asyncio.create_task(self._nc.request(subject, payload, timeout=until - now, headers=headers)))
                    sent, last, hidden = sent + 1, now, False
                    again = now + _repeat_after(sent)
                poll = _FIRST_POLL if now - last < _FIRST else _POLL
                done, waiting = await asyncio.wait(waiting, timeout=poll, return_when=asyncio.FIRST_COMPLETED)
                ends = [closed() if task.cancelled() else task.exception() for task in done]  # cancelled: the connection was closed
                for task, error in zip(done, ends):
                    if error is not None:
                        failed = error
                        continue
                    try:
                        answer = _answer_in(task.result())
                    except SkeinError as e:
                        failed, copies = e, False  # somebody is there, and has too much to do
                        if e.retry and e.code != "projection_behind":
                            continue
                        self._spent = max(self._spent - 1, 0)
                        raise
                    self._spent = max(self._spent - 1, 0)
                    return answer
                if not waiting:
                    raise failed
                denials.check(subject)
                if denials.others() and now - last < _FIRST:  # if this was denied too, it is told when it is denied alone
                    again, hidden = min(again, now + random.uniform(0.0, _FIRST)), True
                if self._nc.is_closed:
                    raise closed()
        finally:
            for task in waiting:
                task.cancel()

    def _spend(self) -> bool:
        if self._spent >= _COPIES_AHEAD:
            return False
        self._spent += 1
        return True


def _repeat_after(sent: int) -> float:
    """Returns after how many seconds a request that was sent so often is sent again."""
    return {1: 1.0, 2: 1.0, 3: 2.0, 4: 3.0}.get(sent, _FIRST_PATIENCE)


def _answer_in(m: Message) -> Any:
    """Returns what an answer says. A refusal is raised."""
    status = (m.headers or {}).get("Nats-Service-Error-Code")
    if status:
        raise wire.refusal(m.data, int(status))
    return json.loads(m.data)
