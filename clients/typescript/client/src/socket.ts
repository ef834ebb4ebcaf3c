import type { CallOptions, Connection } from "./connection.js";
import type { ChunkEmittedData, ThreadDocument } from "./contract.js";
import { SkeinError } from "./error.js";
import { pause } from "./pause.js";
import type { SkeinEvent } from "./transport.js";

/** What a socket sends. */
export type SocketFrame =
  | { type: "event"; event: SkeinEvent }
  | { type: "chunk"; chunk: ChunkEmittedData }
  | { type: "gap"; gap: { executionId: string; from: number; to: number } }
  | { type: "live"; name: string; data: unknown }
  | { type: "thread"; thread: ThreadDocument };

/** What a socket watches. */
export interface SocketOptions extends CallOptions {
  what: Array<"events" | "chunks" | "live" | "thread">;
  /** The version after which events are sent: all of them if absent. */
  after?: number;
  /** The name of the log that `after` is of. */
  log?: string;
}

/**
 * A WebSocket on a thread. Iterate over it: it opens then, opens again where it broke off, with the
 * events that follow the last one, and closes when the loop ends. Of live events and chunks, those
 * that come while it is closed are missed, or come again.
 */
export class ThreadSocket implements AsyncIterable<SocketFrame> {
  readonly #connection: Connection;
  readonly #path: string;
  readonly #options: SocketOptions;
  #open: WebSocket | undefined;
  #waiting: string[] = []; // frames that are sent once it is open

  constructor(connection: Connection, path: string, options: SocketOptions) {
    this.#connection = connection;
    this.#path = path;
    this.#options = options;
  }

  /** Emits a live event to those who watch the thread. It is sent while the socket is iterated over. */
  emit(name: string, data: unknown): void {
    const frame = JSON.stringify({ type: "emit", name, data });
    if (this.#open?.readyState === 1) this.#open.send(frame);
    else this.#waiting.push(frame);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SocketFrame> {
    const { signal, what, log } = this.#options;
    let after = this.#options.after;
    for (let failures = 0; ; failures++) {
      signal?.throwIfAborted();
      const socket = await this.#connect();
      const frames = queue(socket, signal);
      try {
        if (!(await frames.opened)) {
          await this.#connection.request(this.#path, signal ? { signal } : {}); // says why, where it is refused
          throw closed;
        }
        this.#open = socket;
        socket.send(JSON.stringify({ type: "watch", what, ...(after !== undefined && { from: after }), ...(log !== undefined && { log }) }));
        for (const frame of this.#waiting.splice(0)) socket.send(frame);
        for await (const text of frames) {
          failures = 0;
          const frame = JSON.parse(text) as SocketFrame | { type: "error"; code: string; message: string; param: string };
          if (frame.type === "error") throw new SkeinError(frame.code, frame.message, 400, frame.param);
          if (frame.type === "event") after = frame.event.threadversion;
          yield frame;
        }
      } catch (error) {
        if (error !== closed) throw error;
      } finally {
        this.#open = undefined;
        socket.close();
      }
      await pause(failures, 0, signal);
    }
  }

  async #connect(): Promise<WebSocket> {
    const WebSocket = this.#connection.webSocket;
    if (!WebSocket) throw new SkeinError("invalid_request", "this platform has no WebSocket: pass one to the client, such as that of the package ws");
    let query = "";
    if (this.#connection.hasKey) { // a WebSocket sends no headers
      const { signal } = this.#options;
      const { ticket } = await this.#connection.json<{ ticket: string }>("POST", "/api/tickets", undefined, signal ? { signal } : {});
      query = `?ticket=${encodeURIComponent(ticket)}`;
    }
    return new WebSocket(`${this.#connection.url.replace(/^http/, "ws")}${this.#path}/socket${query}`);
  }
}

/** Says that a socket closed before it was open. */
const closed = new Error("the socket was not opened");

/** The messages of a socket, until it closes. */
function queue(socket: WebSocket, signal: AbortSignal | undefined) {
  const messages: string[] = [];
  let wake = () => {};
  let over = false;
  const end = () => ((over = true), wake());
  socket.addEventListener("message", (m) => (messages.push(String(m.data)), wake()));
  socket.addEventListener("close", end);
  socket.addEventListener("error", () => {}); // close follows
  signal?.addEventListener("abort", end, { once: true });
  return {
    opened: new Promise<boolean>((resolve) => {
      socket.addEventListener("open", () => resolve(true));
      socket.addEventListener("close", () => resolve(false));
      signal?.addEventListener("abort", () => resolve(false), { once: true });
    }),
    async *[Symbol.asyncIterator]() {
      for (;;) {
        for (let m = messages.shift(); m !== undefined; m = messages.shift()) yield m;
        signal?.throwIfAborted();
        if (over) return;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
