"""What the two clients share: requests, refusals, frames and the pauses between attempts."""

from __future__ import annotations

import json
import random
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contract import Execution

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
REFUSED = {401: "unauthorized", 403: "forbidden", 404: "not_found"}  # by what stands before Skein
QUIET = 60.0  # seconds without a byte after which a stream is taken to be broken: the server sends one every 15


@dataclass(frozen=True)
class Options:
    """How a client reaches Skein."""

    url: str = "http://127.0.0.1:8420"
    # An API key or a token, or what returns one. At a desk it is not needed.
    key: str | Callable[[], str] | None = None
    # The tenant, at a desk that serves several.
    tenant: str | None = None
    # How many seconds a request may take with its repeats.
    timeout: float = 30.0


class SkeinError(Exception):
    """A request that was refused, or that nobody answered in time.

    ``code`` is one of docs/commands.md, such as ``not_found`` or ``version_conflict``.
    """

    def __init__(self, code: str, message: str, status: int = 0, param: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status, self.param = code, message, status, param
        self.details = details or {}

    @property
    def retry(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code in ("unavailable", "queue_full", "projection_behind") or self.status in (408, 429, 502, 503, 504)


@dataclass(frozen=True)
class Event:
    """An event of a thread. ``data`` is the type of skein.contract that its ``type`` names."""

    type: str
    id: str
    time: str
    thread_id: str
    version: int
    data: Any
    envelope: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class TenantEvent:
    """An event of a tenant, with the position after which ``Skein.events`` continues."""

    position: str
    event: Event


@dataclass(frozen=True)
class Chunk:
    """What a run streams."""

    type: str
    data: Any
    index: int
    execution_id: str


@dataclass(frozen=True)
class Gap:
    """Chunks of a run that are no longer stored."""

    execution_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Started:
    """A run that has begun."""

    thread_id: str
    execution_id: str


@dataclass(frozen=True)
class Done:
    """A run that has ended, with its execution."""

    execution: Execution


@dataclass
class Frame:
    """A server-sent event."""

    id: str = ""
    event: str = "message"
    data: str = ""


class Frames:
    """Decodes server-sent events. A frame that the end of the stream cuts off is dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._frame, self._data = Frame(), list[str]()

    def feed(self, some: bytes) -> Iterator[Frame]:
        *lines, self._rest = (self._rest + some).replace(b"\r\n", b"\n").split(b"\n")
        for raw in lines:
            line = raw.decode()
            if line == "":
                if self._data:
                    self._frame.data = "\n".join(self._data)
                    yield self._frame
                self._frame, self._data = Frame(), []
                continue
            name, _, said = line.partition(":")
            said = said.removeprefix(" ")
            if name == "id":
                self._frame.id = said
            elif name == "event":
                self._frame.event = said
            elif name == "data":
                self._data.append(said)


def refusal(body: bytes, status: int) -> SkeinError:
    """Returns the refusal that an answer or a frame tells."""
    try:
        error = json.loads(body)["error"]
        details = error.get("details") or {}
        return SkeinError(error["code"], error["message"], status, error.get("param", details.get("path", "")), details)
    except (ValueError, KeyError, TypeError):
        code = REFUSED.get(status, "invalid_request") if 300 <= status < 500 and status not in (408, 429) else "unavailable"
        said = body[:300].decode(errors="replace") or "an answer without a reason"
        return SkeinError(code, f"not an answer of Skein, with status {status}: {said}" if code != "unavailable" else said, status)


def unanswered(path: str, cause: Exception | None) -> SkeinError:
    """Returns the error of a request that nobody answered."""
    if isinstance(cause, SkeinError):
        return cause
    why = f": {cause!s:.200}" if str(cause or "") else ""
    error = SkeinError("unavailable", f"no answer to {path}{why}; is Skein running there?", details={"outcome": "unknown"})
    error.__cause__ = cause
    return error


def pause(failures: int, least: float) -> float:
    """Returns how long to wait: spread, so that many who failed together do not return together."""
    return max(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10)) * (0.5 + random.random()), least)


def retry_after(headers: Mapping[str, str]) -> float:
    """Returns how many seconds an answer asks to wait."""
    try:
        return float(headers.get("retry-after", "0"))
    except ValueError:
        return 0.0


def options(url: str, key: str | Callable[[], str] | None, tenant: str | None, timeout: float) -> Options:
    """Returns how a client reaches Skein. An address that is none raises a ValueError."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"the url {url!r} is not one of HTTP; write it like {Options.url}")
    _ = parts.port  # raises a ValueError if it is none
    return Options(url.rstrip("/"), key, tenant, timeout)


def headers_of(o: Options, seq: int, more: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers of a request. White space around a key, such as the end of the line that it was
    read from, is not a part of it."""
    headers = dict(more)
    if o.key is not None:
        headers["Authorization"] = "Bearer " + _key_of(o).strip()
    if o.tenant is not None:
        headers["Skein-Tenant"] = o.tenant
    if seq > 0:
        headers["Skein-Min-Seq"] = str(seq)
    for name, value in headers.items():
        if any(not " " <= c <= "~" for c in value):
            raise SkeinError("invalid_request", f"the header {name} has a character that is not allowed in it: is its value what you meant?")
    return headers


def _key_of(o: Options) -> str:
    if o.key is None or isinstance(o.key, str):
        return o.key or ""
    try:
        return o.key()
    except ValueError as e:
        raise SkeinError("unauthorized", f"what returns the key failed: {e}") from e


def call_path(kind: str, name: str) -> str:
    """Returns the path of a command or a query."""
    return f"/api/{kind}/" + urllib.parse.quote(name, safe="")


def command(data: Any, command_id: str | None, version: int | None, token: str | None, thread: str | None) -> dict[str, Any]:
    """Returns the body of a command. Its id makes a repeat safe."""
    body = {"commandId": command_id or str(uuid.uuid4()), "data": data}
    for name, value in (("expectedVersion", version), ("writerToken", token), ("threadId", thread)):
        if value is not None:
            body[name] = value
    return body


def thread_path(ref: str) -> str:
    """Returns the path of a thread."""
    return "/api/threads/" + urllib.parse.quote(ref, safe=":")


def search(**parameters: str | None) -> str:
    """Returns the query of a URL."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return "?" + urllib.parse.urlencode(given) if given else ""


def event_of(frame: Frame) -> Event:
    """Returns the event of a frame."""
    return event_in(json.loads(frame.data))


def event_in(e: Mapping[str, Any]) -> Event:
    """Returns the event of a CloudEvent."""
    return Event(e["type"], e["id"], e["time"], e["threadid"], e["threadversion"], e.get("data"), e)


def streamed(frame: Frame) -> Chunk | Gap:
    """Returns the chunk of a frame, or what is missing."""
    d = json.loads(frame.data)
    return Gap(d["executionId"], d["from"], d["to"]) if frame.event == "gap" else chunk_in(d)


def chunk_in(d: Mapping[str, Any]) -> Chunk:
    """Returns the chunk of the data of a chunk.emitted."""
    return Chunk(d["type"], d.get("data"), d["index"], d["executionId"])


class Position:
    """Where a stream is, so that it resumes after the last frame."""

    def __init__(self, after: str | None, log: str | None) -> None:
        self.id, self.log, self.failures, self.opened = after or "", log or "", 0, False

    def headers(self) -> dict[str, str]:
        more = {"Accept": "text/event-stream"}
        if self.id:
            more["Last-Event-ID"] = self.id
        if self.log:
            more["Skein-Log"] = self.log
        return more

    def pause(self, least: float, left: float) -> float:
        """Returns how long to wait before the next attempt; of a stream that has not opened yet, no longer
        than is left."""
        wait = pause(self.failures, least)
        return wait if self.opened else max(0.0, min(wait, left))

    def note(self, frame: Frame) -> None:
        if frame.event == "error":
            raise refusal(frame.data.encode(), 0)
        self.failures = 0
        self.id = frame.id or self.id


def is_last(frame: Frame) -> bool:
    """Reports whether a frame has the last chunk of a run."""
    return frame.event != "gap" and json.loads(frame.data).get("type") == "finish"


def reaction(data: Any, command_id: str | None) -> tuple[bytes, dict[str, str]]:
    """Returns the body and the headers of a request that has an agent react. Its id makes a repeat safe."""
    return json.dumps(data).encode(), {"Content-Type": "application/json", "Idempotency-Key": command_id or str(uuid.uuid4())}


def is_done(frame: Frame) -> bool:
    """Reports whether a frame has the end of a run that was asked for."""
    return frame.event == "done"


class Run:
    """The stream of a run that was asked for."""

    started = False
    seq = 0  # of the run's end, after which queries show what it wrote

    def told(self, frame: Frame) -> Started | Chunk | Gap | Done | None:
        """Returns what a frame tells; None if that was told before: a resumed stream begins anew."""
        if frame.event == "started":
            again, self.started = self.started, True
            d = json.loads(frame.data)
            return None if again else Started(d.get("threadId", ""), d.get("executionId", ""))
        if not is_done(frame):
            return streamed(frame)
        d = json.loads(frame.data)
        self.seq = int(d.get("seq", 0))
        return Done(d)
