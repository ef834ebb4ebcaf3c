import type { CallOptions, Connection, Frame } from "./connection.js";
import type { ChunkEmittedData, Commands, Execution, Reply } from "./contract.js";
import type { ChunkOptions, CommandBody, FollowOptions, RunEvent, SkeinEvent, Streamed, TenantEvent, Transport } from "./transport.js";

/** Reaches Skein over HTTP. */
export class HTTP implements Transport {
  constructor(readonly connection: Connection) {}

  async command(name: string, body: CommandBody, options: CallOptions): Promise<Reply> {
    const reply = await this.connection.json<Reply>("POST", `/api/commands/${name}`, body, options);
    this.connection.noteSeq(reply.seq);
    return reply;
  }

  query(name: string, ask: object, options: CallOptions): Promise<unknown> {
    return this.connection.json("POST", `/api/queries/${name}`, ask, options);
  }

  async *events(options: FollowOptions & { after?: string }): AsyncGenerator<TenantEvent> {
    const query = search({ types: options.types?.join(",") });
    for await (const f of this.connection.stream(`/api/events${query}`, following(options, options.after), () => false)) {
      yield { position: f.id, event: parse(f) };
    }
  }

  async *threadEvents(thread: string, options: FollowOptions & { after?: number }): AsyncGenerator<SkeinEvent> {
    const query = search({ types: options.types?.join(",") });
    for await (const f of this.connection.stream(`${pathOf(thread)}/events${query}`, following(options, options.after), (last) => last?.event === "lifecycle.deleted")) {
      yield parse(f);
    }
  }

  async *chunks(thread: string, options: ChunkOptions): AsyncGenerator<Streamed> {
    const query = search({ execution: options.execution });
    for await (const f of this.connection.stream(`${pathOf(thread)}/chunks${query}`, following(options, options.after), isLast)) {
      yield streamed(f);
    }
  }

  async *run(thread: string, data: Commands["thread.react"], options: CallOptions & { commandId?: string }): AsyncGenerator<RunEvent> {
    const request = {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": options.commandId ?? crypto.randomUUID() },
      body: JSON.stringify(data),
      signal: options.signal,
    };
    let started = false; // a resumed stream says so again
    for await (const f of this.connection.stream(`${pathOf(thread)}/react`, request, (last) => last?.event === "done")) {
      if (f.event === "started") {
        if (!started) yield { type: "started", run: parse(f) };
        started = true;
      } else if (f.event === "done") {
        const execution = parse<Execution>(f);
        this.connection.noteSeq((execution as { seq?: number }).seq);
        yield { type: "done", execution };
        return;
      } else {
        yield streamed(f);
      }
    }
  }
}

/** The path of a thread. */
export function pathOf(thread: string): string {
  return `/api/threads/${encodeURIComponent(thread).replaceAll("%3A", ":")}`;
}

function following(o: FollowOptions, after: string | number | undefined) {
  return { signal: o.signal, ...(after !== undefined && { lastId: String(after) }), ...(o.log !== undefined && { log: o.log }), ...(o.opened && { opened: o.opened }) };
}

function search(parameters: Record<string, string | undefined>): string {
  const set = Object.entries(parameters).filter((p): p is [string, string] => p[1] !== undefined);
  return set.length > 0 ? `?${new URLSearchParams(set)}` : "";
}

function parse<T>(f: Frame): T {
  return JSON.parse(f.data) as T;
}

function streamed(f: Frame): Streamed {
  return f.event === "gap" ? { type: "gap", gap: parse(f) } : { type: "chunk", chunk: parse(f) };
}

/** Whether a frame has the last chunk of a run. */
function isLast(f: Frame | undefined): boolean {
  return f !== undefined && f.event !== "gap" && parse<ChunkEmittedData>(f).type === "finish";
}
