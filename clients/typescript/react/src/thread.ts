import type { CommandOptions, Commands, Item, Queries, Reply, Thread } from "@skein-threads/client";
import { SkeinError } from "@skein-threads/client";
import { useCallback, useMemo } from "react";
import { nameOf, useFollowed } from "./follow.js";
import { useSkein } from "./provider.js";

/** The document of a thread. */
export type ThreadDocument = Queries["thread.get"]["answer"];

/** What {@link useThread} shows of a thread. */
export interface ThreadOptions {
  /** How many of the newest items; 100 if absent, at most 1,000. */
  limit?: number;
}

/** A thread, as it is now. */
export interface LiveThread {
  /** Its document; undefined while it is loaded, and where there is none. */
  thread: ThreadDocument | undefined;
  /** Its newest items, oldest first. */
  items: Item[];
  loading: boolean;
  /** Why it cannot be read; of a deleted thread a `not_found`. */
  error: Error | undefined;
  /** Executes a command on the thread. */
  send: <C extends keyof Commands>(name: C, data: Commands[C], options?: CommandOptions) => Promise<Reply>;
}

/** A thread and its items, by its id or by `key:` and its key, live. */
export function useThread(ref: string, { limit = 100 }: ThreadOptions = {}): LiveThread {
  const skein = useSkein();
  const { value, error } = useFollowed(`${nameOf(skein)} ${limit} ${ref}`, (signal, changed) => {
    const thread = skein.thread(ref);
    let version = 0;
    return {
      async read() {
        const at = version > 0 ? { minVersion: version } : {};
        const [document, list] = await Promise.all([
          documentOf(thread, at, signal),
          thread.query("item.list", { limit, order: "desc", ...at }, { signal }),
        ]);
        return { thread: document, items: list.items.reverse() };
      },
      async follow() {
        ({ version } = await documentOf(thread, {}, signal));
        changed();
        for await (const e of thread.events({ after: version, signal })) {
          version = e.threadversion;
          if (e.type === "lifecycle.deleted") throw new SkeinError("not_found", "the thread was deleted", 404);
          changed();
        }
      },
    };
  });
  const send = useCallback<LiveThread["send"]>((name, data, options) => skein.thread(ref).send(name, data, options), [skein, ref]);
  return useMemo(
    () => ({ thread: value?.thread, items: value?.items ?? [], loading: !value && !error, error, send }),
    [value, error, send],
  );
}

function documentOf(thread: Thread, at: { minVersion?: number }, signal: AbortSignal): Promise<ThreadDocument> {
  return thread.query("thread.get", at, { signal });
}
