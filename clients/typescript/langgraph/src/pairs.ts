import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Skein } from "@skein-threads/client";

/** A value as it is stored: its type for the serializer, and its bytes as text, as base64, or in parts. */
export type Stored = { type: string } & ({ text: string } | { base64: string } | { in: string; parts: number });

export const longest = 380 * 1024; // of a text in a pair, which has at most 512 KiB
const longestBucket = 128; // bytes of a bucket's name
const together = 16; // requests at once

/** The key-value pairs of a thread: its checkpoints and writes in one bucket, values in another. */
export class Pairs {
  readonly #skein: Skein;
  readonly #serde: SerializerProtocol;
  readonly bucket: string;
  readonly values: string;

  constructor(skein: Skein, serde: SerializerProtocol, bucket: string, thread: string) {
    this.#skein = skein;
    this.#serde = serde;
    // Without a / in it: a thread named a/values would have the bucket of the values of another named a.
    this.bucket = `${bucket}/${thread.replace(/[%/]/g, encodeURIComponent)}`;
    this.values = `${this.bucket}/values`;
    const over = new TextEncoder().encode(this.values).length - longestBucket;
    if (over > 0) throw new Error(`configurable.thread_id is ${over} bytes too long, where / and % count thrice: ${thread.slice(0, 40)}...`);
  }

  async get<T>(key: string, bucket = this.bucket): Promise<T | undefined> {
    const { exists, value } = await this.#skein.query("kv.get", { bucket, key });
    return exists ? (value as T) : undefined;
  }

  /** Sets a key. With an id, the first of all that set the key with that id counts. */
  async set(key: string, value: unknown, o: { bucket?: string; commandId?: string } = {}): Promise<void> {
    await this.#skein.send("kv.set", { bucket: o.bucket ?? this.bucket, key, value }, o.commandId === undefined ? {} : { commandId: o.commandId });
  }

  async clear(): Promise<void> {
    for (const bucket of [this.bucket, this.values]) await this.#skein.send("kv.delete", { bucket, prefix: "" });
  }

  /** The pairs whose keys begin with a prefix, page by page. */
  async *list<T>(prefix: string, order: "asc" | "desc", limit: number): AsyncGenerator<Array<{ key: string; value: T }>> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.#skein.query("kv.list", { bucket: this.bucket, prefix, order, limit, values: true, ...(cursor !== undefined && { cursor }) });
      yield page.keys.map((key, n) => ({ key, value: page.values?.[n] as T }));
      cursor = page.nextCursor;
      if (cursor === undefined) return;
    }
  }

  /** Makes a value ready to be stored where there is so much room. A larger one is stored in parts before. */
  async dump(value: unknown, room: number = longest): Promise<Stored> {
    const [type, bytes] = await this.#serde.dumpsTyped(value);
    if (type === "json" && bytes.length <= room) {
      const text = new TextDecoder().decode(bytes);
      if (new TextEncoder().encode(JSON.stringify(text)).length <= room) return { type, text };
    }
    const base64 = toBase64(bytes);
    if (base64.length <= room) return { type, base64 };
    const id = crypto.randomUUID();
    const parts = Math.ceil(base64.length / longest);
    await each([...Array(parts).keys()], (n) => this.set(`part/${id}/${n}`, base64.slice(n * longest, (n + 1) * longest), { bucket: this.values }));
    return { type, in: id, parts };
  }

  async load(stored: Stored): Promise<unknown> {
    if ("text" in stored) return this.#serde.loadsTyped(stored.type, stored.text);
    let base64 = "base64" in stored ? stored.base64 : "";
    if ("in" in stored) {
      const parts = await each([...Array(stored.parts).keys()], (n) => this.get<string>(`part/${stored.in}/${n}`, this.values));
      if (parts.includes(undefined)) throw new Error(`a part of a value in the bucket ${this.values} is missing: was the thread deleted meanwhile?`);
      base64 = parts.join("");
    }
    const bytes = fromBase64(base64);
    return this.#serde.loadsTyped(stored.type, stored.type === "json" ? new TextDecoder().decode(bytes) : bytes);
  }
}

/** Does something for each, some at once, and returns the results in order. */
export async function each<T, R>(list: T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let n = 0; n < list.length; n += together) results.push(...(await Promise.all(list.slice(n, n + together).map(work))));
  return results;
}

/** Joins texts to a key in which each can be told from the others. */
export function keyOf(...names: Array<string | number>): string {
  return names.map((n) => encodeURIComponent(n)).join("/");
}

/** Takes such a key apart. */
export function namesOf(key: string): string[] {
  return key.split("/").map(decodeURIComponent);
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let n = 0; n < bytes.length; n += 0x8000) text += String.fromCharCode(...bytes.subarray(n, n + 0x8000));
  return btoa(text);
}

function fromBase64(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}
