"""The installed client, against a Skein with the agent "echo", which answers in ten pieces."""

import asyncio
import os
import socket
import threading
import unittest
from typing import Any

import skein
from skein import aio

URL = os.environ["SKEIN_URL"]


def item(text: str) -> Any:
    return {"item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}}


def text_of(event: skein.Event) -> Any:
    return event.data["content"][0]["text"]


class Cutting:
    """A proxy that breaks off each of its first connections after some bytes of the answer."""

    def __init__(self, cuts: int, bytes: int) -> None:
        self.cuts, self.bytes, self.made = cuts, bytes, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        host, port = URL.removeprefix("http://").split(":")
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection((host, int(port)))
            self.made += 1
            left = self.bytes if self.made <= self.cuts else None
            threading.Thread(target=self.copy, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, left), daemon=True).start()

    def copy(self, source: socket.socket, target: socket.socket, left: int | None) -> None:
        try:
            while some := source.recv(65536):
                some = some.replace(self.url[7:].encode(), URL[7:].encode())  # the host of a request
                if left is not None:
                    some, left = some[:left], left - len(some)
                target.sendall(some)
                if left is not None and left <= 0:
                    break
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Saying:
    """A server that is not Skein: it says the same to each connection, and closes it."""

    def __init__(self, said: bytes) -> None:
        self.said = said
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            client.recv(65536)
            client.sendall(self.said)
            client.close()


LOST = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<h1>lost</h1>"
BARE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"threads": []}'


def broken_key() -> str:
    raise ValueError("no key today")


class Sync(unittest.TestCase):
    def setUp(self) -> None:
        self.skein = skein.Skein(URL)
        self.thread = self.skein.thread(self.skein.send("thread.create", {"agentId": "echo"})["threadId"])

    def test_queries_show_what_was_written(self) -> None:
        self.thread.send("item.create", item("one"))
        self.assertEqual(self.thread.query("item.list", {"order": "asc"})["items"][0]["content"][0]["text"], "one")

    def test_an_unanswered_command_is_repeated_and_executed_once(self) -> None:
        proxy = Cutting(1, 20)
        skein.Skein(proxy.url).thread(self.thread.ref).send("item.create", item("once"))
        self.assertEqual(proxy.made, 2)
        self.assertEqual(len(self.thread.query("item.list", {})["items"]), 1)

    def test_events_resume_where_a_stream_broke_off(self) -> None:
        for n in range(10):
            self.thread.send("item.create", item(str(n)))
        proxy, seen = Cutting(4, 2500), []
        for event in skein.Skein(proxy.url).thread(self.thread.ref).events(types=["item.*"]):
            seen.append(text_of(event))
            if len(seen) == 10:
                break
        self.assertEqual("".join(seen), "0123456789")
        self.assertGreater(proxy.made, 1)

    def test_a_run_is_followed(self) -> None:
        self.thread.send("thread.react", {"text": "hello"})
        run = self.thread.query("execution.list", {})["executions"][0]["id"]
        chunks = list(self.thread.chunks(execution=run))
        self.assertEqual("".join(c.data["delta"] for c in chunks if isinstance(c, skein.Chunk) and c.type == "text-delta"), "0123456789")

    def test_one_call_runs_the_agent_and_ends_with_what_it_wrote(self) -> None:
        proxy = Cutting(2, 2500)
        thread = skein.Skein(proxy.url).thread(self.thread.ref)
        told = list(thread.run({"text": "hello"}))
        self.assertEqual("".join(e.data["delta"] for e in told if isinstance(e, skein.Chunk) and e.type == "text-delta"), "0123456789")
        first, last = told[0], told[-1]
        assert isinstance(first, skein.Started) and isinstance(last, skein.Done)
        self.assertEqual((first.thread_id, last.execution["id"], last.execution["status"]), (self.thread.ref, first.execution_id, "completed"))
        self.assertEqual(sum(isinstance(e, skein.Started) for e in told), 1)
        self.assertEqual(len(thread.query("item.list", {})["items"]), 2)
        self.assertEqual(len(self.thread.query("execution.list", {})["executions"]), 1)
        self.assertGreater(proxy.made, 2)
        with self.assertRaises(skein.SkeinError) as refused:
            list(self.skein.thread("key:nothing").run({"text": "hello"}))
        self.assertEqual(refused.exception.code, "not_found")

    def test_the_tenants_events_and_the_end_of_a_thread(self) -> None:
        types: list[str] = []
        for event in self.thread.events():
            types.append(event.type)
            if len(types) == 1:
                self.thread.send("thread.delete", {})
        self.assertEqual(types[-1], "lifecycle.deleted")
        for found in self.skein.events(after="0", types=["lifecycle.deleted"]):
            if found.event.thread_id == self.thread.ref:
                break

    def test_refusals_are_typed(self) -> None:
        with self.assertRaises(skein.SkeinError) as refused:
            self.skein.thread("key:nothing").query("thread.get", {})
        self.assertEqual((refused.exception.code, refused.exception.status, refused.exception.retry), ("not_found", 404, False))
        with self.assertRaises(skein.SkeinError) as refused:
            self.thread.send("thread.update", {"title": "x"}, expected_version=9)
        self.assertEqual((refused.exception.code, refused.exception.details["currentVersion"]), ("version_conflict", 2))
        with self.assertRaises(skein.SkeinError) as refused:
            skein.Skein("http://127.0.0.1:1", timeout=0.3).query("thread.list", {})
        self.assertEqual((refused.exception.code, refused.exception.details), ("unavailable", {"outcome": "unknown"}))

    def test_what_can_never_be_answered_fails_at_once(self) -> None:
        for url in ("127.0.0.1:8420", "localhost:8420", "", "ftp://example.com", "http://127.0.0.1:port"):
            with self.assertRaises(ValueError):
                skein.Skein(url)
            with self.assertRaises(ValueError):
                aio.Skein(url)
        given: list[tuple[str, Any, str]] = [
            ("invalid_request", {"key": "a\nb"}, "Authorization"), ("invalid_request", {"key": "ключ"}, "Authorization"),
            ("invalid_request", {"tenant": "a\nb"}, "Skein-Tenant"), ("unauthorized", {"key": broken_key}, "no key today"),
        ]
        for code, options, why in given:
            client = skein.Skein(URL, timeout=60, **options)
            with self.assertRaisesRegex(skein.SkeinError, why) as refused:
                client.query("thread.list", {})
            self.assertEqual(refused.exception.code, code)
            with self.assertRaisesRegex(skein.SkeinError, why) as refused:
                next(client.events())
            self.assertEqual(refused.exception.code, code)
        with self.assertRaisesRegex(skein.SkeinError, "not_found: not an answer of Skein.*lost"):
            skein.Skein(Saying(LOST).url, timeout=60).query("thread.list", {})
        skein.Skein(URL, key="anything\n").query("thread.list", {})

    def test_a_stream_that_never_opens_ends_with_the_timeout(self) -> None:
        client = skein.Skein("http://127.0.0.1:1", timeout=0.3)
        for stream in (client.events(), client.thread("key:x").run({"text": "hello"})):
            with self.assertRaisesRegex(skein.SkeinError, "Connection refused; is Skein running there") as refused:
                next(stream)
            self.assertEqual(refused.exception.details, {"outcome": "unknown"})


