import { refusalIn, refusalOf, SkeinError } from "./error.js";
import { pause } from "./pause.js";

/** How a client reaches Skein. */
export interface Options {
  /** Where Skein serves HTTP; `http://127.0.0.1:8420` if absent. */
  url?: string;
  /** An API key or a token of an identity provider, or what returns one. At a desk it is not needed. */
  key?: string | (() => string | Promise<string>);
  /** The tenant, at a desk that serves several. */
  tenant?: string;
  /** Sends requests; the platform's fetch if absent. */
  fetch?: typeof fetch;
  /** Opens sockets; the platform's WebSocket if absent. Node has one since version 22. */
  WebSocket?: typeof WebSocket;
  /** How many milliseconds a request may take with its repeats; 30,000 if absent. */
  timeout?: number;
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
}

/** A server-sent event. */
export interface Frame {
  id: string;
  event: string;
  data: string;
}

/** A request of HTTP. */
export interface Request {
  method?: string;
  headers?: Record<string, string>;
  body?: BodyInit;
  signal?: AbortSignal | undefined;
  once?: boolean; // a body that can be sent once only
}

const defaultURL = "http://127.0.0.1:8420";

/** Sends requests, and repeats those that nobody answered: commands have an id, which makes that safe. */
export class Connection {
  readonly url: string;
  readonly #options: Options;
  #seq = 0; // the greatest that was acknowledged

  constructor(options: Options) {
    this.#options = options;
    this.url = (options.url ?? defaultURL).replace(/\/+$/, "");
    // A browser takes a path of its page's server too.
    if (!/^(https?:\/\/[^/]|\/|$)/.test(this.url)) throw new TypeError(`the url ${JSON.stringify(this.url)} is not one of HTTP; write it like ${defaultURL}`);
  }

  /** Notes that a commit was acknowledged: later queries show it. */
  noteSeq(seq: number | undefined): void {
    this.#seq = Math.max(this.#seq, seq ?? 0);
  }

  get webSocket(): typeof WebSocket | undefined {
    return this.#options.WebSocket ?? globalThis.WebSocket;
  }

  get hasKey(): boolean {
    return this.#options.key !== undefined;
  }

  async #headers(more: Record<string, string>): Promise<Headers> {
    const headers = new Headers(more);
    const { key, tenant } = this.#options;
    const set = (name: string, value: string) => {
      if (!/^[ -~]*$/.test(value)) throw new SkeinError("invalid_request", `the header ${name} has a character that is not allowed in it: is its value what you meant?`);
      headers.set(name, value);
    };
    if (key !== undefined) set("Authorization", `Bearer ${(typeof key === "function" ? await key() : key).trim()}`);
    if (tenant !== undefined) set("Skein-Tenant", tenant);
    if (this.#seq > 0) set("Skein-Min-Seq", String(this.#seq));
    return headers;
  }

  async #once(path: string, r: Request): Promise<Response> {
    const send = this.#options.fetch ?? globalThis.fetch;
    const init: RequestInit & { duplex?: "half" } = { method: r.method ?? "GET", headers: await this.#headers(r.headers ?? {}) };
    if (r.body !== undefined) init.body = r.body;
    if (r.body instanceof ReadableStream) init.duplex = "half"; // a stream is sent before it is answered
    if (r.signal) init.signal = r.signal;
    return send(this.url + path, init);
  }

