import type { EventList, EventListQuery } from "./contract.js";
import { SkeinError } from "./error.js";
import type { NatsMessage } from "./nats-connection.js";
import type { Feed } from "./nats-feed.js";
import type { NATS } from "./nats.js";
import { pause } from "./pause.js";
import type { FollowOptions, SkeinEvent, TenantEvent } from "./transport.js";

const page = 1000;
export const refills = 8; // how often what was announced is looked for in the log: a replica may lag behind
const knownThreads = 16_384;

/** An event, with the sequence in the log of its commit. */
interface Placed {
  event: SkeinEvent;
  seq: number;
}

/** Decodes a message of the timeline. What is no event is undefined. */
export function placed(m: NatsMessage): Placed | undefined {
  try {
    const event = JSON.parse(new TextDecoder().decode(m.data)) as SkeinEvent;
    const seq = Number(m.headers?.get("Skein-Seq") || NaN);
    return typeof event.type === "string" && typeof event.threadversion === "number" ? { event, seq } : undefined;
  } catch {
    return undefined;
  }
}

/** What a reader of events knows of the log, which has all of them, and of its place in it. */
interface Place<T> {
  /** No event follows. */
  over: boolean;
  /** Reads what the log has after the place, and tells when it has begun to answer. */
  stored(opened?: () => void): AsyncGenerator<T>;
  /** Whether an event comes after the place. */
  follows(e: Placed): boolean;
  /** Whether events are missing between the place and one that follows. */
  lacks(e: Placed): boolean;
  /** Moves the place to an event, and returns it if it was asked for. */
  pass(e: Placed): T[];
}

/** Merges live events with those of the log, each once and in its order. */
async function* follow<T>(feed: Feed, place: Place<T>, o: FollowOptions): AsyncGenerator<T> {
  const goesOn = () => (feed.check(), o.signal?.throwIfAborted());
  try {
    while (!place.over) {
      goesOn();
      if (feed.missed()) {
        for await (const one of place.stored(feed.begins() ? () => (goesOn(), o.opened?.()) : undefined)) {
          goesOn(); // nothing is shown of a stream that does not
          yield one;
        }
        continue;
      }
      const m = feed.take();
      const e = m && placed(m);
      if (!e) {
        if (!m) await feed.wait(o.signal);
        continue;
      }
      for (let failures = 0; failures < refills && place.follows(e) && place.lacks(e); failures++) {
        if (failures > 0) await pause(Math.min(failures, 4), 0, o.signal);
        yield* place.stored();
      }
      if (!place.over && place.follows(e)) yield* place.pass(e); // what the log lacks was erased
    }
  } finally {
    feed.close();
  }
}

/** Whether a type is one of those that are asked for. A pattern that none can match is refused. */
function wanted(types: string[] = []): (type: string) => boolean {
  for (const one of types) {
    if (!/^(\*|[^\s*>.]+(\.[^\s*>.]+)*(\.\*)?)$/.test(one)) {
      throw new SkeinError("invalid_request", `${JSON.stringify(one.slice(0, 80))} is not a pattern of event types; use item.created, or item.* for all of an entity`, 0, "/types");
    }
  }
  return (type) => types.length === 0 || types.some((one) => one === type || (one.endsWith("*") && type.startsWith(one.slice(0, -1))));
}

const isStored = (type: string) => type !== "chunk.emitted";

/** Reads the events of a thread. */
export async function* readThread(nats: NATS, ref: string, o: FollowOptions & { after?: number }): AsyncGenerator<SkeinEvent> {
  const wants = wanted(o.types);
  const thread = await nats.threadId(ref, o);
  yield* follow(nats.feed(thread, isStored), new ThreadPlace(nats, thread, o, wants), o);
}

/** A place among the events of a thread, whose versions have no gaps. */
class ThreadPlace implements Place<SkeinEvent> {
  over = false;
  #version: number;
  #log: string | undefined;
  #begun = false;

  constructor(
    readonly nats: NATS,
    readonly thread: string,
    readonly o: FollowOptions & { after?: number },
    readonly wants: (type: string) => boolean,
  ) {
    this.#version = o.after ?? 0;
    this.#log = o.log;
  }

  follows({ event }: Placed): boolean {
    return event.threadversion > this.#version;
  }

  lacks({ event }: Placed): boolean {
    return event.threadversion > this.#version + 1;
  }

  pass({ event }: Placed): SkeinEvent[] {
    this.#version = event.threadversion;
    this.over = event.type === "lifecycle.deleted";
    return this.wants(event.type) ? [event] : [];
  }

