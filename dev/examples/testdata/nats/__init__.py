"""The few calls of nats-py that the examples make, for tests on machines
without it: the same names and meanings, over a plain socket. The protocol is at
https://docs.nats.io/reference/reference-protocols/nats-protocol."""

import asyncio
import json
from urllib.parse import urlparse


class Msg:
    def __init__(self, nc, subject, reply, data):
        self._nc, self.subject, self.reply, self.data = nc, subject, reply, data

    async def respond(self, data):
        await self._nc.publish(self.reply, data)


class Subscription:
    def __init__(self, nc, sid, cb):
        self._nc, self._sid, self._cb = nc, sid, cb
        self._queue = asyncio.Queue()
        self._task = asyncio.create_task(self._run())

    async def _run(self):  # one message after another, as nats-py does
        while True:
            await self._cb(await self._queue.get())

    async def unsubscribe(self):
        self._task.cancel()
        self._nc._subs.pop(self._sid, None)
        self._nc._write(f"UNSUB {self._sid}\r\n".encode())


class Client:
    def __init__(self, reader, writer):
        self._reader, self._writer, self._subs, self._sid, self._pongs = reader, writer, {}, 0, []

    def _write(self, data):
        self._writer.write(data)

    async def publish(self, subject, payload=b""):
        self._write(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
        await self._writer.drain()

    async def subscribe(self, subject, queue="", cb=None):
        self._sid += 1
        self._subs[str(self._sid)] = sub = Subscription(self, str(self._sid), cb)
        self._write(f"SUB {subject} {queue} {self._sid}\r\n".encode())
        return sub

    async def flush(self):
        pong = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        self._write(b"PING\r\n")
        await pong

    async def _read(self):
        while line := await self._reader.readline():
            verb, *args = line.decode().split()
            if verb == "PING":
                self._write(b"PONG\r\n")
            elif verb == "PONG":
                self._pongs.pop(0).set_result(None)
            elif verb == "MSG":  # subject, sid, reply if there is one, size
                data = (await self._reader.readexactly(int(args[-1]) + 2))[:-2]
                if sub := self._subs.get(args[1]):
                    sub._queue.put_nowait(Msg(self, args[0], args[2] if len(args) == 4 else "", data))
            elif verb == "-ERR":
                raise RuntimeError(line.decode())


async def connect(url):
    at = urlparse(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port or 4222, limit=1 << 23)
    await reader.readline()  # INFO
    nc = Client(reader, writer)
    nc._write(b"CONNECT %s\r\n" % json.dumps({"verbose": False, "lang": "test"}).encode())
    nc._task = asyncio.create_task(nc._read())
    await nc.flush()
    return nc
