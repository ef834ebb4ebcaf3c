"""The key-value pairs in which adapters of frameworks keep what does not fit into a thread."""

from __future__ import annotations

import base64
import json
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from . import contract as c
from .client import Skein

LARGEST = 512 * 1024  # of a value, as JSON
LONGEST = 380 * 1024  # of a text in a pair
LONGEST_BUCKET = 128  # bytes of a bucket's name
TOGETHER = 16  # requests at once

T = TypeVar("T")
R = TypeVar("R")


class Pairs:
    """The pairs of a bucket, and in another the values and their parts."""

    def __init__(self, skein: Skein, bucket: str, values: str) -> None:
        self._skein, self.bucket, self.values = skein, bucket, values

    def get(self, key: str, bucket: str | None = None) -> Any:
        """Returns the value of a key; None if it has none."""
        return self._skein.query("kv.get", {"bucket": bucket or self.bucket, "key": key}).get("value")

    def set(self, key: str, value: Any, bucket: str | None = None, command_id: str | None = None) -> None:
        """Sets a key. With an id, the first of all that set the key with that id counts."""
        self._skein.send("kv.set", {"bucket": bucket or self.bucket, "key": key, "value": value}, command_id=command_id)

    def delete(self, key: str) -> None:
        """Deletes a key."""
        self._skein.send("kv.delete", {"bucket": self.bucket, "key": key})

    def clear(self) -> None:
        """Deletes all keys, and after them the values."""
        for bucket in (self.bucket, self.values):
            self._skein.send("kv.delete", {"bucket": bucket, "prefix": ""})

    def list(self, prefix: str = "", order: Literal["asc", "desc"] = "asc", limit: int = 1000) -> Iterator[tuple[str, Any]]:
        """Yields the pairs whose keys begin with a prefix. A request asks for as many as the limit."""
        ask: c.KvListQuery = {"bucket": self.bucket, "prefix": prefix, "order": order, "limit": limit, "values": True}
        while True:
            page = self._skein.query("kv.list", ask)
            yield from zip(page["keys"], page.get("values", []), strict=True)
            if "nextCursor" not in page:
                return
            ask["cursor"] = page["nextCursor"]

    def dump(self, kind: str, value: bytes, room: int = LONGEST) -> dict[str, Any]:
        """Makes a value ready to be stored where there is so much room. A larger one is stored in parts
        before."""
        if kind == "json" and len(value) <= room:
            text = value.decode()
            if len(json.dumps(text, ensure_ascii=False).encode()) <= room:
                return {"type": kind, "text": text}
        coded = base64.b64encode(value).decode()
        if len(coded) <= room:
            return {"type": kind, "base64": coded}
        name, parts = str(uuid.uuid4()), -(-len(coded) // LONGEST)
        each(range(parts), lambda n: self.set(f"part/{name}/{n}", coded[n * LONGEST : (n + 1) * LONGEST], self.values))
        return {"type": kind, "in": name, "parts": parts}

    def load(self, stored: dict[str, Any]) -> tuple[str, bytes]:
        """Returns the type and the bytes of a value."""
        if "text" in stored:
            return str(stored["type"]), str(stored["text"]).encode()
        if "base64" in stored:
            return str(stored["type"]), base64.b64decode(stored["base64"])

        def part(n: int) -> str:
            found = self.get(f"part/{stored['in']}/{n}", self.values)
            if found is None:
                raise LookupError(f"a part of a value in the bucket {self.values} is missing: was it deleted meanwhile?")
            return str(found)

        coded = "".join(each(range(stored["parts"]), part))
        return str(stored["type"]), base64.b64decode(coded)


def each(some: Iterable[T], work: Callable[[T], R]) -> list[R]:
    """Does something for each, some at once, and returns the results in order."""
    todo = list(some)
    if len(todo) < 2:
        return [work(one) for one in todo]
    with ThreadPoolExecutor(min(TOGETHER, len(todo))) as pool:
        return list(pool.map(work, todo))


def key_of(*names: str | int) -> str:
    """Joins texts to a key in which each can be told from the others."""
    return "/".join(urllib.parse.quote(str(name), safe="!*'()") for name in names)


def bucket_of(thread: str) -> str:
    """Returns a thread's part of the names of its buckets. It has no /: a thread named a/values would have
    the bucket of the values of another named a."""
    return thread.replace("%", "%25").replace("/", "%2F")


def names_of(key: str) -> list[str]:
    """Takes such a key apart."""
    return [urllib.parse.unquote(name) for name in key.split("/")]
