import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  compareWritesSortKeys,
  copyCheckpoint,
  getCheckpointId,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  writesSortKey,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { Skein, type Options } from "@skein-threads/client";
import { each, keyOf, longest, namesOf, Pairs, type Stored } from "./pairs.js";

/** How a {@link SkeinSaver} reaches Skein, and where it keeps what it saves. */
export interface SaverOptions extends Options {
  /** A client to use, in place of the other options. */
  client?: Skein;
  /** The bucket of key-value pairs with the ids of the threads, which begins the names of theirs; `langgraph` if absent. */
  bucket?: string;
  /** Serializes checkpoints; LangGraph's own if absent. */
  serde?: SerializerProtocol;
}

/** Which checkpoint stored the value of each channel: an unchanged value is not stored again. */
type Owners = Record<string, string>;

/** A checkpoint as it is stored, without the values of its channels. */
interface Saved {
  checkpoint: Stored;
  metadata: Stored;
  parent?: string;
  owners: Owners;
}

/** A write as it is stored. */
interface SavedWrite {
  channel: string;
  path: string;
  value: Stored;
}

/** A checkpoint by its names. */
interface Place {
  thread: string;
  namespace: string;
  id: string;
}

const remembered = 1000; // threads

/**
 * Keeps the checkpoints of LangGraph in the key-value pairs of Skein. Writes to a thread by several
 * processes at once, and a process that is killed, leave every checkpoint either whole or unseen.
 */
export class SkeinSaver extends BaseCheckpointSaver {
  readonly #skein: Skein;
  readonly #bucket: string;
  /** What this saver put last into each namespace of a thread. */
  readonly #recent = new Map<string, { id: string; owners: Owners }>();

  constructor(options: SaverOptions = {}) {
    super(options.serde);
    this.#skein = options.client ?? new Skein(options);
    this.#bucket = options.bucket ?? "langgraph";
  }

