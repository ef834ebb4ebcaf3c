import { Connection, type CallOptions, type Options, type Request } from "./connection.js";
import type { Commands, EventData, Queries, Reply } from "./contract.js";
import { SkeinError } from "./error.js";
import { HTTP, pathOf } from "./http.js";
import { ThreadSocket, type SocketOptions } from "./socket.js";
import type { ChunkOptions, FollowOptions, RunEvent, SkeinEvent, Streamed, TenantEvent, Transport } from "./transport.js";

/** How a command is sent. */
export interface CommandOptions extends CallOptions {
  /** Makes a repeat safe: for 24 hours the same id returns the first reply. Chosen if absent. */
  commandId?: string;
  /** The version that the thread must have; 0: it must not exist. */
  expectedVersion?: number;
  /** The token of writer.claim. */
  writerToken?: string;
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
  readonly #transport: Transport;

  /** A client over HTTP, or over another transport, such as that of `@skein-threads/client/nats`. */
  constructor(options: Options | Transport = {}) {
    this.#transport = "threadEvents" in options ? options : new HTTP(new Connection(options));
  }

  /** A thread, by its id, or by `key:` and its key. Nothing is sent. */
  thread(ref: string): Thread {
    return new Thread(this, this.#transport, ref);
  }

  /** Executes a command of the tenant, or one that names its thread in the options. */
  send<C extends keyof Commands>(name: C, data: Commands[C], options: CommandOptions & { threadId?: string } = {}): Promise<Reply> {
    const { signal, ...request } = options;
    return this.#transport.command(name, { commandId: crypto.randomUUID(), ...request, data }, signal ? { signal } : {});
  }

  /** Executes a query. */
  query<Q extends keyof Queries>(name: Q, ask: Ask<Q>, options: CallOptions = {}): Promise<Answer<Q>> {
    return this.#transport.query(name, ask, options) as Promise<Answer<Q>>;
  }

  /**
   * Follows the events of the tenant: from now on, or after a position. It resumes a stream that broke
   * off, without a gap or a repeat, and ends with its signal alone.
   */
  events(options: FollowOptions & { after?: string } = {}): AsyncGenerator<TenantEvent> {
    return this.#transport.events(options);
  }
}

/** A thread of a {@link Skein}. */
export class Thread {
  readonly #skein: Skein;
  readonly #transport: Transport;

  constructor(
    skein: Skein,
    transport: Transport,
    /** Its id, or `key:` and its key. */
    readonly ref: string,
  ) {
    this.#skein = skein;
    this.#transport = transport;
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
  events<T extends keyof EventData = keyof EventData>(options: FollowOptions & { after?: number } = {}): AsyncGenerator<SkeinEvent<T>> {
    return this.#transport.threadEvents(this.ref, options) as AsyncGenerator<SkeinEvent<T>>;
  }

  /**
   * Follows what a run streams, from its beginning or after a chunk, until its last chunk, of type
   * finish. Without an execution it is the active run, or else the next one.
   */
  chunks(options: ChunkOptions = {}): AsyncGenerator<Streamed> {
    return this.#transport.chunks(this.ref, options);
  }

  /**
   * Has the thread's agent react, and follows the run: its ids, what it streams, and its execution when
   * it ends, after every person that it waits for has answered. A run whose stream breaks off is
   * resumed; a reader that leaves does not end it.
   */
  run(data: Commands["thread.react"], options: CallOptions & { commandId?: string } = {}): AsyncGenerator<RunEvent> {
    return this.#transport.run(this.ref, data, options);
  }

  /**
   * A WebSocket on the thread: events, chunks, live events and the thread itself, as one sequence. It is
   * over HTTP only.
   */
  socket(options: SocketOptions): ThreadSocket {
    return new ThreadSocket(this.#http(), pathOf(this.ref), options);
  }

  /** Reads a file of the thread, over HTTP only. The answer's body can be streamed. */
  async readFile(path: string, options: CallOptions & { headers?: Record<string, string> } = {}): Promise<Response> {
    return this.#http().request(this.#file(path), { headers: options.headers ?? {}, signal: options.signal });
  }

  /** Writes a file of the thread, over HTTP only. A body that is a stream is sent once: nothing repeats it. */
  async writeFile(path: string, body: BodyInit, options: CallOptions & { contentType?: string } = {}): Promise<void> {
    const headers = { "Content-Type": options.contentType ?? "application/octet-stream" };
    await this.#changeFile(path, { method: "PUT", headers, body, signal: options.signal, once: body instanceof ReadableStream });
  }

  /** Removes a file of the thread, over HTTP only. */
  async removeFile(path: string, options: CallOptions = {}): Promise<void> {
    await this.#changeFile(path, { method: "DELETE", signal: options.signal });
  }

  async #changeFile(path: string, request: Request): Promise<void> {
    const http = this.#http();
    const answer = await http.request(this.#file(path), request);
    http.noteSeq(Number(answer.headers.get("Skein-Seq") ?? 0));
    await answer.body?.cancel();
  }

  #file(path: string): string {
    return `${pathOf(this.ref)}/files/${path.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/")}`;
  }

  #http(): Connection {
    if (this.#transport instanceof HTTP) return this.#transport.connection;
    throw new SkeinError("invalid_request", "contents of files and sockets are served over HTTP: use a Skein that is made with a url");
  }
}
