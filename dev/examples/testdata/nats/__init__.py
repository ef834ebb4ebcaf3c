"""The calls of nats-py 2.15 that the examples and the Python client make, for tests on machines
without it: the same names and meanings, over a plain socket. The protocol is at
https://docs.nats.io/reference/reference-protocols/nats-protocol."""

import asyncio
import json
import secrets
from urllib.parse import urlparse


class Error(Exception):
    pass


class TimeoutError(Error, asyncio.TimeoutError):
    pass


class NoRespondersError(Error):
    pass


class ConnectionClosedError(Error):
    pass


class Msg:
    def __init__(self, nc, subject, reply, data, headers=None):
        self._nc, self.subject, self.reply, self.data, self.headers = nc, subject, reply, data, headers

    async def respond(self, data):
        await self._nc.publish(self.reply, data)


class Subscription:
    def __init__(self, nc, sid, subject, queue, cb):
        self._nc, self._sid, self._subject, self._group, self._cb = nc, sid, subject, queue, cb
        self._queue = asyncio.Queue()
        self._task = asyncio.create_task(self._run())

    async def _run(self):  # one message after another, as nats-py does
        while True:
            await self._cb(await self._queue.get())

    async def unsubscribe(self):
        if self._nc.is_closed:
            raise ConnectionClosedError
        self._task.cancel()
        self._nc._subs.pop(self._sid, None)
        self._nc._write(f"UNSUB {self._sid}\r\n".encode())


class Client:
    def __init__(self, url, user, password, inbox_prefix, wait):
        at = urlparse(url)
        self._address = (at.hostname, at.port or 4222)
        self._login = {"user": user, "pass": password} if user else {}
        self._prefix, self._wait, self._inbox, self._answers = inbox_prefix.decode(), wait, None, {}
        self._writer, self._pending, self._subs, self._sid, self._pongs = None, b"", {}, 0, []
        self.stats = {"reconnects": 0}
        self.is_closed, self.last_error, self.max_payload = False, None, 1 << 20

    def _write(self, data):
        if self._writer is None:  # until it is connected again
            self._pending += data
        else:
            self._writer.write(data)

    async def publish(self, subject, payload=b"", reply="", headers=None):
        if self.is_closed:
            raise ConnectionClosedError
        head = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n" if headers else ""
        sizes = f"{len(head)} {len(head) + len(payload)}" if head else f"{len(payload)}"
        self._write(f"{'H' if head else ''}PUB {subject} {reply} {sizes}\r\n{head}".encode() + payload + b"\r\n")

    async def request(self, subject, payload=b"", timeout=0.5, headers=None):
        if self._inbox is None:
            self._inbox = f"{self._prefix}.{secrets.token_hex(11)}."
            await self.subscribe(self._inbox + "*", cb=self._answered)
        token, answer = secrets.token_hex(11), asyncio.get_running_loop().create_future()
        self._answers[token] = answer
        try:
            await self.publish(subject, payload, self._inbox + token, headers)
            m = await asyncio.wait_for(answer, timeout)
        except asyncio.TimeoutError:
            raise TimeoutError("nats: timeout") from None
        finally:
            del self._answers[token]
        if m.headers and m.headers.get("Status") == "503":
            raise NoRespondersError
        return m

    async def _answered(self, m):
        answer = self._answers.get(m.subject[len(self._inbox) :])
        if answer and not answer.done():
            answer.set_result(m)

    async def subscribe(self, subject, queue="", cb=None):
        if self.is_closed:
            raise ConnectionClosedError
        self._sid += 1
        self._subs[str(self._sid)] = sub = Subscription(self, str(self._sid), subject, queue, cb)
        self._write(f"SUB {subject} {queue} {self._sid}\r\n".encode())
        return sub

    async def flush(self):
        pong = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        self._write(b"PING\r\n")
        await pong

    async def close(self):
        self.is_closed = True
        self._task.cancel()
        for sub in self._subs.values():
            sub._task.cancel()
        if self._writer:
            self._writer.close()

    async def _open(self):
        reader, writer = await asyncio.open_connection(*self._address, limit=1 << 23)
        info = json.loads((await reader.readline())[len("INFO ") :])
        self.max_payload = info["max_payload"]
        writer.write(b"CONNECT %s\r\nPING\r\n" % json.dumps({"verbose": False, "lang": "test", "headers": True, "no_responders": True, **self._login}).encode())
        while (line := await reader.readline()) != b"PONG\r\n":
            if not line or line.startswith(b"-ERR"):
                raise OSError(line.decode() or "the server has closed the connection")
        return reader, writer

    async def _run(self, reader):
        while True:
            try:
                await self._read(reader)
            except (OSError, EOFError):
                pass
            self._writer, self.last_error = None, None
            while True:
                await asyncio.sleep(self._wait)
                try:
                    reader, writer = await self._open()
                    break
                except (OSError, EOFError, ValueError):
                    continue
            self.stats["reconnects"] += 1
            for sid, sub in self._subs.items():
                writer.write(f"SUB {sub._subject} {sub._group} {sid}\r\n".encode())
            writer.write(self._pending)
            self._writer, self._pending = writer, b""

    async def _read(self, reader):
        while line := await reader.readline():
            verb, *args = line.decode().split()
            if verb == "PING":
                self._write(b"PONG\r\n")
            elif verb == "PONG":
                if self._pongs:
                    self._pongs.pop(0).set_result(None)
            elif verb in ("MSG", "HMSG"):  # subject, sid, reply if there is one, size of the header, size
                data = (await reader.readexactly(int(args[-1]) + 2))[:-2]
                head = int(args[-2]) if verb == "HMSG" else 0
                reply = args[2] if len(args) == (5 if head else 4) else ""
                if sub := self._subs.get(args[1]):
                    sub._queue.put_nowait(Msg(self, args[0], reply, data[head:], headers(data[:head])))
            elif verb == "-ERR":
                self.last_error = Error("nats: " + line.decode().removeprefix("-ERR ").strip().strip("'").lower())


def headers(head):
    """Returns the headers of a message; its status, if it has one, is one of them."""
    if not head:
        return None
    first, *lines = head.decode().strip().split("\r\n")
    pairs = dict(line.split(": ", 1) for line in lines if ": " in line)
    status = first.removeprefix("NATS/1.0").strip()
    return {**pairs, **({"Status": status[:3]} if status else {})}


async def connect(url="nats://127.0.0.1:4222", *, user=None, password=None, inbox_prefix=b"_INBOX", reconnect_time_wait=2, max_reconnect_attempts=60):
    nc = Client(url, user, password, inbox_prefix, reconnect_time_wait)
    reader, nc._writer = await nc._open()
    nc._task = asyncio.create_task(nc._run(reader))
    return nc
