/**
 * Hooks of React for Skein: a live thread, a run and its answer, and approvals.
 *
 * @packageDocumentation
 */
export { SkeinProvider, useSkein } from "./provider.js";
export { useThread } from "./thread.js";
export type { LiveThread, ThreadDocument, ThreadOptions } from "./thread.js";
export { useRun } from "./run.js";
export type { Run, RunStatus } from "./run.js";
export { useApprovals } from "./approvals.js";
export type { Approvals, ApprovalsOptions } from "./approvals.js";
