"""A checkpointer of LangGraph that keeps checkpoints in Skein.

It stores what ``@skein-threads/langgraph`` does in the same pairs. Values are as the serializer writes
them: LangGraph's own for Python reads those of the one for TypeScript, and not the other way round.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ._pairs import LONGEST, LONGEST_BUCKET, Pairs, bucket_of, each, key_of, names_of
from .client import Skein

if TYPE_CHECKING:
    from typing import Any as Base

    Config = Mapping[str, Any]

    class CheckpointTuple(NamedTuple):
        """A checkpoint and what belongs to it."""

        config: dict[str, Any]
        checkpoint: dict[str, Any]
        metadata: dict[str, Any]
        parent_config: dict[str, Any] | None = None
        pending_writes: list[tuple[str, str, Any]] | None = None

    def get_checkpoint_metadata(config: Config, metadata: Mapping[str, Any]) -> dict[str, Any]: ...

    WRITES_IDX_MAP: dict[str, int]
else:
    from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple, get_checkpoint_metadata
    from langgraph.checkpoint.base import BaseCheckpointSaver as Base

Writes = list[tuple[str, str, Any]]
Sorted = list[tuple[str, str, int, Any]]

REMEMBERED = 1000  # threads


class Serializer(Protocol):
    """Turns values into a type and bytes, and back."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]: ...

    def loads_typed(self, data: tuple[str, bytes]) -> Any: ...


@dataclass(frozen=True)
class _Place:
    """What a configuration names."""

    thread: str
    namespace: str
    id: str

    def config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread, "checkpoint_ns": self.namespace, "checkpoint_id": self.id}}

    def at(self, id: str) -> _Place:
        return _Place(self.thread, self.namespace, id)


def _place(config: Config | None, *needed: str) -> _Place:
    given = (config or {}).get("configurable", {})
    for name in needed:
        if given.get(name) in (None, ""):
            raise ValueError(f"configurable.{name} is missing: it says where to save")
    thread = given.get("thread_id")
    return _Place("" if thread is None else str(thread), given.get("checkpoint_ns") or "", given.get("checkpoint_id") or "")


