"""A session service of ADK, Google's Agent Development Kit, that keeps sessions in Skein.

A session is a thread, and each of its events an item of that thread: its text is what people read, and
the field ``adk`` of its metadata the whole event.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ._pairs import LARGEST, Pairs, key_of, names_of
from ._wire import SkeinError
from .client import Skein

if TYPE_CHECKING:
    from typing import Any as Base

    class Session(Protocol):
        """A session of ADK."""

        id: str
        app_name: str
        user_id: str
        state: dict[str, Any]
        events: list[Any]
        last_update_time: float

    Event: Any
    ListSessionsResponse: Any
    new_session: Callable[..., Session]
else:
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService as Base
    from google.adk.sessions.base_session_service import ListSessionsResponse
    from google.adk.sessions.session import Session as new_session

APP, USER, TEMP = "app:", "user:", "temp:"
ROOM = 32 * 1024  # of an event in its item; a larger one is in a pair
PAGE = 20  # sessions, where a page is asked for by its token alone
REMEMBERED = 1000  # sessions


class SkeinSessionService(Base):  # type: ignore[misc]
    """Keeps the sessions of ADK in Skein. Of two who append to the same session, one is refused as having
    a stale session. What an event sets for its user and its app is stored after the event, as key-value
    pairs: a process that is killed between the two leaves it unset."""

    def __init__(self, skein: Skein, *, name: str = "adk") -> None:
        """Begins the keys of threads, and the names of buckets, with a name."""
        super().__init__()
        self._skein, self._name = skein, name
        self._shared = Pairs(skein, name, name)
        # The thread and the version of each session as it was read, so that an event needs no read before it.
        self._known: OrderedDict[tuple[str, float], tuple[str, int]] = OrderedDict()

    async def create_session(self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None) -> Session:
        """Creates a session. Its id is made up if none is named; one that exists is refused with
        already_exists."""
        return await asyncio.to_thread(self._create, app_name, user_id, state or {}, session_id)

    async def get_session(self, *, app_name: str, user_id: str, session_id: str, config: Any = None) -> Session | None:
        """Returns a session with its state and its events; None if there is none. The configuration may
        ask for the most recent events, and for those since a time."""
        return await asyncio.to_thread(self._get, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None, page_size: int | None = None, page_token: str | None = None) -> Any:
        """Returns the sessions of a user, or of all users, the oldest first, without events and states:
        all of them, or as many as a page has, after those of the page that the token is of."""
        found = await asyncio.to_thread(self._list, app_name, user_id)
        if page_size is None and page_token is None:
            return ListSessionsResponse(sessions=found)
        if page_token and not page_token.isdecimal():
            raise ValueError(f"{page_token!r} is not a page_token that list_sessions has returned")
        begin = int(page_token or 0)
        end = begin + max(1, page_size or PAGE)
        return ListSessionsResponse(sessions=found[begin:end], **({"next_page_token": str(end)} if end < len(found) else {}))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session, if there is one. What is known of its user and its app stays."""
        await asyncio.to_thread(self._delete, app_name, user_id, session_id)

    async def append_event(self, session: Session, event: Any) -> Any:
        """Appends an event to a session, here and in Skein, and updates its state. A partial event is
        not stored, and no state whose name begins with temp: is."""
        if not event.partial:
            await asyncio.to_thread(self._append, session, event)
        return await super().append_event(session=session, event=event)

    def _create(self, app: str, user: str, state: dict[str, Any], id: str | None) -> Session:
        id = (id or "").strip() or str(uuid.uuid4())
        own = {name: value for name, value in state.items() if not name.startswith((APP, USER, TEMP))}
        _check(state)
        self._skein.send("thread.create", {"key": self._key(app, user, id), "metadata": {"adk": {"state": own}}})
        self._share(app, user, state)
        session = self._get(app, user, id, None)
        if session is None:
            raise LookupError(f"the session {id} was deleted meanwhile")
        return session

    def _get(self, app: str, user: str, id: str, config: Any) -> Session | None:
        thread = self._thread(app, user, id)
        if thread is None:
            return None
        state: dict[str, Any] = dict(thread.get("metadata", {}).get("adk", {}).get("state", {}))
        events: list[Any] = []
        for text in self._events(thread):
            stored = json.loads(text)
            state.update(_delta(stored))
            events.append(Event.model_validate_json(text))
        for prefix, key in ((APP, key_of("app", app, "")), (USER, key_of("user", app, user, ""))):
            state.update({prefix + names_of(name)[-1]: value for name, value in self._shared.list(key)})
        if since := getattr(config, "after_timestamp", None):
            events = [event for event in events if event.timestamp >= since]
        if (recent := getattr(config, "num_recent_events", None)) is not None:
            events = events[max(0, len(events) - recent) :]
        return new_session(id=id, app_name=app, user_id=user, state=state, events=events, last_update_time=self._remember(thread))

    def _events(self, thread: Mapping[str, Any]) -> Iterator[str]:
        """Yields the events of a session as JSON."""
        large = self._large(thread["id"])
        ask: Any = {"threadId": thread["id"], "limit": 500}
        while True:
            page = self._skein.query("item.list", ask)
            for item in page["items"]:
                if stored := item.get("metadata", {}).get("adk"):
                    yield large.load(stored)[1].decode()
            if "nextCursor" not in page:
                return
            ask["cursor"] = page["nextCursor"]

    def _list(self, app: str, user: str | None) -> list[Session]:
        ask: Any = {"keyPrefix": key_of(self._name, app, *([] if user is None else [user]), ""), "limit": 500}
        found: list[tuple[str, Session]] = []
        while True:
            page = self._skein.query("thread.list", ask)
            for thread in page["threads"]:
                _, _, *names = names_of(thread["key"] or "")
                if len(names) != 2:
                    continue  # another's key that begins like those of sessions
                found.append((thread["createdAt"], new_session(id=names[1], app_name=app, user_id=names[0], last_update_time=_time(thread))))
            if "nextCursor" not in page:
                return [session for _, session in sorted(found, key=lambda one: one[0])]
            ask["cursor"] = page["nextCursor"]

    def _delete(self, app: str, user: str, id: str) -> None:
        if thread := self._thread(app, user, id):
            self._skein.thread(thread["id"]).send("thread.delete", {})
            self._large(thread["id"]).clear()

    def _append(self, session: Session, event: Any) -> None:
        key = self._key(session.app_name, session.user_id, session.id)
        thread, version = self._known.get((key, session.last_update_time)) or self._find(session)
        stored = json.loads(event.model_dump_json(exclude_none=True))
        delta = {name: value for name, value in _delta(stored).items() if not name.startswith(TEMP)}
        _check(delta)
        if "actions" in stored:
            stored["actions"]["state_delta"] = delta
        text = json.dumps(stored, ensure_ascii=False)
        user = event.author == "user"
        said = "".join(part.text or "" for part in (event.content.parts if event.content else None) or [])
        item: Any = {
            "type": "message", "role": "user" if user else "assistant", "status": "completed",
            "content": [{"type": "input_text" if user else "output_text", "text": said[:ROOM]}],
            "metadata": {"adk": self._large(thread).dump("json", text.encode(), ROOM)},
        }
        try:
            version = self._skein.thread(thread).send("item.create", {"item": item}, expected_version=version)["version"]
        except SkeinError as err:
            if err.code == "version_conflict":
                raise _stale(session) from err
            if err.code == "not_found":
                raise _gone(session) from err
            raise
        self._share(session.app_name, session.user_id, delta)
        after = self._thread(session.app_name, session.user_id, session.id)
        if after and after["version"] > version:  # another has appended since, and this session lacks that event
            after = self._skein.query("thread.get", {"threadId": thread, "at": {"version": version}})
        if after:
            session.last_update_time = self._remember(after)

    def _find(self, session: Session) -> tuple[str, int]:
        """Returns the thread and the version of a session that another service has read."""
        thread = self._thread(session.app_name, session.user_id, session.id)
        if thread is None:
            raise _gone(session)
        if _time(thread) != session.last_update_time:
            raise _stale(session)
        return thread["id"], thread["version"]

    def _share(self, app: str, user: str, delta: Mapping[str, Any]) -> None:
        """Stores what is known of an app and a user."""
        for name, value in delta.items():
            if name.startswith(APP):
                self._shared.set(key_of("app", app, name.removeprefix(APP)), value)
            elif name.startswith(USER):
                self._shared.set(key_of("user", app, user, name.removeprefix(USER)), value)

    def _thread(self, app: str, user: str, id: str) -> Any:
        try:
            return self._skein.query("thread.get", {"threadId": "key:" + self._key(app, user, id)})
        except SkeinError as err:
            if err.code == "not_found":
                return None
            raise

    def _key(self, app: str, user: str, id: str) -> str:
        return key_of(self._name, app, user, id)

    def _large(self, thread: str) -> Pairs:
        """The pairs of a session's large events."""
        bucket = f"{self._name}/{thread}"
        return Pairs(self._skein, bucket, bucket)

    def _remember(self, thread: Mapping[str, Any]) -> float:
        """Notes the version that a session has, and returns the time of its last update."""
        at = _time(thread)
        self._known[(thread["key"], at)] = (thread["id"], thread["version"])
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return at


def _delta(event: Mapping[str, Any]) -> dict[str, Any]:
    return dict((event.get("actions") or {}).get("state_delta") or {})


def _check(state: Mapping[str, Any]) -> None:
    """Refuses what would be refused once the event that sets it is stored."""
    for name, value in state.items():
        if name.startswith((APP, USER)) and (size := len(json.dumps(value))) > LARGEST:
            raise ValueError(f"the state {name} has {size} bytes; at most {LARGEST} are allowed for what belongs to a user or an app")


def _time(thread: Mapping[str, Any]) -> float:
    """Returns the time of the last update. Below its milliseconds is the version, so that of two updates
    in one of them each has its own time."""
    at = datetime.fromisoformat(thread.get("updatedAt") or thread["createdAt"]).timestamp()
    return round(at, 3) + int(thread["version"]) % 1000 / 1e6


def _gone(session: Session) -> ValueError:
    return ValueError(f"there is no session {session.id}")


def _stale(session: Session) -> ValueError:
    return ValueError(f"the session {session.id} is stale: another event was appended since it was read; get it again")
