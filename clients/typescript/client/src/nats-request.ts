import type { CallOptions } from "./connection.js";
import { refusalIn, SkeinError } from "./error.js";
import { closed, denial, failure, waitHeaders, type Changes, type NatsConnection, type NatsMessage } from "./nats-connection.js";
import { pause } from "./pause.js";

const firstPatience = 8_000; // after this an unanswered request is given up, and sent anew
const longestPatience = 30_000; // a service gives up after it
const afterWait = 3_000; // how long an answer may take in addition to what a request waits for
const copiesAhead = 16;
const headersRoom = 64; // bytes that headers may take of what a request may have

/** Sends requests, and repeats those that nobody answered: commands have an id, which makes that safe. */
export class Requests {
  readonly #nc: NatsConnection;
  readonly #changes: Changes;
  readonly #timeout: number;
  #spent = 0; // copies that no answer stands for

  constructor(nc: NatsConnection, changes: Changes, timeout: number) {
    this.#nc = nc;
    this.#changes = changes;
    this.#timeout = timeout;
  }

  /**
   * Sends a request until it is answered for good. One that is sent singly, and may wait for so many
   * milliseconds, is not sent again before that.
   */
  async send<T>(subject: string, body: object, options: CallOptions & { singly?: number }): Promise<T> {
    options.signal?.throwIfAborted();
    const payload = new TextEncoder().encode(JSON.stringify(body));
    const most = (this.#nc.info?.max_payload ?? Infinity) - headersRoom;
    if (payload.length > most) {
      throw new SkeinError("payload_too_large", `the request has ${payload.length} bytes; at most ${most} are allowed`, 413, "", { size: payload.length, limit: most });
    }
    const deadline = performance.now() + this.#timeout;
    const timeout = AbortSignal.timeout(this.#timeout);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    let lost = false; // a request may have arrived while its answer was lost
    for (let failures = 0, patience = Math.max(firstPatience, (options.singly || 0) + afterWait), last: SkeinError | undefined; ; failures++) {
      const begun = performance.now();
      try {
        return await this.#attempt<T>(subject, payload, Math.min(patience, deadline - begun), signal, options.singly === undefined);
      } catch (error) {
        if (options.signal?.aborted) throw options.signal.reason;
        const refusal = timeout.aborted ? (last ?? failure(error, subject)) : failure(error, subject);
        lost ||= refusal.details.outcome === "unknown" || timeout.aborted;
        last = refusal;
        if (!refusal.retry) throw refusal;
        if (timeout.aborted || this.#nc.isClosed()) throw unclear(refusal, lost);
      }
      patience = Math.max(patience, Math.min(2 * (performance.now() - begun), longestPatience)); // an answer that takes longer would never come
      await pause(failures, 0, signal).catch(() => undefined);
      if (options.signal?.aborted) throw options.signal.reason;
      if (timeout.aborted) throw unclear(last, lost);
    }
  }

  /** Sends a request, and copies of it while nobody answers: one Skein of several may hang. */
  #attempt<T>(subject: string, payload: Uint8Array, patience: number, signal: AbortSignal, copies: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const until = performance.now() + patience;
      let [sent, waiting] = [0, 0];
      let timer: ReturnType<typeof setTimeout> | undefined;
      const end = () => (clearTimeout(timer), (copies = false), unlisten(), signal.removeEventListener("abort", abort));
      const fail = (error: unknown) => (end(), reject(error));
      const abort = () => fail(signal.reason);
      const unlisten = this.#changes.listen(({ type, error }) => {
        if (type === "close") fail(closed());
        if (type === "denied" && denial(error)?.subject === subject) fail(error);
      });
      signal.addEventListener("abort", abort);
      const answered = (error: unknown, value?: T) => {
        const final = !error || (error instanceof SkeinError && (!error.retry || error.code === "projection_behind"));
        if (final) this.#spent = Math.max(this.#spent - 1, 0);
        if (error instanceof SkeinError) copies = false; // somebody is there, and has too much to do
        if (--waiting > 0 && !final) return;
        end();
        if (error) reject(error);
        else resolve(value as T);
      };
      const send = () => {
        const left = until - performance.now();
        if (left <= 0) return;
        sent++;
        waiting++;
        this.#nc.request(subject, payload, { timeout: left, headers: waitHeaders(left) }).then((m) => answered(undefined, answerIn<T>(m))).catch((error) => answered(error));
        timer = setTimeout(again, repeatAfter(sent));
      };
      const again = () => {
        if (!copies) return;
        if (this.#spent < copiesAhead) this.#spent++, send();
        else timer = setTimeout(again, 1000);
      };
      send();
    });
  }
}

/** After how many milliseconds a request that was sent so often is sent again. */
function repeatAfter(sent: number): number {
  return [1000, 1000, 2000, 3000][sent - 1] ?? firstPatience;
}

/** What an answer says. A refusal is thrown. */
function answerIn<T>(m: NatsMessage): T {
  const text = new TextDecoder().decode(m.data);
  const status = m.headers?.get("Nats-Service-Error-Code");
  if (!status) return JSON.parse(text) as T;
  let refusal: SkeinError;
  try {
    refusal = refusalIn(text, Number(status));
  } catch {
    throw new SkeinError("unavailable", `the service refused with ${status}, and gave no reason`, Number(status));
  }
  throw refusal;
}

/** A refusal of a request that may have been executed. */
function unclear(e: SkeinError, lost: boolean): SkeinError {
  return lost ? new SkeinError(e.code, e.message, e.status, e.param, { ...e.details, outcome: "unknown" }, { cause: e.cause }) : e;
}
