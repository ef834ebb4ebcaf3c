import { Connection, type CallOptions, type Frame, type Options, type Request } from "./connection.js";
import type { ChunkEmittedData, Commands, EventData, EventEnvelope, Execution, Queries, Reply } from "./contract.js";
import { ThreadSocket, type SocketOptions } from "./socket.js";

/** An event of one of the given types: `SkeinEvent<"item.created">`. Of several, `type` tells them apart. */
export type SkeinEvent<T extends keyof EventData = keyof EventData> = {
  [K in T]: Omit<EventEnvelope, "type" | "data"> & { type: K; data: EventData[K] };
}[T];

/** An event of a tenant, with the position after which {@link Skein.events} continues. */
export interface TenantEvent {
  position: string;
  event: SkeinEvent;
}

/** What a run streams, or which of its chunks are no longer stored. */
export type Streamed = { type: "chunk"; chunk: ChunkEmittedData } | { type: "gap"; gap: { executionId: string; from: number; to: number } };

/** What a run does that was begun by {@link Thread.run}. */
export type RunEvent =
  | { type: "started"; run: Record<string, unknown> & { threadId?: string; executionId?: string } }
  | Streamed
  | { type: "done"; execution: Execution };

/** How a command is sent. */
export interface CommandOptions extends CallOptions {
  /** Makes a repeat safe: for 24 hours the same id returns the first reply. Chosen if absent. */
  commandId?: string;
  /** The version that the thread must have; 0: it must not exist. */
  expectedVersion?: number;
  /** The token of writer.claim. */
  writerToken?: string;
}

/** How events are followed. */
export interface FollowOptions extends CallOptions {
  /** Only these types, such as `item.created`, or `item.*` for all of an entity. */
  types?: string[];
  /** The name of the log that the position is of; a position of another log is refused. */
  log?: string;
  /** Is called whenever the stream has begun, also again: what is read from then on misses no event. */
  opened?: () => void;
}

type Ask<Q extends keyof Queries> = Queries[Q]["ask"];
type Answer<Q extends keyof Queries> = Queries[Q]["answer"];
type WithoutThread<T> = T extends unknown ? Omit<T, "threadId"> : never;

/**
 * A client of Skein. Commands and queries have the names and the data of docs/commands.md and
 * docs/queries.md. A command that returned was executed exactly once; queries show what this client's
 * commands have changed.
 */
export class Skein {
  readonly #connection: Connection;

  constructor(options: Options = {}) {
    this.#connection = new Connection(options);
  }

  /** A thread, by its id, or by `key:` and its key. Nothing is sent. */
  thread(ref: string): Thread {
    return new Thread(this, this.#connection, ref);
  }

  /** Executes a command of the tenant, or one that names its thread in the options. */
  async send<C extends keyof Commands>(name: C, data: Commands[C], options: CommandOptions & { threadId?: string } = {}): Promise<Reply> {
    const { signal, ...request } = options;
    const body = { commandId: crypto.randomUUID(), ...request, data };
    const reply = await this.#connection.json<Reply>("POST", `/api/commands/${name}`, body, signal ? { signal } : {});
    this.#connection.noteSeq(reply.seq);
    return reply;
  }

  /** Executes a query. */
  query<Q extends keyof Queries>(name: Q, ask: Ask<Q>, options: CallOptions = {}): Promise<Answer<Q>> {
    return this.#connection.json("POST", `/api/queries/${name}`, ask, options);
  }

  /**
   * Follows the events of the tenant: from now on, or after a position. It resumes a stream that broke
   * off, without a gap or a repeat, and ends with its signal alone.
   */
  async *events(options: FollowOptions & { after?: string } = {}): AsyncGenerator<TenantEvent> {
    const query = search({ types: options.types?.join(",") });
    for await (const f of this.#connection.stream(`/api/events${query}`, following(options, options.after), () => false)) {
      yield { position: f.id, event: parse(f) };
    }
  }
}

/** A thread of a {@link Skein}. */
export class Thread {
  readonly #skein: Skein;
  readonly #connection: Connection;
  readonly #path: string;

  constructor(
    skein: Skein,
    connection: Connection,
    /** Its id, or `key:` and its key. */
    readonly ref: string,
  ) {
    this.#skein = skein;
    this.#connection = connection;
    this.#path = `/api/threads/${encodeURIComponent(ref).replaceAll("%3A", ":")}`;
  }

