import type { CallOptions } from "./connection.js";
import type { ChunkEmittedData, ChunkList, ChunkListQuery, Commands, Execution } from "./contract.js";
import { SkeinError } from "./error.js";
import { placed, readThread, refills } from "./nats-events.js";
import type { Feed } from "./nats-feed.js";
import type { NATS } from "./nats.js";
import { pause } from "./pause.js";
import type { ChunkOptions, RunEvent, SkeinEvent, Streamed } from "./transport.js";

const page = 256;
const askEvery = 15_000; // how often the execution is asked for, in case its end was missed
const endGrace = 1000; // how long the last chunk may arrive after the execution's end

/** Reads what a run streams. */
export async function* readChunks(nats: NATS, ref: string, o: ChunkOptions): AsyncGenerator<Streamed> {
  if (o.execution !== undefined && !/^[A-Za-z0-9][\w-]{0,63}$/.test(o.execution)) {
    throw new SkeinError("invalid_request", `${JSON.stringify(o.execution.slice(0, 80))} is not an execution's id`, 0, "/execution");
  }
  const thread = await nats.threadId(ref, o);
  const types = ["chunk.emitted", "execution.created", "execution.status.changed", "thread.finished"];
  const feed = nats.feed(thread, (type) => types.includes(type));
  try {
    yield* new ChunkReader(nats, thread, feed, o).read();
  } finally {
    feed.close();
  }
}

/**
 * Merges live chunks with those that are stored for an hour. The indexes of a run have no gaps and no
 * repeats, so the last one tells whether another chunk is new, and whether some were missed.
 */
class ChunkReader {
  #execution: string | undefined;
  #next: number;
  #attempt = 0; // the claim of the last chunk
  #seq = 0; // its sequence in the stream of chunks; 0 if unknown
  #begun = false;
  #done = false;
  #end: Execution | undefined; // how the execution ended, whose last chunk has not arrived
  #until = 0; // when it is no longer waited for

  constructor(
    readonly nats: NATS,
    readonly thread: string,
    readonly feed: Feed,
    readonly o: ChunkOptions,
  ) {
    this.#execution = o.execution;
    this.#next = (o.after ?? -1) + 1;
  }

