"""The installed client over NATS, against a Skein with the agents "echo", which answers in ten pieces, and
"assistant", which says what it is told. Users of its nats-server have their names as passwords."""

import asyncio
import importlib
import json
import os
import time
import unittest
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from unittest import mock

import skein
from skein import contract
from skein.nats import UNORDERED, Skein, Thread

nats: Any = importlib.import_module("nats")  # nats-py, or what stands in for it
MISSING = "T-00000000-0000-4000-8000-000000000000"


def item(text: str) -> Any:
    return {"item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}}


def text_of(event: skein.Event) -> Any:
    return event.data["content"][0]["text"]


async def control(what: str) -> None:
    def ask() -> None:
        with urllib.request.urlopen(f"{os.environ['CONTROL_URL']}/{what}", timeout=300):
            pass

    await asyncio.to_thread(ask)


async def take(n: int, stream: AsyncIterator[Any]) -> list[Any]:
    seen = []
    async with aclosing(stream) as events:  # type: ignore[type-var]
        async for one in events:
            seen.append(one)
            if len(seen) == n:
                break
    return seen


def subscriptions(nc: Any) -> int:
    """Returns how many subscriptions a connection has, besides that of its requests."""
    return sum(not (s._subject.startswith("_INBOX")) for s in nc._subs.values())


class Between:
    """A connection, some of whose methods do more, or less."""

    def __init__(self, nc: Any, **methods: Any) -> None:
        self.__dict__.update(methods)
        self._between = nc

    def __getattr__(self, name: str) -> Any:
        return getattr(self._between, name)


class OverNATS(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.nc = await self.connect("app")
        self.skein = Skein(self.nc, tenant="acme")

    async def connect(self, user: str, url: str = os.environ["SKEIN_NATS"], inbox: str = "") -> Any:
        nc = await nats.connect(url, user=user, password=user, inbox_prefix=(inbox or f"_INBOX.{user}").encode(), reconnect_time_wait=0.02, max_reconnect_attempts=-1)
        self.addAsyncCleanup(nc.close)
        return nc

    async def thread(self, agent: str = "echo") -> Thread:
        return self.skein.thread((await self.skein.send("thread.create", {"agentId": agent}))["threadId"])

    def between(self, timeout: float = 30.0, **methods: Any) -> Skein:
        """Returns a client of which some methods of its connection do more, or less."""
        nc: Any = Between(self.nc, **methods)
        return Skein(nc, tenant="acme", timeout=timeout)

    async def come(self, t: Thread, n: int) -> asyncio.Event:
        """Returns what is set when a thread's n-th next item has come."""
        come: list[Any] = []
        all_came = asyncio.Event()

        async def count(m: Any) -> None:
            come.append(m)
            if len(come) == n:
                all_came.set()

        await self.nc.subscribe(f"skein.timeline.acme.{t.ref}.item.created", cb=count)
        return all_came

    async def refused(self, code: str, said: str, stream: AsyncIterator[Any]) -> skein.SkeinError:
        with self.assertRaisesRegex(skein.SkeinError, said) as caught:
            await asyncio.wait_for(anext(stream), 60)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    async def test_commands(self) -> None:
        t = await self.thread()
        first = await t.send("item.create", item("one"), command_id="once-" + t.ref)
        self.assertEqual(await t.send("item.create", item("one"), command_id="once-" + t.ref), first)
        await t.send("item.create", item("two"))
        items = (await t.query("item.list", {"order": "asc"}))["items"]
        self.assertEqual([i["content"][0]["text"] for i in items], ["one", "two"])
        await self.skein.send("kv.set", {"bucket": "b", "key": "k", "value": 1})
        self.assertEqual((await self.skein.query("kv.get", {"bucket": "b", "key": "k"}))["value"], 1)

    async def test_answer_is_lost(self) -> None:
        t = await self.thread()
        other = Skein(await self.connect("app", os.environ["SKEIN_NATS_DIRECT"]), tenant="acme")
        await control("lose")
        sent = asyncio.create_task(t.send("item.create", item("once")))
        await take(1, other.thread(t.ref).events(types=["item.created"]))  # it is executed
        await control("cut")
        await sent
        self.assertEqual(len((await t.query("item.list", {}))["items"]), 1)

    async def test_refusals(self) -> None:
        with self.assertRaises(skein.SkeinError) as caught:
            await self.skein.thread("key:nothing").query("thread.get", {})
        self.assertEqual((caught.exception.code, caught.exception.status, caught.exception.retry), ("not_found", 404, False))
        t = await self.thread()
        with self.assertRaises(skein.SkeinError) as caught:
            await t.send("thread.update", {"title": "x"}, expected_version=9)
        self.assertEqual((caught.exception.code, caught.exception.details["currentVersion"]), ("version_conflict", 2))
        with self.assertRaises(skein.SkeinError) as caught:
            await t.send("thread.update", {"title": "x" * self.nc.max_payload})
        self.assertEqual(caught.exception.code, "payload_too_large")
        room = caught.exception.details["limit"] - len(json.dumps({"commandId": "largest", "data": {"title": ""}, "threadId": t.ref}))
        with self.assertRaisesRegex(skein.SkeinError, "the command's data has"):  # the largest that arrives
            await t.send("thread.update", {"title": "x" * room}, command_id="largest")

    async def test_no_token_of_a_subject(self) -> None:
        for tenant in ("", "a.b", "*", ">", "a b", "a\r\nPUB x 0"):
            with self.assertRaisesRegex(skein.SkeinError, "invalid_request"):
                Skein(self.nc, tenant=tenant)
        for name in ("thread", "thread.get.more", "thread.*", ">", "thread. get", "thread.get\n"):
            with self.assertRaisesRegex(skein.SkeinError, "noun.verb"):
                await self.skein._query(name, {})
        for ref in ("", "*", ">", "a.b", MISSING + ".>", MISSING + " x", MISSING + "\n"):
            await self.refused("invalid_request", "neither", self.skein.thread(ref).events())
            await self.refused("invalid_request", "neither", self.skein.thread(ref).chunks())
        await self.refused("invalid_request", "pattern", self.skein.thread(MISSING).events(types=["item.>"]))
        await self.refused("invalid_request", "position", self.skein.events(after="x"))
        await self.refused("not_found", "", self.skein.thread(MISSING).events())
        self.assertEqual(subscriptions(self.nc), 0)

    async def test_events_of_a_thread(self) -> None:
        t = await self.thread()
        for text in "012":
            await t.send("item.create", item(text))
        seen = []
        async with aclosing(t.events(types=["item.*"])) as events:
            async for e in events:
                seen.append(text_of(e))
                if len(seen) == 3:
                    await t.send("item.create", item("3"))
                if len(seen) == 4:
                    other = Skein(await self.connect("app", os.environ["SKEIN_NATS_DIRECT"]), tenant="acme")
                    await control("cut")
                    for text in "45":
                        await other.thread(t.ref).send("item.create", item(text))
                if len(seen) == 6:
                    await control("stop")
                    await control("start")
                    for text in "67":
                        await t.send("item.create", item(text))
                if len(seen) == 8:
                    break
        self.assertEqual(seen, [*"01234567"])
        self.assertEqual([e.version for e in await take(3, t.events(after=5))], [6, 7, 8])
        await self.refused("position_ahead", "", t.events(after=99))
        await self.refused("position_ahead", "", t.events(log="another"))
        self.assertEqual(subscriptions(self.nc), 0)

    async def test_slow_reader(self) -> None:
        t = await self.thread()
        async with aclosing(t.events(types=["item.*"])) as events:
            await t.send("item.create", item("0"))
            self.assertEqual(text_of(await anext(events)), "0")
            all_came = await self.come(t, 1500)
            for i in range(15):
                await t.send("thread.commit", {"commands": [{"command": "item.create", "data": item(str(1 + i * 100 + j))} for j in range(100)]})
            await asyncio.wait_for(all_came.wait(), 120)  # and so as much has come to the reader
            self.assertEqual([text_of(await anext(events)) for _ in range(1500)], [str(1 + i) for i in range(1500)])
            following = asyncio.ensure_future(anext(events))  # nothing comes again
            await t.send("item.create", item("last"))
            self.assertEqual(text_of(await following), "last")

    async def test_events_while_the_end_is_asked_for(self) -> None:
        t, told, late = await self.thread(), asyncio.Event(), asyncio.Event()

        async def request(subject: str, *args: Any, **more: Any) -> Any:
            m = await self.nc.request(subject, *args, **more)
            if subject.endswith("history.get"):
                told.set()
                await late.wait()
            return m

        async with aclosing(self.between(request=request).events(types=["item.created"])) as events:
            first = asyncio.ensure_future(anext(events))
            await asyncio.wait({first, asyncio.ensure_future(told.wait())}, return_when=asyncio.FIRST_COMPLETED)
            if first.done():
                self.fail(f"nothing was asked: {first.exception()}")
            all_came = await self.come(t, 1100)
            for i in range(11):
                await t.send("thread.commit", {"commands": [{"command": "item.create", "data": item(str(i * 100 + j))} for j in range(100)]})
            await asyncio.wait_for(all_came.wait(), 120)
            late.set()
            seen = [text_of((await first).event)] + [text_of((await anext(events)).event) for _ in range(1099)]
        self.assertEqual(seen, [str(i) for i in range(1100)])

    async def test_messages_come_twice(self) -> None:
        async def subscribe(subject: str, cb: Any) -> Any:
            async def twice(m: Any) -> None:
                await cb(m)
                await cb(m)

            return await self.nc.subscribe(subject, cb=twice)

        s, t = self.between(subscribe=subscribe), await self.thread()
        end = (await self.skein.query("history.get", {}))["lastSeq"]
        async with aclosing(s.thread(t.ref).events(types=["item.*"])) as events, aclosing(s.events(after=str(end), types=["item.*"])) as tenant:
            seen, of_tenant = [], asyncio.ensure_future(anext(tenant))
            for text in "012":
                await t.send("item.create", item(text))
                seen.append(text_of(await anext(events)))
            self.assertEqual(seen, [*"012"])
            self.assertEqual([text_of(e.event) for e in (await of_tenant, await anext(tenant), await anext(tenant))], [*"012"])
        chunks = [e async for e in s.thread(t.ref).run({"text": "hello"}) if isinstance(e, skein.Chunk)]
        self.assertEqual("".join(e.data["delta"] for e in chunks if e.type == "text-delta"), "0123456789")
        self.assertEqual([e.index for e in chunks], [*range(len(chunks))])

    async def test_request_is_sent_again(self) -> None:
        sent = 0

        async def request(*args: Any, **more: Any) -> Any:
            nonlocal sent
            sent += 1
            return await (asyncio.Event().wait() if sent == 1 else self.nc.request(*args, **more))

        t = self.between(request=request).thread((await self.thread()).ref)
        await asyncio.wait_for(t.send("item.create", item("once")), 60)
        self.assertEqual(sent, 2)
        self.assertEqual(len((await t.query("item.list", {}))["items"]), 1)

    async def test_queries_that_take_longer_than_the_timeout(self) -> None:
        t, lose, hang = await self.thread(), False, 0

        async def subscribe(subject: str, cb: Any) -> Any:
            async def some(m: Any) -> None:
                nonlocal lose
                if lose and b'"text":"1"' in m.data:  # that of an earlier item may come late
                    lose = False
                else:
                    await cb(m)

            return await self.nc.subscribe(subject, cb=some)

        async def request(subject: str, *args: Any, timeout: float, **more: Any) -> Any:
            nonlocal hang
            if subject.endswith("event.list") and hang > 0:
                hang -= 1
                await asyncio.sleep(timeout)
                raise TimeoutError
            return await self.nc.request(subject, *args, timeout=timeout, **more)

        async with aclosing(self.between(0.2, subscribe=subscribe, request=request).thread(t.ref).events(types=["item.*"])) as events:
            await t.send("item.create", item("0"))
            self.assertEqual(text_of(await anext(events)), "0")
            lose, hang = True, 2
            following = asyncio.ensure_future(anext(events))
            for text in "12":
                await t.send("item.create", item(text))
            self.assertEqual([text_of(await following), text_of(await anext(events))], ["1", "2"])
        self.assertEqual((lose, hang), (False, 0))

    async def test_skein_waits_no_longer_than_the_sender(self) -> None:
        answers: list[Any] = []

        async def request(subject: str, payload: bytes, timeout: float, **more: Any) -> Any:
            answers.append(asyncio.ensure_future(self.nc.request(subject, payload, timeout=60, **more)))
            return await asyncio.wait_for(asyncio.shield(answers[-1]), timeout)

        t = await self.thread()
        await self.skein.query("consumer.create", {"name": "brief", "threadId": t.ref, "types": ["item.*"]})
        with self.assertRaisesRegex(skein.SkeinError, "unavailable"):
            await self.between(0.4, request=request)._query("consumer.next", {"name": "brief", "waitMs": 10_000})
        self.assertIn(b"not answered within", (await answers[-1]).data)
        await t.send("item.create", item("one"))  # which nobody has taken
        taken = await self.skein._query("consumer.next", {"name": "brief", "waitMs": 5000})
        self.assertEqual(taken["event"]["data"]["content"][0]["text"], "one")
        await self.skein.query("consumer.delete", {"name": "brief"})

    async def test_request_that_takes_an_event(self) -> None:
        patience: list[float] = []

        async def request(subject: str, payload: bytes, timeout: float, **more: Any) -> Any:
            patience.append(timeout)
            return await self.nc.request(subject, payload, timeout=timeout, **more)

        s, t = self.between(request=request), await self.thread()
        await s.query("consumer.create", {"name": "patient", "threadId": t.ref})
        taken = await s._query("consumer.next", {"name": "patient", "waitMs": 10_000})
        self.assertEqual(taken["event"]["type"], "thread.created")
        self.assertGreater(patience[-1], 10)
        await s.query("consumer.delete", {"name": "patient"})

    async def test_events_of_the_tenant(self) -> None:
        t = await self.thread()
        positions: list[tuple[str, str]] = []
        tenant = self.skein.events(after=str((await self.skein.query("history.get", {}))["lastSeq"]), types=["item.*", "lifecycle.deleted"])

        async def follow() -> None:
            async with aclosing(tenant):
                async for one in tenant:
                    if one.event.thread_id == t.ref:
                        positions.append((one.position, one.event.type))
                    if one.event.thread_id == t.ref and one.event.type == "lifecycle.deleted":
                        return

        following = asyncio.create_task(follow())
        await t.send("item.create", item("one"))
        await t.send("thread.commit", {"commands": [{"command": "item.create", "data": item(text)} for text in ("two", "three", "four")]})
        await control("cut")
        await t.send("item.create", item("five"))
        await t.send("thread.delete", {})
        types = [e.type for e in await take(9, t.events())]
        self.assertEqual(types[-1], "lifecycle.deleted")
        self.assertEqual([e async for e in t.events(after=len(types))], [])  # what was seen last is the end
        await asyncio.wait_for(following, 120)
        self.assertEqual([kind for _, kind in positions], ["item.created"] * 5 + ["lifecycle.deleted"])
        self.assertRegex(positions[2][0], r"^\d+\.1\.[a-z]\w+$")
        rest = await take(3, self.skein.events(after=positions[2][0], types=["item.*", "lifecycle.deleted"]))
        self.assertEqual([(e.position, e.event.type) for e in rest], positions[3:])
        await self.refused("position_ahead", "", self.skein.events(after="999999999"))
        await self.refused("position_ahead", "", self.skein.events(after="1.0.another"))

    async def test_events_from_now_on(self) -> None:
        await self.thread()
        stream = self.skein.events(types=["thread.created"])
        new = asyncio.ensure_future(anext(stream))
        made: list[str] = []
        while not new.done():
            made.append((await self.thread()).ref)
            await asyncio.wait([new], timeout=0.05)
        self.assertIn((await new).event.thread_id, made)

    async def test_runs(self) -> None:
        for agent in ("echo", "assistant"):
            t = await self.thread(agent)
            kinds, indexes, text = [], [], ""
            async for e in t.run({"text": "slow"}):
                kinds.append(type(e))
                if isinstance(e, skein.Started) and agent == "assistant":
                    await control("say?piece=a")
                if isinstance(e, skein.Done):
                    self.assertEqual(e.execution["status"], "completed")
                if not isinstance(e, skein.Chunk):
                    continue
                indexes.append(e.index)
                if e.type == "text-delta":
                    text += e.data["delta"]
                    if text == "a":
                        await control("cut")
                        for piece in ("b", "c", ""):
                            await control(f"say?piece={piece}")
            self.assertEqual((kinds[0], kinds[-1]), (skein.Started, skein.Done))
            self.assertEqual(text, "0123456789" if agent == "echo" else "abc")
            self.assertEqual(indexes, [*range(len(indexes))])
            execution = (await t.query("execution.list", {}))["executions"][0]["id"]
            chunks = [c.index async for c in t.chunks(execution=execution, after=3) if isinstance(c, skein.Chunk)]
            self.assertEqual(chunks, indexes[4:])
            self.assertEqual([c async for c in t.chunks(execution=execution, after=indexes[-1])], [])
            await self.refused("not_found", "", t.chunks(execution="exe_none"))
        self.assertEqual(subscriptions(self.nc), 0)

    async def test_clock_is_wrong(self) -> None:
        for hours in (1, -1):
            t, late, held = await self.thread("assistant"), [], False

            async def subscribe(subject: str, cb: Any) -> Any:
                async def some(m: Any) -> None:
                    nonlocal held
                    of_run = m.subject.endswith(".chunk.emitted")
                    held = held or (of_run and (json.loads(m.data)["data"].get("data") or {}).get("delta") == "b")
                    if held and of_run:
                        late.append((cb, m))
                    else:
                        await cb(m)

                return await self.nc.subscribe(subject, cb=some)

            async def come() -> None:
                await asyncio.sleep(0.05)
                while late:
                    cb, m = late.pop(0)
                    await cb(m)

            async def request(subject: str, *args: Any, **more: Any) -> Any:
                m = await self.nc.request(subject, *args, **more)
                if held and subject.endswith("execution.get"):  # the run has ended
                    tasks.append(asyncio.create_task(come()))
                if held and subject.endswith("chunk.list"):  # a replica lags behind
                    m.data = json.dumps({**json.loads(m.data), "chunks": []}).encode()
                return m

            tasks: list[Any] = []
            text, now = "", time.time
            with mock.patch("time.time", lambda: now() + hours * 3600):
                async for e in self.between(subscribe=subscribe, request=request).thread(t.ref).run({"text": "slow"}):
                    if isinstance(e, skein.Started):
                        await control("say?piece=a")
                    if isinstance(e, skein.Chunk) and e.type == "text-delta":
                        text += e.data["delta"]
                        for piece in ("b", "") if text == "a" else ():
                            await control(f"say?piece={piece}")
            self.assertEqual(text, "ab")

    async def test_queued_run(self) -> None:
        t = await self.thread("assistant")
        first, waits = t.run({"text": "slow"}), t.run({"text": "hello", "policy": "enqueue"})
        await anext(first)
        await anext(waits)
        last = asyncio.create_task(self.last(waits))
        await control("say?piece=")
        self.assertEqual((await last).execution["status"], "completed")
        await first.aclose()
        self.assertEqual(subscriptions(self.nc), 0)

    async def last(self, stream: AsyncIterator[Any]) -> Any:
        return [one async for one in stream][-1]

    async def test_rights(self) -> None:
        t = await self.thread()
        reader, writer = Skein(await self.connect("reader"), tenant="acme"), Skein(await self.connect("writer"), tenant="acme")
        refused = await asyncio.wait_for(asyncio.gather(*(reader.thread(t.ref).send("thread.update", {"title": "x"}) for _ in range(3)), return_exceptions=True), 60)
        for error in refused:
            self.assertRegex(str(error), "forbidden: .* publish on skein.cmd.acme.thread.update")
        names = [f"thread.not-{n}" for n in range(6)]  # of what is denied at once, the connection tells the last
        refused = await asyncio.wait_for(asyncio.gather(*(reader._send(name, {}) for name in names), return_exceptions=True), 60)
        for name, error in zip(names, refused):
            self.assertRegex(str(error), f"forbidden: .* publish on skein.cmd.acme.{name}")
        self.assertEqual((await reader.thread(t.ref).query("thread.get", {}))["id"], t.ref)
        self.assertEqual([e.type for e in await take(1, reader.thread(t.ref).events())], ["thread.created"])
        await self.refused("forbidden", f"subscribe to skein.timeline.acme.{t.ref}.>", writer.thread(t.ref).events())
        await self.refused("forbidden", "subscribe to skein.timeline.acme.*.>", writer.events())
        refs = [t.ref, *[(await self.thread()).ref for _ in range(2)]]  # of what is denied at once, the connection tells the last
        at_once = (self.refused("forbidden", f"subscribe to skein.timeline.acme.{ref}.>", writer.thread(ref).events(after=2)) for ref in refs)
        await asyncio.gather(*at_once)
        with self.assertRaisesRegex(skein.SkeinError, "inbox_prefix"):
            await Skein(await self.connect("reader", inbox="_INBOX"), tenant="acme").query("thread.list", {})

    async def test_cancelled(self) -> None:
        t = await self.thread()
        tasks = [asyncio.create_task(self.last(stream)) for stream in (t.events(after=2), t.chunks(), self.skein.events())]
        while subscriptions(self.nc) < 3:
            await t.query("thread.get", {})
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self.assertEqual(subscriptions(self.nc), 0)

    async def test_nobody_answers(self) -> None:
        lasting = Skein(await self.connect("app"), tenant="acme")
        short, t = Skein(self.nc, tenant="acme", timeout=0.4), await self.thread()
        stream = lasting.thread(t.ref).events(after=2)
        waiting = asyncio.ensure_future(anext(stream))
        while subscriptions(lasting._nc) == 0:
            await lasting.query("history.get", {})
        await control("stop")
        with self.assertRaisesRegex(skein.SkeinError, "unavailable: .*skein.query.acme.thread.list"):
            await short.query("thread.list", {})
        await self.refused("unavailable", "", short.events())
        await control("start")
        await t.send("item.create", item("after"))
        self.assertEqual(text_of(await asyncio.wait_for(waiting, 120)), "after")
        waiting = asyncio.ensure_future(anext(stream))
        await lasting.query("history.get", {})
        await lasting._nc.close()  # type: ignore[attr-defined]
        with self.assertRaisesRegex(skein.SkeinError, "closed"):
            await asyncio.wait_for(waiting, 60)
        with self.assertRaisesRegex(skein.SkeinError, "closed"):
            await lasting.query("thread.list", {})

    def test_queries_without_min_seq(self) -> None:
        names = {n for n in dir(contract) if n.endswith("Query") and n != "Query"}
        lack = {n for n in names if "minSeq" not in getattr(getattr(contract, n), "__annotations__", {})}
        self.assertEqual({"".join(w.title() for w in n.split(".")) + "Query" for n in UNORDERED}, lack)


if __name__ == "__main__":
    unittest.main()
