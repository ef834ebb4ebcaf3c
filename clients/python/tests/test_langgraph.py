"""The checkpointer, against a Skein and without LangGraph: a stand-in has what it imports."""

import json
import os
import pickle
import threading
import unittest
import uuid
from typing import Any

import skein
from skein.langgraph import SkeinSaver

URL = os.environ["SKEIN_URL"]


class Serde:
    """Writes what JSON has as JSON, and all else in Python's own form."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            return "json", json.dumps(obj).encode()
        except TypeError:
            return "pickle", pickle.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return json.loads(data[1]) if data[0] == "json" else pickle.loads(data[1])


def at(thread: str = "t", id: str = "", namespace: str = "") -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **({"checkpoint_id": id} if id else {})}}


def checkpoint(id: str, values: Any) -> Any:
    return {"v": 4, "id": id, "ts": "2026-01-01T00:00:00Z", "channel_values": values, "channel_versions": {name: 1 for name in values}, "versions_seen": {}}


class Saver(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.skein, self.bucket = skein.Skein(URL), f"python-{uuid.uuid4()}"
        self.saver = self.open()

    def open(self) -> SkeinSaver:
        return SkeinSaver(skein.Skein(URL), bucket=self.bucket, serde=Serde())

    def keys(self, bucket: str) -> list[str]:
        return self.skein.query("kv.list", {"bucket": bucket})["keys"]

    def test_forks_keep_their_values_and_unchanged_ones_are_stored_once(self) -> None:
        root = self.saver.put(at(), checkpoint("1", {"x": "root", "y": "same"}), {"step": 0}, {"x": 1, "y": 1})
        forks = [self.open().put(root, checkpoint(id, {"x": id, "y": "same"}), {"step": 1}, {"x": 2}) for id in ("2", "3")]
        for fork, id in zip(forks, ("2", "3")):
            found = self.open().get_tuple(fork)
            assert found
            self.assertEqual(found.checkpoint["channel_values"], {"x": id, "y": "same"})
            self.assertEqual(found.parent_config, root)
        self.assertEqual([key for key in self.keys(f"{self.bucket}/t/values") if key.endswith("/y")], ["/1/y"])

    def test_of_a_tasks_repeated_writes_the_first_count_and_special_ones_are_replaced(self) -> None:
        config = self.saver.put(at(), checkpoint("1", {}), {}, {})
        both = [threading.Thread(target=self.open().put_writes, args=(config, [("a", n), ("b", n)], "task")) for n in range(4)]
        for one in both:
            one.start()
        for one in both:
            one.join()
        first = self.open().get_tuple(config)
        assert first and first.pending_writes
        self.saver.put_writes(config, [("a", 9), ("b", 9)], "task")
        for value in ("one", "two"):
            self.saver.put_writes(config, [("__interrupt__", value)], "task")
        after = self.open().get_tuple(config)
        assert after
        self.assertEqual(after.pending_writes, [("task", "__interrupt__", "two"), *first.pending_writes])

    def test_large_values_come_back_and_nothing_of_a_deleted_thread_stays(self) -> None:
        values = {"text": "ü\0" * 400_000, "bytes": b"\7" * 1_000_000, "nothing": None}
        config = self.saver.put(at(), checkpoint("1", values), {}, {name: 1 for name in values})
        found = self.open().get_tuple(config)
        assert found
        self.assertEqual(found.checkpoint["channel_values"], values)
        self.saver.delete_thread("t")
        self.assertIsNone(self.saver.get_tuple(at()))
        self.assertEqual([self.keys(name) for name in (self.bucket, f"{self.bucket}/t", f"{self.bucket}/t/values")], [[], [], []])

    def test_threads_whose_ids_begin_alike_are_apart(self) -> None:
        ids = ["a", "a/values", "a%2Fvalues"]
        for id in ids:
            self.saver.put(at(id), checkpoint("1", {"x": id}), {}, {"x": 1})
        for deleted, id in enumerate(ids):
            for n, other in enumerate(ids):
                found = self.open().get_tuple(at(other))
                self.assertEqual(found and found.checkpoint["channel_values"], {"x": other} if n >= deleted else None)
            self.saver.delete_thread(id)
        with self.assertRaisesRegex(ValueError, "thread_id is [0-9]+ bytes too long"):
            self.saver.put(at("x" * 200), checkpoint("1", {}), {}, {})

    def test_a_checkpoint_and_its_metadata_fit_into_a_pair(self) -> None:
        large = "x" * 370_000
        config = self.saver.put(at(), {**checkpoint("1", {}), "versions_seen": {"n": large}}, {"m": large}, {})
        found = self.open().get_tuple(config)
        self.assertEqual(found and (found.checkpoint["versions_seen"]["n"], found.metadata["m"]), (large, large))

    def test_a_checkpoint_of_the_typescript_package_is_read(self) -> None:
        def text(value: Any) -> Any:
            return {"type": "json", "text": json.dumps(value)}

        rest = checkpoint("1", {})
        del rest["channel_values"]
        for bucket, key, value in (("/t/values", "/1/x", text(["ü"])), ("/t", "c//1", {"checkpoint": text(rest), "metadata": text({"step": 3}), "owners": {"x": "1"}})):
            self.skein.send("kv.set", {"bucket": self.bucket + bucket, "key": key, "value": value})
        found = self.saver.get_tuple(at())
        assert found
        self.assertEqual((found.checkpoint["channel_values"], found.metadata, found.config), ({"x": ["ü"]}, {"step": 3}, at("t", "1")))

    def test_what_names_no_place_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "configurable.checkpoint_id is missing"):
            self.saver.put_writes(at(), [("a", 1)], "task")

    async def test_the_asynchronous_ones_do_the_same(self) -> None:
        for thread in ("t", "u"):
            last = at(thread)
            for n in range(5):
                last = await self.saver.aput(last, checkpoint(str(n), {"x": n}), {"step": n % 2}, {"x": n})
            await self.saver.aput(at(thread, namespace="inner"), checkpoint("9", {}), {}, {})
        await self.saver.aput_writes(last, [("x", 1)], "task")
        newest = await self.open().aget_tuple(at("u"))
        assert newest
        self.assertEqual((newest.config, newest.pending_writes), (last, [("task", "x", 1)]))
        asked: list[tuple[Any, dict[str, Any], list[str]]] = [
            (at(), {}, ["4", "3", "2", "1", "0"]),
            (at(), {"before": at("t", "3"), "limit": 2}, ["2", "1"]),
            (at(), {"filter": {"step": 1}}, ["3", "1"]),
            ({"configurable": {"thread_id": "t"}}, {"limit": 1}, ["9"]),
        ]
        for config, options, want in asked:
            self.assertEqual([one.checkpoint["id"] async for one in self.saver.alist(config, **options)], want)
        self.assertEqual(len([one async for one in self.saver.alist(None)]), 12)
        await self.saver.adelete_thread("t")
        self.assertEqual(len([one async for one in self.saver.alist(None)]), 6)


if __name__ == "__main__":
    unittest.main()
