import type { Commands, Execution, Streamed } from "@skein-threads/client";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { nameOf, useFollowed } from "./follow.js";
import { useSkein } from "./provider.js";

/** Where a run is: none was seen, it works, it waits for a person, or it is over. */
export type RunStatus = "idle" | "running" | "waiting" | "completed" | "failed";

/** The newest run of a thread's agent. */
export interface Run {
  status: RunStatus;
  /** What the model has said in it so far; empty of a run that was over before the component was there. */
  text: string;
  /** What it thought. */
  reasoning: string;
  execution: Execution | undefined;
  /** Why the run cannot be followed. Why it failed is in its execution. */
  error: Error | undefined;
  /** Has the agent react. */
  start: (data: Commands["thread.react"]) => Promise<void>;
  /** Cancels the run. */
  stop: () => Promise<void>;
}

interface Said {
  id: string;
  text: string;
  reasoning: string;
}

const silence: Said = { id: "", text: "", reasoning: "" };
const types = ["run.*", "approval.*", "execution.*", "lifecycle.deleted"];

/**
 * The newest run of a thread, whoever began it: what its model says while it says it, from the
 * beginning, and how it ends. A component that leaves does not end the run.
 */
export function useRun(ref: string): Run {
  const skein = useSkein();
  const key = `${nameOf(skein)} ${ref}`;
  const { value, error } = useFollowed(key, (signal, changed) => {
    const thread = skein.thread(ref);
    let version = 0;
    return {
      async read() {
        const { executions } = await thread.query("execution.list", { order: "desc", limit: 1, minVersion: version }, { signal });
        return { execution: executions[0] };
      },
      async follow() {
        ({ version } = await thread.query("thread.get", {}, { signal }));
        changed();
        for await (const e of thread.events({ after: version, types, signal })) {
          version = e.threadversion;
          changed();
        }
      },
    };
  });
  const execution = value?.execution;
  const said = useSaid(key, ref, value !== undefined, execution);
  const start = useCallback<Run["start"]>(async (data) => void (await skein.thread(ref).send("thread.react", data)), [skein, ref]);
  const stop = useCallback(async () => void (await skein.thread(ref).send("run.cancel", {})), [skein, ref]);
  return useMemo(
    () => ({ status: statusOf(execution), text: said.text, reasoning: said.reasoning, execution, error, start, stop }),
    [execution, said, error, start, stop],
  );
}

/** What is said in a run: in one that was going on when the thread was first read, or begins later. */
function useSaid(key: string, ref: string, known: boolean, execution: Execution | undefined): Said {
  const skein = useSkein();
  const [said, setSaid] = useState(silence);
  const before = useRef({ key: "", id: "" }); // the run that was over at first
  if (known && before.current.key !== key) before.current = { key, id: execution && execution.status !== "executing" ? execution.id : "" };
  const id = execution?.id ?? "";
  useEffect(() => {
    if (id === "" || before.current.id === id) return;
    const stop = new AbortController();
    const follow = async () => {
      setSaid({ ...silence, id });
      for await (const e of skein.thread(ref).chunks({ execution: id, signal: stop.signal })) {
        if (!stop.signal.aborted) setSaid((s) => heard(s, e));
      }
    };
    follow().catch(() => undefined); // the run itself tells how it is
    return () => stop.abort();
  }, [skein, ref, id]);
  return said.id === id ? said : silence;
}

function heard(s: Said, e: Streamed): Said {
  if (e.type !== "chunk") return s;
  const delta = (e.chunk.data as { delta?: unknown } | undefined)?.delta;
  if (typeof delta !== "string") return s;
  if (e.chunk.type === "text-delta") return { ...s, text: s.text + delta };
  return e.chunk.type === "reasoning-delta" ? { ...s, reasoning: s.reasoning + delta } : s;
}

function statusOf(e: Execution | undefined): RunStatus {
  if (!e) return "idle";
  if (e.status !== "executing") return e.status;
  return e.waiting?.length ? "waiting" : "running";
}
