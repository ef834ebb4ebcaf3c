import { SkeinError } from "./error.js";

/** What is used of a message of NATS. */
export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: { get(name: string): string } | undefined;
}

/** What is used of a connection of `@nats-io/nats-core` 3, which the caller makes and closes. */
export interface NatsConnection {
  readonly info?: { readonly max_payload: number } | undefined;
  request(subject: string, payload: Uint8Array, options: { timeout: number; headers?: never }): Promise<NatsMessage>;
  subscribe(subject: string, options: { callback: (error: Error | null, message: NatsMessage) => void }): { unsubscribe(): void };
  status(): AsyncIterable<{ readonly type: string; readonly error?: Error }>;
  isClosed(): boolean;
}

/**
 * The headers of a request: how many milliseconds its sender waits, so that Skein waits no longer. A
 * connection uses their encoding alone, and only functions of `@nats-io/nats-core` make its MsgHdrs: so
 * they have no type that is declared.
 */
export function waitHeaders(ms: number): never {
  const encoded = new TextEncoder().encode(`NATS/1.0\r\nSkein-Wait-Ms: ${Math.max(1, Math.floor(ms))}\r\n\r\n`);
  return { encode: () => encoded } as never;
}

/** What happened to a connection: it is there again, it is closed, or the server denied something. */
export interface Change {
  type: "reconnect" | "close" | "denied";
  error?: Error;
}

/** Tells those who listen what happens to a connection, which is watched while somebody listens. */
export class Changes {
  readonly #nc: NatsConnection;
  readonly #listeners = new Set<(change: Change) => void>();
  #status: (AsyncIterable<unknown> & { stop?(): void }) | undefined;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /** Calls a listener until the returned function is called. */
  listen(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    if (!this.#status) void this.#watch();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0 || !this.#status?.stop) return;
      this.#status.stop();
      this.#status = undefined;
    };
  }

  async #watch(): Promise<void> {
    const status = this.#nc.status();
    this.#status = status;
    for await (const { type, error } of status) {
      if (type === "reconnect") this.#tell({ type });
      if (error && denial(error)) this.#tell({ type: "denied", error });
    }
    if (this.#status !== status) return; // nobody listened
    this.#status = undefined;
    this.#tell({ type: "close" });
  }

  #tell(change: Change): void {
    for (const listener of [...this.#listeners]) listener(change);
  }
}

/** The error of an operation that the connection failed, for the operation on a subject. */
export function failure(error: unknown, subject: string): SkeinError {
  if (error instanceof SkeinError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const denied = deniedIn(cause);
  if (denied) return denied;
  const { name, message } = cause instanceof Error ? cause : { name: "", message: String(cause) };
  switch (name) {
    case "NoRespondersError":
      return new SkeinError("unavailable", `no responders on ${subject}: is skein serve running on this server?`, 0, "", {}, { cause });
    case "ClosedConnectionError":
    case "DrainingConnectionError":
      return closed(cause);
  }
  return new SkeinError("unavailable", `no answer on ${subject}: ${message}`, 0, "", { outcome: "unknown" }, { cause });
}

/** The error of what needs a connection that is open. */
export function closed(cause?: unknown): SkeinError {
  return new SkeinError("unavailable", "the connection is closed: make another one, and another Skein with it", 0, "", {}, { cause });
}

/** The subject and the kind of what the server denied, if an error says that it did. */
export function denial(error: unknown): { kind: string; subject: string } | undefined {
  const said = error instanceof Error ? /permissions violation for (publish|subscription) to "([^"]+)"/i.exec(error.message) : null;
  return said ? { kind: said[1]!.toLowerCase(), subject: said[2]! } : undefined;
}

function deniedIn(error: unknown): SkeinError | undefined {
  const denied = denial(error);
  if (!denied) return undefined;
  const { kind, subject } = denied;
  const what = kind === "publish" ? `publish on ${subject}` : `subscribe to ${subject}`;
  const hint = subject.startsWith("_INBOX.") ? ": connect with the inboxPrefix that skein access user prints" : "";
  return new SkeinError("forbidden", `these credentials may not ${what}${hint}`, 403, "", {}, { cause: error });
}
