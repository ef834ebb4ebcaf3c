/**
 * The client of Skein: typed commands, queries, events and streams over HTTP, for browsers, Node, Deno
 * and Bun.
 *
 * @packageDocumentation
 */
export { Skein, Thread } from "./client.js";
export type { CommandOptions, FollowOptions, RunEvent, SkeinEvent, Streamed, TenantEvent } from "./client.js";
export type { CallOptions, Options } from "./connection.js";
export { SkeinError } from "./error.js";
export { ThreadSocket } from "./socket.js";
export type { SocketFrame, SocketOptions } from "./socket.js";
export type * from "./contract.js";
