import asyncio, json, os
import nats

async def add(m):
    arguments = json.loads(m.data)["arguments"]
    try:
        answer = {"kind": "result", "status": "success", "result": arguments["a"] + arguments["b"]}
    except (KeyError, TypeError):
        answer = {"kind": "result", "status": "error", "error": "a and b are numbers"}
    await m.respond(json.dumps(answer).encode())

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    await nc.subscribe("skein.tool.add", queue="skein", cb=add)
    await nc.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
