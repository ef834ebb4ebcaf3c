/**
 * A checkpointer of LangGraph that keeps checkpoints in Skein.
 *
 * @packageDocumentation
 */
export { SkeinSaver } from "./saver.js";
export type { SaverOptions } from "./saver.js";
