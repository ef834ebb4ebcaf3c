/**
 * The client of Skein: typed commands, queries, events and streams over HTTP, for browsers, Node, Deno
 * and Bun. `@skein-threads/client/nats` has the same over NATS.
 *
 * @packageDocumentation
 */
export { Skein, Thread } from "./client.js";
export type { CommandOptions } from "./client.js";
export type { CallOptions, Options } from "./connection.js";
export { SkeinError } from "./error.js";
export { ThreadSocket } from "./socket.js";
export type { SocketFrame, SocketOptions } from "./socket.js";
export type { ChunkOptions, CommandBody, FollowOptions, RunEvent, SkeinEvent, Streamed, TenantEvent, Transport } from "./transport.js";
export type * from "./contract.js";