  /** Executes a command on the thread. */
  send<C extends keyof Commands>(name: C, data: Commands[C], options: CommandOptions = {}): Promise<Reply> {
    return this.#skein.send(name, data, { ...options, threadId: this.ref });
  }

  /** Executes a query about the thread. */
  query<Q extends keyof Queries>(name: Q, ask: WithoutThread<Ask<Q>> = {} as WithoutThread<Ask<Q>>, options: CallOptions = {}): Promise<Answer<Q>> {
    return this.#skein.query(name, { ...ask, threadId: this.ref } as unknown as Ask<Q>, options);
  }

  /**
   * Follows the thread's events: all of them, or those after a version. It resumes a stream that broke
   * off, without a gap or a repeat, and ends when the thread is deleted.
   */
  async *events<T extends keyof EventData = keyof EventData>(options: FollowOptions & { after?: number } = {}): AsyncGenerator<SkeinEvent<T>> {
    const query = search({ types: options.types?.join(",") });
    const after = options.after === undefined ? undefined : String(options.after);
    for await (const f of this.#connection.stream(`${this.#path}/events${query}`, following(options, after), (last) => last?.event === "lifecycle.deleted")) {
      yield parse(f);
    }
  }

  /**
   * Follows what a run streams, from its beginning or after a chunk, until its last chunk, of type
   * finish. Without an execution it is the active run, or else the next one.
   */
  async *chunks(options: CallOptions & { execution?: string; after?: number } = {}): AsyncGenerator<Streamed> {
    const query = search({ execution: options.execution });
    const after = options.after === undefined ? undefined : String(options.after);
    for await (const f of this.#connection.stream(`${this.#path}/chunks${query}`, following(options, after), isLast)) {
      yield streamed(f);
    }
  }

  /**
   * Has the thread's agent react, and follows the run: its ids, what it streams, and its execution when
   * it ends, after every person that it waits for has answered. A run whose stream breaks off is
   * resumed; a reader that leaves does not end it.
   */
  async *run(data: Commands["thread.react"], options: CallOptions & { commandId?: string } = {}): AsyncGenerator<RunEvent> {
    const request = {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": options.commandId ?? crypto.randomUUID() },
      body: JSON.stringify(data),
      signal: options.signal,
    };
    let started = false; // a resumed stream says so again
    for await (const f of this.#connection.stream(`${this.#path}/react`, request, (last) => last?.event === "done")) {
      if (f.event === "started") {
        if (!started) yield { type: "started", run: parse(f) };
        started = true;
      } else if (f.event === "done") {
        const execution = parse<Execution>(f);
        this.#connection.noteSeq((execution as { seq?: number }).seq);
        yield { type: "done", execution };
        return;
      } else {
        yield streamed(f);
      }
    }
  }

  /** A WebSocket on the thread: events, chunks, live events and the thread itself, as one sequence. */
  socket(options: SocketOptions): ThreadSocket {
    return new ThreadSocket(this.#connection, this.#path, options);
  }

  /** Reads a file of the thread. The answer's body can be streamed. */
  readFile(path: string, options: CallOptions & { headers?: Record<string, string> } = {}): Promise<Response> {
    return this.#connection.request(this.#file(path), { headers: options.headers ?? {}, signal: options.signal });
  }

  /** Writes a file of the thread. A body that is a stream is sent once: nothing repeats it. */
  async writeFile(path: string, body: BodyInit, options: CallOptions & { contentType?: string } = {}): Promise<void> {
    const headers = { "Content-Type": options.contentType ?? "application/octet-stream" };
    await this.#changeFile(path, { method: "PUT", headers, body, signal: options.signal, once: body instanceof ReadableStream });
  }

  /** Removes a file of the thread. */
  async removeFile(path: string, options: CallOptions = {}): Promise<void> {
    await this.#changeFile(path, { method: "DELETE", signal: options.signal });
  }

  async #changeFile(path: string, request: Request): Promise<void> {
    const answer = await this.#connection.request(this.#file(path), request);
    this.#connection.noteSeq(Number(answer.headers.get("Skein-Seq") ?? 0));
    await answer.body?.cancel();
  }

  #file(path: string): string {
    return `${this.#path}/files/${path.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/")}`;
  }
}

function following(o: FollowOptions, after: string | undefined) {
  return { signal: o.signal, ...(after !== undefined && { lastId: after }), ...(o.log !== undefined && { log: o.log }), ...(o.opened && { opened: o.opened }) };
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
