"""The client for threads of the operating system."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _wire as wire
from ._wire import Chunk, Done, Event, Frame, Gap, Options, SkeinError, Started, TenantEvent

if TYPE_CHECKING:
    from . import contract as c
    from ._calls import Calls, ThreadCalls
else:
    Calls = ThreadCalls = object


class Skein(Calls):
    """A client of Skein. Commands and queries have the names and the data of docs/commands.md and
    docs/queries.md. A command that returned was executed exactly once; queries show what this client's
    commands have changed. It may be used by several threads at once."""

    def __init__(self, url: str = Options.url, *, key: Any = None, tenant: str | None = None, timeout: float = Options.timeout) -> None:
        self._options = wire.options(url, key, tenant, timeout)
        self._seq, self._lock = 0, threading.Lock()

    def thread(self, ref: str) -> Thread:
        """Returns a thread, by its id, or by ``key:`` and its key. Nothing is sent."""
        return Thread(self, ref)

    def _send(self, name: str, data: Any, *, command_id: str | None = None, expected_version: int | None = None, writer_token: str | None = None, thread_id: str | None = None) -> Any:
        """Executes a command."""
        reply = self._json(wire.call_path("commands", name), wire.command(data, command_id, expected_version, writer_token, thread_id))
        self._wrote(reply.get("seq", 0))
        return reply

    def _wrote(self, seq: int) -> None:
        """Notes that a commit was acknowledged: later queries show it."""
        with self._lock:
            self._seq = max(self._seq, seq)

    def _query(self, name: str, ask: Any) -> Any:
        """Executes a query."""
        return self._json(wire.call_path("queries", name), ask)

    if not TYPE_CHECKING:  # there they have the signatures of _calls.pyi
        send, query = _send, _query

    def events(self, *, after: str | None = None, types: Sequence[str] | None = None) -> Iterator[TenantEvent]:
        """Follows the events of the tenant: from now on, or after a position. It resumes a stream that
        broke off, without a gap or a repeat. Leave the loop to end it."""
        query = wire.search(types=",".join(types) if types else None)
        for frame in self._stream(f"/api/events{query}", wire.Position(after, None)):
            yield TenantEvent(frame.id, wire.event_of(frame))

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        url = urllib.parse.urlsplit(self._options.url)
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.netloc, timeout=timeout)
        return http.client.HTTPConnection(url.netloc, timeout=timeout)

    def _begin(self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        prefix = urllib.parse.urlsplit(self._options.url).path
        connection.request(method, prefix + path, body, wire.headers_of(self._options, self._seq, headers))
        return connection.getresponse()

    def _json(self, path: str, ask: Any) -> Any:
        body, deadline = json.dumps(ask).encode(), time.monotonic() + self._options.timeout
        last: Exception | None = None
        failures = 0
        while (left := deadline - time.monotonic()) > 0:
            after, connection = 0.0, self._connect(left)
            try:
                answer = self._begin(connection, "POST", path, body, {"Content-Type": "application/json"})
                raw = answer.read()
                if answer.status < 300:
                    return json.loads(raw)
                last = wire.refusal(raw, answer.status)
                if not last.retry:
                    raise last
                after = wire.retry_after({k.lower(): v for k, v in answer.getheaders()})
            except (OSError, http.client.HTTPException, ValueError) as e:  # no answer, or one that was cut off
                last = last or e
            finally:
                connection.close()
            time.sleep(max(0.0, min(wire.pause(failures, after), deadline - time.monotonic())))
            failures += 1
        raise wire.unanswered(path, last)

    def _stream(self, path: str, at: wire.Position, body: bytes | None = None, headers: dict[str, str] | None = None, over: Any = lambda last: False) -> Iterator[Frame]:
        deadline = time.monotonic() + self._options.timeout
        while True:
            last: Exception | None = None
            after, connection = 0.0, self._connect(wire.QUIET)
            try:
                answer = self._begin(connection, "POST" if body else "GET", path, body, {**(headers or {}), **at.headers()})
                if answer.status != 200:
                    after = wire.retry_after({k.lower(): v for k, v in answer.getheaders()})
                    raise wire.refusal(answer.read(), answer.status)
                at.log, at.opened = answer.getheader("Skein-Log") or at.log, True
                decoder = wire.Frames()
                while some := answer.read1(1 << 16):
                    for frame in decoder.feed(some):
                        at.note(frame)
                        yield frame
                        if over(frame):
                            return
            except SkeinError as e:
                if not e.retry:
                    raise
                last = e
            except (OSError, http.client.HTTPException) as e:
                last = e
            finally:
                connection.close()
            if not at.opened and time.monotonic() >= deadline:
                raise wire.unanswered(path, last)
            time.sleep(at.pause(after, deadline - time.monotonic()))
            at.failures += 1


class Thread(ThreadCalls):
    """A thread of a ``Skein``."""

    def __init__(self, skein: Skein, ref: str) -> None:
        self._skein, self.ref = skein, ref

    def _send(self, name: str, data: Any, *, command_id: str | None = None, expected_version: int | None = None, writer_token: str | None = None) -> Any:
        """Executes a command on the thread."""
        return self._skein._send(name, data, command_id=command_id, expected_version=expected_version, writer_token=writer_token, thread_id=self.ref)

    def _query(self, name: str, ask: Any) -> Any:
        """Executes a query about the thread."""
        return self._skein._query(name, {**ask, "threadId": self.ref})

    if not TYPE_CHECKING:  # there they have the signatures of _calls.pyi
        send, query = _send, _query

    def events(self, *, after: int | None = None, types: Sequence[str] | None = None, log: str | None = None) -> Iterator[Event]:
        """Follows the thread's events: all of them, or those after a version. It ends when the thread is
        deleted."""
        query = wire.search(types=",".join(types) if types else None)
        at = wire.Position(None if after is None else str(after), log)
        for frame in self._skein._stream(f"{wire.thread_path(self.ref)}/events{query}", at, over=lambda f: f.event == "lifecycle.deleted"):
            yield wire.event_of(frame)

    def chunks(self, *, execution: str | None = None, after: int | None = None) -> Iterator[Chunk | Gap]:
        """Follows what a run streams, until its last chunk. Without an execution it is the active run, or
        else the next one."""
        query = wire.search(execution=execution)
        at = wire.Position(None if after is None else str(after), None)
        for frame in self._skein._stream(f"{wire.thread_path(self.ref)}/chunks{query}", at, over=wire.is_last):
            yield wire.streamed(frame)

    def run(self, data: c.ThreadReact, *, command_id: str | None = None) -> Iterator[Started | Chunk | Gap | Done]:
        """Has the thread's agent react, and follows the run: its ids, what it streams, and its execution
        when it ends, after every person that it waits for has answered. A run whose stream breaks off is
        resumed; a reader that leaves does not end it. Nothing is sent before the loop begins."""
        body, headers = wire.reaction(data, command_id)
        run = wire.Run()
        for frame in self._skein._stream(f"{wire.thread_path(self.ref)}/react", wire.Position(None, None), body, headers, wire.is_done):
            told = run.told(frame)
            self._skein._wrote(run.seq)
            if told is not None:
                yield told