  async *read(): AsyncGenerator<Streamed> {
    while (!this.#done) {
      this.o.signal?.throwIfAborted();
      if (this.feed.missed()) {
        yield* this.#stored();
        if (!this.#done) await this.#ask();
        continue;
      }
      const m = this.feed.take();
      if (m) {
        const e = placed(m);
        if (e) yield* this.#live(e.event, Number(m.headers?.get("Nats-Sequence") || 0));
      } else if (!(await this.feed.wait(this.o.signal, this.#end ? Math.max(this.#until - performance.now(), 0) : askEvery))) {
        if (!this.#end) await this.#ask();
        else yield* this.#finish();
      }
    }
  }

  async *#live(e: SkeinEvent, seq: number): AsyncGenerator<Streamed> {
    if (e.type === "execution.created") {
      this.#execution ??= e.data.id;
    } else if (e.type === "chunk.emitted") {
      const chunk = e.data;
      if (this.#execution === undefined && chunk.type !== "finish") this.#execution = chunk.executionId; // a finish is that of an earlier run
      if (chunk.executionId !== this.#execution || !this.#isNew(chunk)) return;
      for (let failures = 0; failures < refills && this.#lacks(chunk) && (failures === 0 || this.#seq < seq); failures++) {
        if (failures > 0) await pause(Math.min(failures, 4), 0, this.o.signal); // a replica may lag behind
        yield* this.#stored();
      }
      if (!this.#done && this.#isNew(chunk)) yield* this.#pass(chunk, seq);
    } else if ((e.type === "thread.finished" ? e.data.executionId : e.subject) === this.#execution && this.#execution !== undefined) {
      await this.#ask();
    }
  }

  /** Whether a chunk comes after the last one, or is of a newer claim. What an older claim still sends does not count. */
  #isNew(c: ChunkEmittedData): boolean {
    return (c.attempt >= this.#attempt && c.index >= this.#next) || (this.#attempt > 0 && c.attempt > this.#attempt);
  }

  /** Whether chunks are missing before a new one. */
  #lacks(c: ChunkEmittedData): boolean {
    return !this.#done && this.#isNew(c) && c.index > this.#next;
  }

  *#pass(chunk: ChunkEmittedData, seq: number): Generator<Streamed> {
    const executionId = chunk.executionId;
    if (chunk.index > this.#next) yield { type: "gap", gap: { executionId, from: this.#next, to: chunk.index - 1 } };
    [this.#next, this.#attempt, this.#seq] = [chunk.index + 1, chunk.attempt, Math.max(this.#seq, seq)];
    this.#until = performance.now() + endGrace; // more may follow
    this.#done = chunk.type === "finish";
    yield { type: "chunk", chunk };
  }

  /** Reads what is stored after the last chunk. */
  async *#stored(): AsyncGenerator<Streamed> {
    if (this.#execution === undefined) return;
    for (let more = true; more; ) {
      const from = this.#seq > 0 ? { fromSeq: this.#seq + 1 } : this.#next > 0 ? (this.#begun ? { fromIndex: this.#next } : { afterIndex: this.#next - 1 }) : {};
      const ask: ChunkListQuery = { threadId: this.thread, executionId: this.#execution, limit: page, ...from };
      const list: ChunkList = await this.nats.patiently("chunk.list", ask, { signal: this.o.signal, begun: this.#begun });
      this.#begun = true;
      for (const { seq, event } of list.chunks) {
        const chunk = (event as SkeinEvent<"chunk.emitted">).data;
        this.#seq = seq;
        if (chunk.executionId !== this.#execution) continue;
        if (this.#isNew(chunk)) yield* this.#pass(chunk, seq);
        else this.#done = chunk.type === "finish"; // it was seen before
        if (this.#done) return;
      }
      more = list.nextSeq !== undefined;
      this.#seq = Math.max(this.#seq, (list.nextSeq ?? 1) - 1);
    }
  }

  /** Asks for the execution, or for the one that is active, as it is now. */
  async #ask(): Promise<void> {
    const o = { signal: this.o.signal, begun: this.#begun };
    const { lastSeq: minSeq } = await this.nats.patiently("history.get", {}, o);
    if (this.#execution === undefined) {
      const { executions } = await this.nats.patiently("execution.list", { threadId: this.thread, status: "executing", minSeq }, o);
      this.#begun = true;
      this.#execution = executions.at(-1)?.id;
      if (this.#execution !== undefined) this.feed.miss(); // its chunks are to be read
      return;
    }
    const x = await this.nats.patiently("execution.get", { threadId: this.thread, executionId: this.#execution, minSeq }, o);
    if (x.status === "executing" || this.#end) return;
    this.#end = x;
    // Nothing comes of a run that ended long ago. Of one that is read, more may: this clock may be ahead.
    const old = this.#attempt === 0 && Date.now() - Date.parse(x.updatedAt ?? x.createdAt) > 5 * endGrace;
    this.#until = old ? 0 : performance.now() + endGrace;
  }

  /** Ends a run whose last chunk was never written, or has expired: its execution says how. */
  async *#finish(): AsyncGenerator<Streamed> {
    yield* this.#stored();
    if (this.#done) return;
    const failed = this.#end?.status === "failed";
    const data = failed ? { finishReason: "error", errorText: this.#end?.errorText ?? "" } : { finishReason: "stop" };
    yield* this.#pass({ executionId: this.#execution!, index: this.#next, attempt: Math.max(this.#attempt, 1), type: "finish", data }, 0);
  }
}

/** Has the agent of a thread react, and reads the run until it has ended. */
export async function* readRun(nats: NATS, ref: string, data: Commands["thread.react"], o: CallOptions & { commandId?: string }): AsyncGenerator<RunEvent> {
  const signal = o.signal ? { signal: o.signal } : {};
  const reply = await nats.command("thread.react", { commandId: o.commandId ?? crypto.randomUUID(), threadId: ref, data }, signal);
  const threadId = reply.threadId!;
  const result = (reply.result ?? {}) as { executionId?: string };
  const { executionId } = result;
  yield { type: "started", run: { ...reply, ...result } };
  if (executionId === undefined) return;
  const news = readThread(nats, threadId, { after: reply.version, types: ["execution.created", "queue.removed", "thread.finished", "lifecycle.deleted"], ...signal });
  const get = (fresh: object) => nats.patiently("execution.get", { threadId, executionId, ...fresh }, { ...signal, begun: true });
  try {
    let x = await get({}).catch(async (error) => { // its message may wait in the agent's queue
      const queue = error.code === "not_found" && (await nats.patiently("queue.list", { threadId }, { ...signal, begun: true }));
      if (!queue) throw error;
      return queue.queued.some((q) => q.executionId === executionId) ? undefined : get({ minSeq: queue.seq });
    });
    if (!x) x = await until(news, (e) => concerns(e, executionId), get);
    yield* readChunks(nats, threadId, { execution: executionId, ...signal });
    if (!x.finished) x = await get({});
    if (!x.finished) x = await until(news, (e) => e.type !== "execution.created" && concerns(e, executionId), get);
    nats.noteSeq(x.seq);
    yield { type: "done", execution: x };
  } finally {
    await news.return(undefined);
  }
}

/** Whether an event begins or ends a run. One whose message was removed from its queue throws. */
function concerns(e: SkeinEvent, executionId: string): boolean {
  if (e.type === "queue.removed" && e.data.executionId === executionId) {
    throw new SkeinError("not_found", `execution ${executionId} will not start: its message was removed from the queue`, 404);
  }
  return e.type === "lifecycle.deleted" || (e.type === "thread.finished" && e.data.executionId === executionId) || (e.type === "execution.created" && e.data.id === executionId);
}

/** Reads events until one is found, and returns the execution as of then. */
async function until(news: AsyncGenerator<SkeinEvent>, found: (e: SkeinEvent) => boolean, get: (fresh: object) => Promise<Execution>): Promise<Execution> {
  for (let next = await news.next(); !next.done; next = await news.next()) {
    if (found(next.value)) return get({ minVersion: next.value.threadversion });
  }
  return get({}); // the thread was deleted
}