  async *stored(opened?: () => void): AsyncGenerator<SkeinEvent> {
    for (let from: number | undefined = this.#version + 1; from !== undefined; ) {
      const ask: EventListQuery = { threadId: this.thread, fromVersion: from, limit: page, ...(this.#log !== undefined && { log: this.#log }) };
      const list: EventList = await this.nats.patiently("event.list", ask, { signal: this.o.signal, begun: this.#begun });
      this.#begun = true;
      this.#log ??= list.log;
      opened?.();
      opened = undefined;
      for (const event of list.events as SkeinEvent[]) {
        yield* this.pass({ event, seq: NaN });
        if (this.over) return;
      }
      if (list.events.length === 0 && from === this.o.after! + 1) await this.#last(); // nothing came after what was seen before
      from = list.nextVersion;
      this.#version = Math.max(this.#version, (from ?? 1) - 1);
    }
  }

  /** Ends where the event that was seen last is that the thread was deleted. */
  async #last(): Promise<void> {
    if (this.#version === 0) return;
    const ask: EventListQuery = { threadId: this.thread, fromVersion: this.#version, limit: 1, ...(this.#log !== undefined && { log: this.#log }) };
    const { events }: EventList = await this.nats.patiently("event.list", ask, { signal: this.o.signal, begun: true });
    this.over = (events as SkeinEvent[])[0]?.type === "lifecycle.deleted";
  }
}

/** Reads the events of the tenant. */
export async function* readTenant(nats: NATS, o: FollowOptions & { after?: string }): AsyncGenerator<TenantEvent> {
  const place = new TenantPlace(nats, o, wanted(o.types));
  const feed = nats.feed("*", isStored);
  try {
    if (o.after === undefined) {
      feed.begins();
      feed.missed(); // nothing: what is committed after the end of the log comes live, or is missed from here on
      await place.begin();
      feed.check();
      o.opened?.();
    }
  } catch (error) {
    feed.close();
    throw error;
  }
  yield* follow(feed, place, o);
}

/** A place in the log. */
class TenantPlace implements Place<TenantEvent> {
  readonly over = false;
  #seq = 0; // of the last commit that was passed, whole or in part
  #version = Infinity; // of the last event in that commit, if it was not passed whole
  #index = -1; // of that event
  #log: string | undefined;
  #begun = false;
  readonly #after: { seq: number; index: number }; // what is up to there is left out
  readonly #versions = new Map<string, number>(); // the last ones that were seen

  constructor(
    readonly nats: NATS,
    readonly o: FollowOptions & { after?: string },
    readonly wants: (type: string) => boolean,
  ) {
    const given = /^(\d{1,15})(?:\.(\d{1,15})(?:\.([A-Za-z0-9][A-Za-z0-9_-]{0,63}))?)?$/.exec(o.after ?? "0");
    if (!given) throw new SkeinError("invalid_request", `after is ${JSON.stringify(String(o.after).slice(0, 40))}; it takes the position of an event`, 0, "/after");
    this.#after = { seq: Number(given[1]), index: Number(given[2] ?? Infinity) };
    this.#seq = Math.max(this.#after.seq, 1) - 1;
    this.#log = given[3] ?? o.log;
  }

  /** Moves the place to the end of the log. */
  async begin(): Promise<void> {
    const { lastSeq, log } = await this.nats.patiently("history.get", {}, { signal: this.o.signal, begun: false });
    if (this.#log !== undefined && log !== undefined && this.#log !== log) {
      throw new SkeinError("position_ahead", `the log is ${log}, not ${this.#log}: it was restored`, 409, "", { log, seq: lastSeq });
    }
    this.#seq = lastSeq;
    this.#log = log;
    this.#begun = true;
  }

  follows({ event, seq }: Placed): boolean {
    return seq > this.#seq || (seq === this.#seq && event.threadversion > this.#version);
  }

  lacks({ event, seq }: Placed): boolean {
    const last = seq === this.#seq ? this.#version : this.#versions.get(event.threadid);
    return last !== undefined && event.threadversion !== last + 1;
  }

  pass({ event, seq }: Placed): TenantEvent[] {
    const index = seq === this.#seq ? this.#index + 1 : 0;
    [this.#seq, this.#version, this.#index] = [seq, event.threadversion, index];
    if (this.#versions.size >= knownThreads) this.#versions.clear(); // which only delays that a gap is noticed
    this.#versions.set(event.threadid, event.threadversion);
    const seen = seq < this.#after.seq || (seq === this.#after.seq && index <= this.#after.index);
    if (seen || !/^(T-|thrd_)/.test(event.threadid) || !this.wants(event.type)) return [];
    return [{ position: `${seq}.${index}${this.#log ? `.${this.#log}` : ""}`, event }];
  }

  #passed(seq: number): void {
    if (seq >= this.#seq) [this.#seq, this.#version] = [seq, Infinity];
  }

  async *stored(opened?: () => void): AsyncGenerator<TenantEvent> {
    for (let more = true; more; ) {
      const whole = this.#version === Infinity;
      const ask = { ...(whole ? { fromSeq: this.#seq + 1 } : { fromSeq: this.#seq, afterVersion: this.#version }), limit: page, ...(this.#log !== undefined && { log: this.#log }) };
      const { entries, nextSeq, log } = await this.nats.patiently("history.list", ask, { signal: this.o.signal, begun: this.#begun });
      this.#begun = true;
      this.#log ??= log;
      opened?.();
      opened = undefined;
      for (const { seq, event, threadId } of entries) {
        const e = { event: event as SkeinEvent, seq };
        if (event === undefined) this.#passed(seq), this.#versions.delete(threadId ?? ""); // it cannot be read
        else if (this.follows(e)) yield* this.pass(e);
      }
      if (entries.length > 0 && !(nextSeq! <= this.#seq)) this.#passed(this.#seq); // the last commit was passed whole
      if (nextSeq! > this.#seq + 1) this.#passed(nextSeq! - 1);
      more = nextSeq !== undefined;
    }
  }
}