  /** The checkpoint that a configuration names, or the newest of its namespace. */
  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, namespace } = placeOf(config);
    if (thread === undefined) return undefined;
    const id = getCheckpointId(config);
    if (id) return this.#tuple({ thread, namespace, id });
    let newest: { id: string; saved: Saved } | undefined;
    for await (const [pair] of this.#of(thread).list<Saved>(keyOf("c", namespace, ""), "desc", 1)) {
      if (pair) newest = { id: namesOf(pair.key)[2]!, saved: pair.value };
      break;
    }
    const mine = this.#recent.get(keyOf(thread, namespace)); // a list may lag on a cluster
    if (mine && mine.id > (newest?.id ?? "")) {
      const tuple = await this.#tuple({ thread, namespace, id: mine.id });
      if (tuple) return tuple;
    }
    return newest && this.#tuple({ thread, namespace, id: newest.id }, newest.saved);
  }

  /** Checkpoints, of each namespace the newest first. */
  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread, id } = placeOf(config);
    let left = options.limit ?? Infinity;
    for await (const of of thread === undefined ? this.#threads() : [thread]) {
      for await (const { place, saved } of this.#saved(of, config.configurable?.["checkpoint_ns"], options)) {
        if (left <= 0) return;
        if (id && place.id !== id) continue;
        const tuple = await this.#tuple(place, saved, options.filter);
        if (tuple === undefined) continue;
        left--;
        yield tuple;
      }
    }
  }

  /** Saves a checkpoint: first the values that changed, and then what refers to them. */
  override async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions): Promise<RunnableConfig> {
    const { thread, namespace, id: parent } = placeOf(config);
    const pairs = this.#of(needed("thread_id", thread));
    const known = parent ? await this.#ownersOf({ thread: thread!, namespace, id: parent }) : {};
    await this.#introduce(thread!);
    const { channel_values, ...rest } = copyCheckpoint(checkpoint);
    const owners: Owners = {};
    await each(Object.entries(channel_values), async ([channel, value]) => {
      const inherited = known?.[channel];
      if (!(channel in newVersions) && inherited !== undefined) {
        owners[channel] = inherited;
      } else if (channel in newVersions || parent) {
        await pairs.set(keyOf(namespace, checkpoint.id, channel), await pairs.dump(value), { bucket: pairs.values });
        owners[channel] = checkpoint.id;
      }
    });
    const half = longest / 2; // both are in one pair
    const saved: Saved = { checkpoint: await pairs.dump(rest, half), metadata: await pairs.dump(metadata, half), owners, ...(parent && { parent }) };
    await pairs.set(keyOf("c", namespace, checkpoint.id), saved);
    this.#remember(keyOf(thread!, namespace), { id: checkpoint.id, owners });
    return configOf({ thread: thread!, namespace, id: checkpoint.id });
  }

  /** Saves what a task wrote. Of repeated writes the first counts; of errors, interrupts and the like the last. */
  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const { thread, namespace, id } = placeOf(config);
    const pairs = this.#of(needed("thread_id", thread));
    needed("checkpoint_id", id);
    await this.#introduce(thread!);
    await each([...writes.entries()], async ([n, [channel, value]]) => {
      const index = WRITES_IDX_MAP[channel] ?? n;
      const write: SavedWrite = { channel, path: taskPath, value: await pairs.dump(value) };
      await pairs.set(keyOf("w", namespace, id, taskId, index), write, index < 0 ? {} : { commandId: "langgraph-write" });
    });
  }

  /** Deletes all that was saved of a thread. */
  override async deleteThread(threadId: string): Promise<void> {
    await this.#of(threadId).clear();
    await this.#skein.send("kv.delete", { bucket: this.#bucket, key: threadId });
    for (const key of this.#recent.keys()) if (namesOf(key)[0] === threadId) this.#recent.delete(key);
  }

  #of(thread: string): Pairs {
    return new Pairs(this.#skein, this.serde, this.#bucket, thread);
  }

  async #tuple(place: Place, saved?: Saved, filter: Record<string, unknown> = {}): Promise<CheckpointTuple | undefined> {
    const pairs = this.#of(place.thread);
    saved ??= await pairs.get<Saved>(keyOf("c", place.namespace, place.id));
    if (saved === undefined) return undefined;
    const metadata = (await pairs.load(saved.metadata)) as CheckpointMetadata & Record<string, unknown>;
    if (Object.entries(filter).some(([key, value]) => metadata[key] !== value)) return undefined;
    const [rest, values, pendingWrites] = await Promise.all([
      pairs.load(saved.checkpoint) as Promise<Omit<Checkpoint, "channel_values">>,
      this.#values(pairs, place.namespace, saved.owners),
      this.#writes(pairs, place),
    ]);
    const checkpoint: Checkpoint = { ...rest, channel_values: values };
    if (checkpoint.v < 4 && saved.parent) await this.#addSends(pairs, checkpoint, { ...place, id: saved.parent });
    return {
      config: configOf(place),
      checkpoint,
      metadata,
      pendingWrites,
      ...(saved.parent && { parentConfig: configOf({ ...place, id: saved.parent }) }),
    };
  }

  async #values(pairs: Pairs, namespace: string, owners: Owners): Promise<Record<string, unknown>> {
    const loaded = await each(Object.entries(owners), async ([channel, owner]) => {
      const stored = await pairs.get<Stored>(keyOf(namespace, owner, channel), pairs.values);
      if (stored === undefined) throw new Error(`the value of channel ${channel} of checkpoint ${owner} is missing: was the thread deleted meanwhile?`);
      return [channel, await pairs.load(stored)] as const;
    });
    return Object.fromEntries(loaded);
  }

  async #writes(pairs: Pairs, place: Place): Promise<CheckpointPendingWrite[]> {
    const all: Array<{ task: string; index: number; write: SavedWrite }> = [];
    for await (const page of pairs.list<SavedWrite>(keyOf("w", place.namespace, place.id, ""), "asc", 1000)) {
      for (const { key, value } of page) {
        const [, , , task, index] = namesOf(key);
        all.push({ task: task!, index: Number(index), write: value });
      }
    }
    const sortKey = (w: (typeof all)[number]) => writesSortKey(w.write.path, w.task, w.index);
    all.sort((a, b) => compareWritesSortKeys(sortKey(a), sortKey(b)));
    return each(all, async ({ task, write }) => [task, write.channel, await pairs.load(write.value)]);
  }

  /** Adds to a checkpoint of an older format what the tasks of its parent sent. */
  async #addSends(pairs: Pairs, checkpoint: Checkpoint, parent: Place): Promise<void> {
    const sent = (await this.#writes(pairs, parent)).filter(([, channel]) => channel === TASKS);
    checkpoint.channel_values[TASKS] = sent.map(([, , value]) => value);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  /** The checkpoints of a thread before a configuration, as they are stored. */
  async *#saved(thread: string, namespace: string | undefined, { before, limit }: CheckpointListOptions) {
    const least = before && getCheckpointId(before);
    const prefix = namespace === undefined ? keyOf("c", "") : keyOf("c", namespace, "");
    for await (const page of this.#of(thread).list<Saved>(prefix, "desc", Math.max(1, Math.min(limit ?? 100, 100)))) {
      for (const { key, value: saved } of page) {
        const [, namespace, id] = namesOf(key);
        if (!least || id! < least) yield { place: { thread, namespace: namespace!, id: id! }, saved };
      }
    }
  }

  async *#threads(): AsyncGenerator<string> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.#skein.query("kv.list", { bucket: this.#bucket, limit: 1000, ...(cursor !== undefined && { cursor }) });
      yield* page.keys;
      cursor = page.nextCursor;
      if (cursor === undefined) return;
    }
  }

  /** Notes that there is a thread. */
  async #introduce(thread: string): Promise<void> {
    const key = keyOf(thread);
    if (this.#recent.has(key)) return;
    await this.#skein.send("kv.set", { bucket: this.#bucket, key: thread, value: true });
    this.#remember(key, { id: "", owners: {} });
  }

  /** Who stored the values of a checkpoint; undefined if it is unknown. */
  async #ownersOf(place: Place): Promise<Owners | undefined> {
    const recent = this.#recent.get(keyOf(place.thread, place.namespace));
    if (recent?.id === place.id) return recent.owners;
    return (await this.#of(place.thread).get<Saved>(keyOf("c", place.namespace, place.id)))?.owners;
  }

  #remember(key: string, what: { id: string; owners: Owners }): void {
    this.#recent.delete(key);
    this.#recent.set(key, what);
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > remembered) this.#recent.delete(oldest!);
  }
}

/** What a configuration names. */
function placeOf(config: RunnableConfig): { thread: string | undefined; namespace: string; id: string } {
  const { thread_id, checkpoint_ns } = config.configurable ?? {};
  if (thread_id !== undefined && (typeof thread_id !== "string" || thread_id === "")) throw new TypeError("thread_id is not a text with characters: use one as the id of the thread");
  return { thread: thread_id, namespace: checkpoint_ns ?? "", id: getCheckpointId(config) };
}

function needed(name: string, value: string | undefined): string {
  if (!value) throw new TypeError(`configurable.${name} is missing: it says where to save`);
  return value;
}

function configOf({ thread, namespace, id }: Place): RunnableConfig {
  return { configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id } };
}
