import asyncio, json, os
import nats

async def react(nc, m):
    request = json.loads(m.data)

    async def send(message):
        await nc.publish(m.reply, json.dumps(message).encode())

    async def beat():
        while True:
            await send({"kind": "heartbeat"})
            await asyncio.sleep(request["protocol"]["heartbeatMs"] / 1000)

    async def stop(_, work=asyncio.current_task()):
        work.cancel()

    alive = asyncio.create_task(beat())
    cancel = await nc.subscribe(request["protocol"]["cancel"], cb=stop)
    try:
        said = [item for item in request["items"] if item.get("role") == "user"][-1]
        text = "".join(part.get("text", "") for part in said["content"]).upper() + "!"  # the model's call goes here
        await send({"kind": "chunk", "type": "text-delta", "data": {"id": request["itemId"], "delta": text}})
        await send({"kind": "result", "assistantEvent": {"content": [{"type": "output_text", "text": text}]}})
    except Exception as err:
        await send({"kind": "error", "message": str(err), "retry": False})
    finally:
        alive.cancel()
        await cancel.unsubscribe()

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    running = set()

    async def request(m):  # several at once: the client waits for what it calls
        task = asyncio.create_task(react(nc, m))
        running.add(task)
        task.add_done_callback(running.discard)

    await nc.subscribe("skein.reactor.shout", queue="skein", cb=request)
    await nc.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
