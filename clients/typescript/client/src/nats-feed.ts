import { closed, failure, type Changes, type NatsConnection, type NatsMessage } from "./nats-connection.js";

const mostMessages = 1024;
const mostBytes = 8 << 20;

/**
 * A subscription of a reader that may be slow: messages wait for it within bounds. What does not fit, or
 * may have come while the connection was lost, was missed, and is read from what stores it.
 */
export class Feed {
  readonly #waiting: NatsMessage[] = [];
  readonly #end: () => void;
  #bytes = 0;
  #missed = true; // whatever came before
  #begins = true; // and so does the stream, as it does where the connection was lost
  #failed: unknown;
  #wake = () => {};

  /** Subscribes. Only messages that are wanted wait. Close it. */
  constructor(nc: NatsConnection, changes: Changes, subject: string, wanted: (subject: string) => boolean) {
    const fail = (error: unknown) => ((this.#failed ??= error), this.#wake());
    let subscription: { unsubscribe(): void };
    try {
      subscription = nc.subscribe(subject, {
        callback: (error, m) => {
          if (error) fail(failure(error, subject));
          else if (wanted(m.subject)) this.#add(m);
        },
      });
    } catch (error) {
      throw failure(error, subject);
    }
    const unlisten = changes.listen(({ type }) => {
      if (type === "reconnect") (this.#begins = true), this.miss();
      if (type === "close") fail(closed());
    });
    this.#end = () => {
      unlisten();
      if (!nc.isClosed()) subscription.unsubscribe();
    };
  }

  #add(m: NatsMessage): void {
    if (this.#waiting.length >= mostMessages || this.#bytes + m.data.length > mostBytes) return this.miss();
    this.#waiting.push(m);
    this.#bytes += m.data.length;
    this.#wake();
  }

  /** Notes that messages were missed. */
  miss(): void {
    this.#missed = true;
    this.#wake();
  }

  /** Throws why the subscription ended, if it did. */
  check(): void {
    if (this.#failed) throw this.#failed;
  }

  /** Whether messages were missed since the last call. */
  missed(): boolean {
    this.check();
    const missed = this.#missed;
    this.#missed = false;
    return missed;
  }

  /** Whether the stream has begun, or begun again, since the last call. */
  begins(): boolean {
    const begins = this.#begins;
    this.#begins = false;
    return begins;
  }

  /** The next message, if there is one. */
  take(): NatsMessage | undefined {
    const m = this.#waiting.shift();
    this.#bytes -= m?.data.length ?? 0;
    return m;
  }

  /** Waits until there is something to do, at most for some milliseconds. It returns whether there is. */
  wait(signal: AbortSignal | undefined, ms?: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const done = (something: boolean) => (end(), resolve(something));
      const abort = () => (end(), reject(signal!.reason));
      const timer = ms === undefined ? undefined : setTimeout(() => done(false), ms);
      const end = () => ((this.#wake = () => {}), clearTimeout(timer), signal?.removeEventListener("abort", abort));
      signal?.addEventListener("abort", abort);
      this.#wake = () => done(true);
      if (this.#waiting.length > 0 || this.#missed || this.#failed) done(true);
    });
  }

  /** Unsubscribes. */
  close(): void {
    this.#end();
  }
}
