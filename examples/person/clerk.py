import asyncio, json, os, nats

async def clerk(m):
    parts = [p for i in json.loads(m.data)["items"] for p in i["content"]]
    asked = [p for p in parts if p["type"] == "tool-how_much"]
    if not asked:  # the first step: ask
        answer = {"assistantEvent": {"content": []},
                  "toolCalls": [{"callId": "ask-1", "name": "how_much", "arguments": {"order": "o-1"}}]}
    else:  # somebody has answered
        text = "Refunded: " + json.dumps(asked[-1].get("output"), sort_keys=True)
        answer = {"assistantEvent": {"content": [{"type": "output_text", "text": text}]}}
    await m.respond(json.dumps({"kind": "result", **answer}).encode())

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    await nc.subscribe("skein.reactor.clerk", queue="skein", cb=clerk)
    await asyncio.Event().wait()

asyncio.run(main())