  /** Sends a request until it is answered for good, and returns what is read of the answer. */
  async request<T = Response>(path: string, r: Request = {}, read: (answer: Response) => T | Promise<T> = (answer) => answer as T): Promise<T> {
    const timeout = AbortSignal.timeout(this.#options.timeout ?? 30_000);
    const signal = r.signal ? AbortSignal.any([r.signal, timeout]) : timeout;
    for (let failures = 0, last: unknown; ; failures++) {
      let after = 0;
      try {
        const answer = await this.#once(path, { ...r, signal });
        if (answer.ok || answer.status === 304) return await read(answer);
        const refusal = await refusalOf(answer);
        if (!refusal.retry || r.once) throw refusal;
        after = retryAfter(answer);
        last = refusal;
      } catch (error) {
        if (r.signal?.aborted) throw r.signal.reason;
        if (error instanceof SkeinError && !error.retry) throw error;
        last = timeout.aborted ? (last ?? error) : error;
        if (r.once || timeout.aborted) throw unanswered(path, last);
      }
      await pause(failures, after, signal).catch(() => undefined);
      if (r.signal?.aborted) throw r.signal.reason;
      if (timeout.aborted) throw unanswered(path, last);
    }
  }

  /** Sends JSON, and returns that of the answer. */
  async json<T>(method: string, path: string, body: unknown, o: CallOptions & { headers?: Record<string, string> } = {}): Promise<T> {
    const r: Request = { method, headers: { ...o.headers }, signal: o.signal };
    if (body !== undefined) {
      r.body = JSON.stringify(body);
      r.headers!["Content-Type"] = "application/json";
    }
    return this.request(path, r, (answer) => answer.json() as Promise<T>);
  }

  /**
   * Follows a stream of server-sent events, and resumes it where it broke off, after the last id. It
   * ends when the server ends it and `over` says that this is the end. A frame that tells of an error
   * is thrown, or resumed after, where that may help.
   */
  async *stream(path: string, r: Request & { lastId?: string; log?: string; opened?: () => void }, over: (last: Frame | undefined) => boolean): AsyncGenerator<Frame> {
    let id = r.lastId ?? "";
    let log = r.log ?? "";
    let last: Frame | undefined;
    for (let failures = 0; ; ) {
      const broken = new AbortController(); // so that a reader that leaves ends the request
      const signal = r.signal ? AbortSignal.any([r.signal, broken.signal]) : broken.signal;
      let after = 0;
      try {
        const headers: Record<string, string> = { ...r.headers, Accept: "text/event-stream" };
        if (id) headers["Last-Event-ID"] = id;
        if (log) headers["Skein-Log"] = log;
        const answer = await this.#once(path, { ...r, headers, signal });
        if (!answer.ok || !answer.body) {
          after = retryAfter(answer);
          throw await refusalOf(answer);
        }
        log = answer.headers.get("Skein-Log") ?? log;
        r.opened?.();
        for await (const frame of frames(answer.body)) {
          if (frame.event === "error") throw refusalIn(frame.data);
          failures = 0;
          last = frame;
          if (frame.id) id = frame.id;
          yield frame;
          if (over(last)) return;
        }
      } catch (error) {
        if (r.signal?.aborted) throw r.signal.reason;
        if (error instanceof SkeinError && !error.retry) throw error;
      } finally {
        broken.abort();
      }
      await pause(failures++, after, r.signal);
    }
  }
}

function unanswered(path: string, cause: unknown): SkeinError {
  if (cause instanceof SkeinError) return cause;
  return new SkeinError("unavailable", `no answer to ${path}: is Skein running there?`, 0, "", { outcome: "unknown" }, { cause });
}

/** How many milliseconds an answer asks to wait before the next attempt. */
function retryAfter(answer: Response): number {
  return Number(answer.headers.get("Retry-After") ?? 0) * 1000;
}

/** Decodes server-sent events. A frame that the end of the body cuts off is dropped. */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.getReader();
  const text = new TextDecoder();
  let rest = "";
  let frame: Frame = { id: "", event: "message", data: "" };
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += text.decode(value, { stream: true });
      let end: number;
      while ((end = rest.search(/\r\n|\n|\r(?!$)/)) >= 0) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + (rest.startsWith("\r\n", end) ? 2 : 1));
        if (line === "") {
          if (data.length > 0) yield { ...frame, data: data.join("\n") };
          frame = { id: "", event: "message", data: "" };
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const said = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "id") frame.id = said;
        else if (name === "event") frame.event = said;
        else if (name === "data") data.push(said);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
