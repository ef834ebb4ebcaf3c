/**
 * Reaches Skein over NATS, with a connection of `@nats-io/nats-core` 3 that the caller makes.
 *
 * @packageDocumentation
 */
import type { CallOptions } from "./connection.js";
import type { Commands, ConsumerNextQuery, Queries, Reply } from "./contract.js";
import { SkeinError } from "./error.js";
import { readChunks, readRun } from "./nats-chunks.js";
import { Changes, closed, type NatsConnection } from "./nats-connection.js";
import { readTenant, readThread } from "./nats-events.js";
import { Feed } from "./nats-feed.js";
import { Requests } from "./nats-request.js";
import { pause } from "./pause.js";
import type { ChunkOptions, CommandBody, FollowOptions, RunEvent, SkeinEvent, Streamed, TenantEvent, Transport } from "./transport.js";

export type { NatsConnection, NatsMessage } from "./nats-connection.js";

/** How a client reaches Skein over NATS. */
export interface NatsOptions {
  /** The tenant whose threads are used. */
  tenant: string;
  /** How many milliseconds a request may take with its repeats; 30,000 if absent. */
  timeout?: number;
}

/**
 * Returns a transport over a connection, for `new Skein(natsTransport(nc, { tenant: "acme" }))`. The
 * caller closes the connection, which ends what is under way with `unavailable`.
 */
export function natsTransport(nc: NatsConnection, options: NatsOptions): Transport {
  return new NATS(nc, options);
}

/** The queries that take no `minSeq`: they wait for no read model. */
type Unordered = { [Q in keyof Queries]: "minSeq" extends keyof Queries[Q]["ask"] ? (string extends keyof Queries[Q]["ask"] ? Q : never) : Q }[keyof Queries];
const unordered: Record<Unordered, true> = {
  "consumer.create": true,
  "consumer.delete": true,
  "consumer.next": true,
  "consumer.settle": true,
  "kv.get": true,
  "kv.list": true,
  "push.list": true,
  "thread.shared": true,
  "webhook.list": true,
};

/** A transport, with what its streams are made of. */
export class NATS implements Transport {
  readonly #nc: NatsConnection;
  readonly #changes: Changes;
  readonly #requests: Requests;
  readonly #tenant: string;
  #seq = 0; // the greatest that was acknowledged

  constructor(nc: NatsConnection, { tenant, timeout = 30_000 }: NatsOptions) {
    if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(tenant)) {
      throw new SkeinError("invalid_request", `the tenant ${shown(tenant)} is not 1 to 64 letters, digits, dashes and underscores, the first a letter or digit`);
    }
    this.#nc = nc;
    this.#changes = new Changes(nc);
    this.#requests = new Requests(nc, this.#changes, timeout);
    this.#tenant = tenant;
  }

  async command(name: string, body: CommandBody, options: CallOptions): Promise<Reply> {
    const reply = await this.#requests.send<Reply>(this.#subject("cmd", name), body, options);
    this.noteSeq(reply.seq);
    return reply;
  }

  async query(name: string, ask: object, options: CallOptions): Promise<unknown> {
    const fresh = this.#seq > 0 && !(name in unordered) && !("minSeq" in ask) ? { ...ask, minSeq: this.#seq } : ask;
    // Asking for the next event of a consumer takes it: a second request would take another one.
    const singly = name === "consumer.next" ? { singly: Number((ask as ConsumerNextQuery).waitMs ?? 5000) } : {};
    return this.#requests.send(this.#subject("query", name), fresh, { ...options, ...singly });
  }

  events(options: FollowOptions & { after?: string }): AsyncGenerator<TenantEvent> {
    return readTenant(this, options);
  }

  threadEvents(thread: string, options: FollowOptions & { after?: number }): AsyncGenerator<SkeinEvent> {
    return readThread(this, thread, options);
  }

  chunks(thread: string, options: ChunkOptions): AsyncGenerator<Streamed> {
    return readChunks(this, thread, options);
  }

  run(thread: string, data: Commands["thread.react"], options: CallOptions & { commandId?: string }): AsyncGenerator<RunEvent> {
    return readRun(this, thread, data, options);
  }

  /** Notes that a commit was acknowledged: later queries show it. */
  noteSeq(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
  }

  /** Executes a query, of a stream that has begun: until it is answered, however long nobody does. */
  async patiently<Q extends keyof Queries>(name: Q, ask: Queries[Q]["ask"], o: { signal?: AbortSignal | undefined; begun: boolean }): Promise<Queries[Q]["answer"]> {
    for (let failures = 0; ; failures++) {
      try {
        return (await this.query(name, ask, o.signal ? { signal: o.signal } : {})) as Queries[Q]["answer"];
      } catch (error) {
        if (!o.begun || !(error instanceof SkeinError && error.retry)) throw error;
        if (this.#nc.isClosed()) throw closed();
      }
      await pause(failures, 0, o.signal);
    }
  }

  /** Subscribes to events of a thread, or of all threads, given by `*`: those whose types are wanted. */
  feed(thread: string, wanted: (type: string) => boolean): Feed {
    const timeline = `skein.timeline.${this.#tenant}.${thread}.`;
    return new Feed(this.#nc, this.#changes, `${timeline}>`, (subject) => wanted(subject.split(".").slice(4).join(".")));
  }

  /** The id of a thread, which may be named by its key. */
  async threadId(ref: string, { signal }: CallOptions): Promise<string> {
    if (ref.startsWith("key:")) return (await this.patiently("thread.get", { threadId: ref }, { signal, begun: false })).id;
    if (/^(T-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|thrd_[A-Za-z0-9]{27,59})$/i.test(ref)) return ref;
    throw new SkeinError("invalid_request", `${shown(ref)} is neither a thread's id nor key: and its key`, 0, "/threadId");
  }

  #subject(kind: string, name: string): string {
    if (!/^[\w-]{1,64}\.[\w-]{1,64}$/.test(name)) throw new SkeinError("invalid_request", `${shown(name)} cannot exist: a name is noun.verb, such as thread.get`);
    return `skein.${kind}.${this.#tenant}.${name}`;
  }
}

function shown(text: string): string {
  return JSON.stringify(String(text).slice(0, 80));
}
