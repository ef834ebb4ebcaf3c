"""The session service, against a Skein and without ADK: a stand-in has what it imports."""

import os
import unittest
import uuid
from collections.abc import Callable
from typing import Any

from google.adk.events.event import Event, thing
from google.adk.sessions.base_session_service import GetSessionConfig

import skein
from skein.adk import SkeinSessionService, _time

URL = os.environ["SKEIN_URL"]


def said(text: str, author: str = "user", **more: Any) -> Any:
    return Event(author=author, content=thing({"role": author, "parts": [{"text": text}]}), **more)


def sets(**state: Any) -> Any:
    return thing({"state_delta": {name.replace("__", ":"): value for name, value in state.items()}})


class Meddled(skein.Skein):
    """A client that does something after each of its commands."""

    meddle: Callable[[], Any] | None = None

    def _send(self, name: str, data: Any, **more: Any) -> Any:
        reply = super()._send(name, data, **more)
        if self.meddle:
            self.meddle()
        return reply


class Sessions(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.skein, self.name = skein.Skein(URL), f"adk-{uuid.uuid4()}"
        self.service = self.open()
        self.at: Any = {"app_name": "my app", "user_id": "ann/1"}

    def open(self) -> SkeinSessionService:
        return SkeinSessionService(skein.Skein(URL), name=self.name)

    async def test_a_session_is_as_it_was_created_until_it_is_deleted(self) -> None:
        at: Any = {**self.at, "session_id": "one"}
        self.assertIsNone(await self.service.get_session(**at))
        made = await self.service.create_session(**at, state={"key": "value", "temp:x": 1})
        self.assertEqual(made.state, {"key": "value"})
        self.assertEqual(await self.open().get_session(**at), made)
        with self.assertRaisesRegex(skein.SkeinError, "already_exists"):
            await self.service.create_session(**at)
        await self.service.delete_session(**at)
        await self.service.delete_session(**at)
        for service in (self.service, self.open()):
            with self.assertRaisesRegex(ValueError, "there is no session"):
                await service.append_event(made, said("late"))
        self.assertIsNone(await self.service.get_session(**at))
        self.assertTrue((await self.service.create_session(**self.at)).id)

    async def test_events_are_whole_and_shown_to_people(self) -> None:
        session = await self.service.create_session(**self.at, session_id="s")
        large = "x" * 1_500_000
        for event in (said("hi", turn_complete=True), said(large, "agent", error_code="none"), Event(author="agent", timestamp=1.5)):
            await self.service.append_event(session, event)
        await self.service.append_event(session, said("half", partial=True))
        found = await self.open().get_session(**self.at, session_id="s")
        self.assertEqual(found, session)
        items = self.skein.query("item.list", {"threadId": f"key:{self.name}/my%20app/ann%2F1/s"})["items"]
        self.assertEqual([(item.get("role"), item["content"][0]["text"][:2]) for item in items], [("user", "hi"), ("assistant", "xx"), ("assistant", "")])

    async def test_state_belongs_to_a_session_a_user_or_an_app(self) -> None:
        first = await self.service.create_session(**self.at, state={"own": 1, "app:seen": 0}, session_id="1")
        await self.service.create_session(**self.at, session_id="2")
        other: Any = {"app_name": "my app", "user_id": "bob"}
        await self.service.create_session(**other, session_id="3")
        await self.service.append_event(first, said("x", actions=sets(own=2, app__all="a", user__mine="u", temp__not="t")))
        want = {"own": 2, "app:seen": 0, "app:all": "a", "user:mine": "u"}
        self.assertEqual(first.state, want)
        for id, at, state in (("1", self.at, want), ("2", self.at, {"app:seen": 0, "app:all": "a", "user:mine": "u"}), ("3", other, {"app:seen": 0, "app:all": "a"})):
            found = await self.service.get_session(**at, session_id=id)
            assert found
            self.assertEqual(found.state, state)
            self.assertFalse(any("temp:not" in (event.actions.state_delta or {}) for event in found.events))

    async def test_a_stale_session_appends_nothing(self) -> None:
        session = await self.service.create_session(**self.at, session_id="s")
        same = await self.open().get_session(**self.at, session_id="s")
        assert same
        await self.service.append_event(session, said("first"))
        await self.service.append_event(session, said("second"))
        for service in (self.service, self.open()):
            with self.assertRaisesRegex(ValueError, "stale"):
                await service.append_event(same, said("third"))
        found = await self.service.get_session(**self.at, session_id="s")
        assert found
        self.assertEqual([event.content.parts[0].text for event in found.events], ["first", "second"])

    async def test_one_who_appends_between_an_event_and_its_answer_makes_the_session_stale(self) -> None:
        client = Meddled(URL)
        service = SkeinSessionService(client, name=self.name)
        session = await service.create_session(**self.at, session_id="s")
        ref = f"key:{self.name}/my%20app/ann%2F1/s"
        item: Any = {"item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "other"}]}}
        client.meddle = lambda: self.skein.thread(ref).send("item.create", item)
        await service.append_event(session, said("first"))
        for one in (service, self.service):
            with self.assertRaisesRegex(ValueError, "stale"):
                await one.append_event(session, said("second"))

    async def test_two_updates_in_one_millisecond_are_told_apart(self) -> None:
        at = "2026-01-01T00:00:00.123Z"
        self.assertEqual(len({_time({"createdAt": at, "updatedAt": at, "version": n}) for n in range(1, 501)}), 500)

    async def test_state_that_is_too_large_for_a_user_stores_nothing(self) -> None:
        session = await self.service.create_session(**self.at, session_id="s")
        with self.assertRaisesRegex(ValueError, "the state user:x has 600002 bytes"):
            await self.service.append_event(session, said("x", actions=sets(user__x="x" * 600_000)))
        await self.service.append_event(session, said("y", actions=sets(own="x" * 600_000)))
        self.assertEqual(await self.open().get_session(**self.at, session_id="s"), session)
        with self.assertRaisesRegex(ValueError, "the state app:x has"):
            await self.service.create_session(**self.at, session_id="t", state={"app:x": "x" * 600_000})
        self.assertIsNone(await self.service.get_session(**self.at, session_id="t"))

    async def test_a_list_has_pages_and_only_sessions(self) -> None:
        for n in range(5):
            await self.service.create_session(**self.at, session_id=str(n))
        self.skein.send("thread.create", {"key": f"{self.name}/my%20app/other"})
        found, token = [], None
        for size in (2, 2, 1):
            page = await self.service.list_sessions(app_name="my app", page_size=2, page_token=token)
            token = page.next_page_token
            self.assertEqual(len(page.sessions), size)
            found += [one.id for one in page.sessions]
        self.assertEqual((found, token), (["0", "1", "2", "3", "4"], None))
        with self.assertRaisesRegex(ValueError, "page_token"):
            await self.service.list_sessions(app_name="my app", page_token="x")

    async def test_a_configuration_chooses_events_and_a_list_has_the_oldest_first(self) -> None:
        session = await self.service.create_session(**self.at, session_id="s")
        for n in range(1, 6):
            await self.service.append_event(session, Event(author="user", timestamp=float(n), actions=sets(n=n)))
        for config, want in (((None, None), [1, 2, 3, 4, 5]), ((3, None), [3, 4, 5]), ((None, 4.0), [4, 5]), ((3, 4.0), [4, 5]), ((None, 50.0), []), ((0, None), [])):
            found = await self.service.get_session(**self.at, session_id="s", config=GetSessionConfig(*config))
            assert found
            self.assertEqual(([event.timestamp for event in found.events], found.state), (want, {"n": 5}))
        for id in ("b", "a"):
            await self.service.create_session(**self.at, session_id=id)
        await self.service.create_session(app_name="my app", user_id="ann/10", session_id="other")
        for user, want_ids in (("ann/1", ["s", "b", "a"]), (None, ["s", "b", "a", "other"])):
            listed = await self.service.list_sessions(app_name="my app", user_id=user)
            self.assertEqual([(one.id, one.state, one.events) for one in listed.sessions], [(id, {}, []) for id in want_ids])


if __name__ == "__main__":
    unittest.main()
