"""What checkers of types know of the installed client: checked, not run."""

import skein
from skein import aio
from skein.contract import Item

client = skein.Skein()
thread = client.thread("key:support/42")
version: int = thread.send("item.create", {"item": {"type": "message", "role": "user"}})["version"]
items: list[Item] = thread.query("item.list", {"limit": 10})["items"]
thread.send("item.make", {})  # type: ignore[call-overload]
thread.send("item.create", {"item": {"role": "user"}})  # type: ignore[call-overload]
thread.query("item.list", {"limit": "ten"})  # type: ignore[call-overload]


async def known() -> int:
    reply = await aio.Skein().send("thread.create", {"key": "a"})
    return reply["version"]
