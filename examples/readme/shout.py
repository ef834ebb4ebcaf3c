import asyncio, json, os, nats

async def shout(m):
    said = [i for i in json.loads(m.data)["items"] if i.get("role") == "user"][-1]["content"]
    text = "".join(p["text"] for p in said).upper()
    await m.respond(json.dumps({"kind": "result", "assistantEvent": {"content": [{"type": "output_text", "text": text}]}}).encode())

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    await nc.subscribe("skein.reactor.shout", queue="skein", cb=shout)
    await asyncio.Event().wait()

asyncio.run(main())
