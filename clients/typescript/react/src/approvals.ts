import type { Approval } from "@skein-threads/client";
import { useCallback, useMemo } from "react";
import { nameOf, useFollowed } from "./follow.js";
import { useSkein } from "./provider.js";

/** Which approvals {@link useApprovals} shows. */
export interface ApprovalsOptions {
  /** Only those of this agent. */
  agentId?: string;
  /** How many; 50 if absent, at most 1,000. */
  limit?: number;
}

/** The calls that wait for a person. */
export interface Approvals {
  approvals: Approval[];
  loading: boolean;
  error: Error | undefined;
  /** Has the call be made, with other arguments if there are some. */
  grant: (a: Approval, args?: Record<string, unknown>) => Promise<void>;
  /** Refuses the call. */
  deny: (a: Approval, comment?: string) => Promise<void>;
  /** Answers a question, or supplies the result of the call. */
  resolve: (a: Approval, result: unknown) => Promise<void>;
}

const types = ["approval.*", "run.*", "execution.*", "lifecycle.deleted"];

/** The calls of the tenant that wait for a person, live. The client's key must read the tenant's events. */
export function useApprovals({ agentId, limit = 50 }: ApprovalsOptions = {}): Approvals {
  const skein = useSkein();
  const { value, error } = useFollowed(JSON.stringify([nameOf(skein), agentId, limit]), (signal, changed) => {
    let minSeq = 0;
    return {
      async read() {
        const ask = { limit, ...(agentId !== undefined && { agentId }), ...(minSeq > 0 && { minSeq }) };
        return (await skein.query("approval.list", ask, { signal })).approvals;
      },
      async follow() {
        for await (const { position } of skein.events({ types, signal, opened: changed })) {
          minSeq = Number.parseInt(position, 10);
          changed();
        }
      },
    };
  });
  const send = useCallback(
    async (a: Approval, answer: { grant?: boolean; deny?: boolean; reason?: string; result?: unknown; arguments?: Record<string, unknown> }) =>
      void (await skein.thread(a.threadId).send("approval.resolve", { callId: a.callId, ...answer })),
    [skein],
  );
  const grant = useCallback<Approvals["grant"]>((a, args) => send(a, { grant: true, ...(args && { arguments: args }) }), [send]);
  const deny = useCallback<Approvals["deny"]>((a, reason) => send(a, { deny: true, ...(reason !== undefined && { reason }) }), [send]);
  const resolve = useCallback<Approvals["resolve"]>((a, result) => send(a, { result }), [send]);
  return useMemo(
    () => ({ approvals: value ?? [], loading: !value && !error, error, grant, deny, resolve }),
    [value, error, grant, deny, resolve],
  );
}
