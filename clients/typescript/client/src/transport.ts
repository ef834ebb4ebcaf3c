import type { CallOptions } from "./connection.js";
import type { ChunkEmittedData, Commands, EventData, EventEnvelope, Execution, Reply } from "./contract.js";

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

/** How events are followed. */
export interface FollowOptions extends CallOptions {
  /** Only these types, such as `item.created`, or `item.*` for all of an entity. */
  types?: string[];
  /** The name of the log that the position is of; a position of another log is refused. */
  log?: string;
  /**
   * Is called when the stream has begun, before its first event, and again when it goes on after the
   * connection was lost: what is read from then on misses no event.
   */
  opened?: () => void;
}

/** Which chunks of a run are followed. */
export interface ChunkOptions extends CallOptions {
  /** The run; if absent the active one, or else the next one. */
  execution?: string;
  /** The last chunk that was seen. */
  after?: number;
}

/** A command as it is sent. Its id makes a repeat safe. */
export interface CommandBody {
  commandId: string;
  threadId?: string;
  expectedVersion?: number;
  writerToken?: string;
  data: unknown;
}

/**
 * How a client reaches Skein: over HTTP, or over NATS with {@link natsTransport} of
 * `@skein-threads/client/nats`. Streams resume where they broke off. Queries show what the transport's
 * commands have changed.
 */
export interface Transport {
  command(name: string, body: CommandBody, options: CallOptions): Promise<Reply>;
  query(name: string, ask: object, options: CallOptions): Promise<unknown>;
  /** The events of the tenant, from now on or after a position. */
  events(options: FollowOptions & { after?: string }): AsyncGenerator<TenantEvent>;
  /** The events of a thread, which its id names, or `key:` and its key. */
  threadEvents(thread: string, options: FollowOptions & { after?: number }): AsyncGenerator<SkeinEvent>;
  chunks(thread: string, options: ChunkOptions): AsyncGenerator<Streamed>;
  run(thread: string, data: Commands["thread.react"], options: CallOptions & { commandId?: string }): AsyncGenerator<RunEvent>;
}