class Async(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.skein = aio.Skein(URL)
        self.thread = self.skein.thread((await self.skein.send("thread.create", {"agentId": "echo"}))["threadId"])

    async def test_commands_are_repeated_and_events_resume(self) -> None:
        once = Cutting(1, 20)
        await aio.Skein(once.url).thread(self.thread.ref).send("item.create", item("0"))
        for n in range(1, 10):
            await self.thread.send("item.create", item(str(n)))
        self.assertEqual(len((await self.thread.query("item.list", {}))["items"]), 10)
        proxy, seen = Cutting(4, 2500), []
        async for event in aio.Skein(proxy.url).thread(self.thread.ref).events(types=["item.*"]):
            seen.append(text_of(event))
            if len(seen) == 10:
                break
        self.assertEqual("".join(seen), "0123456789")
        self.assertGreater(proxy.made, 1)

    async def test_many_at_once_and_cancelled(self) -> None:
        await asyncio.gather(*(self.thread.send("item.create", item(str(n))) for n in range(20)))
        self.assertEqual(len((await self.thread.query("item.list", {}))["items"]), 20)

        async def follow() -> None:
            async for _ in self.skein.events():
                pass

        task = asyncio.create_task(follow())
        await asyncio.sleep(0)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    async def test_one_call_runs_the_agent_and_ends_with_what_it_wrote(self) -> None:
        proxy = Cutting(2, 2500)
        thread = aio.Skein(proxy.url).thread(self.thread.ref)
        told = [e async for e in thread.run({"text": "hello"})]
        self.assertEqual("".join(e.data["delta"] for e in told if isinstance(e, skein.Chunk) and e.type == "text-delta"), "0123456789")
        self.assertEqual([type(e) for e in told if not isinstance(e, skein.Chunk)], [skein.Started, skein.Done])
        self.assertEqual(len((await thread.query("item.list", {}))["items"]), 2)
        self.assertEqual(len((await self.thread.query("execution.list", {}))["executions"]), 1)

    async def test_what_can_never_be_answered_fails_at_once(self) -> None:
        with self.assertRaisesRegex(skein.SkeinError, "Authorization"):
            await aio.Skein(URL, timeout=60, key="a\nb").query("thread.list", {})
        with self.assertRaisesRegex(skein.SkeinError, "no key today"):
            await aio.Skein(URL, timeout=60, key=broken_key).query("thread.list", {})
        with self.assertRaisesRegex(skein.SkeinError, "not_found: not an answer of Skein"):
            await aio.Skein(Saying(LOST).url, timeout=60).query("thread.list", {})
        for stream in (aio.Skein("http://127.0.0.1:1", timeout=0.3).events(), aio.Skein("http://127.0.0.1:1", timeout=0.3).thread("key:x").run({"text": "hello"})):
            with self.assertRaisesRegex(skein.SkeinError, "is Skein running there"):
                await anext(stream)

    async def test_an_answer_may_end_with_its_connection(self) -> None:
        self.assertEqual(await aio.Skein(Saying(BARE).url, timeout=5).query("thread.list", {}), {"threads": []})

    async def test_runs_and_refusals(self) -> None:
        await self.thread.send("thread.react", {"text": "hello"})
        run = (await self.thread.query("execution.list", {}))["executions"][0]["id"]
        said = [c.data["delta"] async for c in self.thread.chunks(execution=run) if isinstance(c, skein.Chunk) and c.type == "text-delta"]
        self.assertEqual("".join(said), "0123456789")
        with self.assertRaises(skein.SkeinError) as refused:
            await self.skein.thread("key:nothing").query("thread.get", {})
        self.assertEqual(refused.exception.code, "not_found")


if __name__ == "__main__":
    unittest.main()