class SkeinSaver(Base):  # type: ignore[misc]
    """Keeps the checkpoints of LangGraph in the key-value pairs of Skein. Writes to a thread by several
    processes at once, and a process that is killed, leave every checkpoint either whole or unseen. The
    methods whose names begin with an a do the same in a thread of the operating system."""

    serde: Serializer

    def __init__(self, skein: Skein, *, bucket: str = "langgraph", serde: Serializer | None = None) -> None:
        super().__init__(serde=serde)
        self._skein, self._bucket = skein, bucket
        # What this saver put last into each namespace of a thread, and who stored its values.
        self._recent: dict[str, tuple[str, dict[str, str]]] = {}
        self._lock = threading.Lock()

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Returns the checkpoint that a configuration names, or the newest of its namespace."""
        place = _place(config, "thread_id")
        if place.id:
            return self._tuple(place)
        prefix = key_of("c", place.namespace, "")
        key, saved = next(self._of(place.thread).list(prefix, "desc", 1), ("", None))
        newest = names_of(key)[2] if key else ""
        mine = self._recent.get(key_of(place.thread, place.namespace), ("", {}))[0]  # a list may lag on a cluster
        if mine > newest and (found := self._tuple(place.at(mine))):
            return found
        return self._tuple(place.at(newest), saved) if newest else None

    def list(self, config: Config | None, *, filter: dict[str, Any] | None = None, before: Config | None = None, limit: int | None = None) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, of each namespace the newest first."""
        asked, least = _place(config), _place(before).id
        namespace = (config or {}).get("configurable", {}).get("checkpoint_ns")
        prefix = key_of("c", "") if namespace is None else key_of("c", namespace, "")
        left = limit
        for thread in [asked.thread] if asked.thread else [key for key, _ in Pairs(self._skein, self._bucket, self._bucket).list()]:
            for key, saved in self._of(thread).list(prefix, "desc", max(1, min(limit or 100, 100))):
                if left is not None and left <= 0:
                    return
                _, named, id = names_of(key)
                if asked.id not in ("", id) or (least and id >= least):
                    continue
                if found := self._tuple(_Place(thread, named, id), saved, filter):
                    left = None if left is None else left - 1
                    yield found

    def put(self, config: Config, checkpoint: Mapping[str, Any], metadata: Mapping[str, Any], new_versions: Mapping[str, Any]) -> dict[str, Any]:
        """Saves a checkpoint: first the values that changed, and then what refers to them."""
        place = _place(config, "thread_id")
        pairs, id = self._of(place.thread), str(checkpoint["id"])
        known = self._owners(place) if place.id else {}
        self._introduce(place.thread)
        owners: dict[str, str] = {}
        changed: dict[str, Any] = {}
        for channel, value in checkpoint["channel_values"].items():
            if channel not in new_versions and channel in known:
                owners[channel] = known[channel]
            elif channel in new_versions or place.id:
                owners[channel], changed[channel] = id, value
        each(changed.items(), lambda one: pairs.set(key_of(place.namespace, id, one[0]), self._dump(pairs, one[1]), pairs.values))
        rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        half = LONGEST // 2  # both are in one pair
        saved = {"checkpoint": self._dump(pairs, rest, half), "metadata": self._dump(pairs, get_checkpoint_metadata(config, metadata), half), "owners": owners}
        pairs.set(key_of("c", place.namespace, id), {**saved, "parent": place.id} if place.id else saved)
        self._remember(key_of(place.thread, place.namespace), id, owners)
        return place.at(id).config()

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Saves what a task wrote. Of repeated writes the first counts; of errors, interrupts and the like
        the last."""
        place = _place(config, "thread_id", "checkpoint_id")
        pairs = self._of(place.thread)
        self._introduce(place.thread)

        def save(one: tuple[int, tuple[str, Any]]) -> None:
            n, (channel, value) = one
            index = WRITES_IDX_MAP.get(channel, n)
            write = {"channel": channel, "path": task_path, "value": self._dump(pairs, value)}
            pairs.set(key_of("w", place.namespace, place.id, task_id, index), write, command_id=None if index < 0 else "langgraph-write")

        each(enumerate(writes), save)

    def delete_thread(self, thread_id: str) -> None:
        """Deletes all that was saved of a thread."""
        thread = _place({"configurable": {"thread_id": thread_id}}, "thread_id").thread
        self._of(thread).clear()
        Pairs(self._skein, self._bucket, self._bucket).delete(thread)
        with self._lock:
            self._recent = {key: kept for key, kept in self._recent.items() if names_of(key)[0] != thread}

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Returns what ``get_tuple`` does."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: Config | None, *, filter: dict[str, Any] | None = None, before: Config | None = None, limit: int | None = None) -> AsyncIterator[CheckpointTuple]:
        """Yields what ``list`` does."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(lambda: next(found, None))) is not None:
            yield one

    async def aput(self, config: Config, checkpoint: Mapping[str, Any], metadata: Mapping[str, Any], new_versions: Mapping[str, Any]) -> dict[str, Any]:
        """Does what ``put`` does."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Does what ``put_writes`` does."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Does what ``delete_thread`` does."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    def _of(self, thread: str) -> Pairs:
        bucket = f"{self._bucket}/{bucket_of(thread)}"
        values = f"{bucket}/values"
        if (over := len(values.encode()) - LONGEST_BUCKET) > 0:
            raise ValueError(f"configurable.thread_id is {over} bytes too long, where / and % count thrice: {thread:.40}...")
        return Pairs(self._skein, bucket, values)

    def _dump(self, pairs: Pairs, value: Any, room: int = LONGEST) -> dict[str, Any]:
        return pairs.dump(*self.serde.dumps_typed(value), room)

    def _load(self, pairs: Pairs, stored: dict[str, Any]) -> Any:
        return self.serde.loads_typed(pairs.load(stored))

    def _tuple(self, place: _Place, saved: Any = None, filter: dict[str, Any] | None = None) -> CheckpointTuple | None:
        pairs = self._of(place.thread)
        saved = saved or pairs.get(key_of("c", place.namespace, place.id))
        if saved is None:
            return None
        metadata = self._load(pairs, saved["metadata"])
        if any(metadata.get(name) != value for name, value in (filter or {}).items()):
            return None

        def value_of(one: tuple[str, str]) -> tuple[str, Any]:
            stored = pairs.get(key_of(place.namespace, one[1], one[0]), pairs.values)
            if stored is None:
                raise LookupError(f"the value of channel {one[0]} of checkpoint {one[1]} is missing: was the thread deleted meanwhile?")
            return one[0], self._load(pairs, stored)

        checkpoint: dict[str, Any] = {**self._load(pairs, saved["checkpoint"]), "channel_values": dict(each(saved["owners"].items(), value_of))}
        parent = place.at(saved["parent"]).config() if saved.get("parent") else None
        return CheckpointTuple(place.config(), checkpoint, metadata, parent, self._writes(pairs, place))

    def _writes(self, pairs: Pairs, place: _Place) -> Writes:
        found: Sorted = []
        for key, write in pairs.list(key_of("w", place.namespace, place.id, "")):
            *_, task, index = names_of(key)
            found.append((write["path"], task, int(index), write))
        found.sort(key=lambda one: one[:3])
        return each(found, lambda one: (one[1], one[3]["channel"], self._load(pairs, one[3]["value"])))

    def _introduce(self, thread: str) -> None:
        """Notes that there is a thread."""
        if key_of(thread) not in self._recent:
            Pairs(self._skein, self._bucket, self._bucket).set(thread, True)
            self._remember(key_of(thread), "", {})

    def _owners(self, place: _Place) -> dict[str, str]:
        """Returns who stored the values of a checkpoint."""
        id, owners = self._recent.get(key_of(place.thread, place.namespace), ("", {}))
        if id == place.id:
            return owners
        saved = self._of(place.thread).get(key_of("c", place.namespace, place.id))
        return dict(saved["owners"]) if saved else {}

    def _remember(self, key: str, id: str, owners: dict[str, str]) -> None:
        with self._lock:
            self._recent.pop(key, None)
            self._recent[key] = (id, owners)
            if len(self._recent) > REMEMBERED:
                del self._recent[next(iter(self._recent))]
