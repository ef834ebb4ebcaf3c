// Package embedded runs nats-server inside the process, as Skein's log and bus.
//
// What it promises:
//
//   - With SyncAlways, which NewOptions sets, a message that JetStream
//     acknowledged has been fsynced: it outlives a crash of the process and of
//     the machine.
//   - One server to a store directory. nats-server itself takes no lock: two of
//     them on one directory both start, both acknowledge the same sequence
//     numbers, and the next start keeps the messages of one and silently drops
//     the rest. Start therefore holds an exclusive lock on the file skein.lock
//     in the store directory until the server has ended; the second start is
//     refused with a StoreInUseError. The kernel drops the lock when the
//     process dies, so there is never a stale one to remove.
//   - Without a configuration file (Options.Conf) there is no authentication, and
//     every client that reaches the port may read and write every tenant: then it
//     listens on loopback only. With one that has both authorization and TLS it
//     listens anywhere. Reload reads that file again.
//   - The streams of another account are not overlooked: a store whose streams
//     belong to none of Options.Account is refused.
//   - When Start returns without an error, the store has been recovered and
//     connections are accepted. When it returns an error, nothing listens and
//     the store is free again (after a StartTimeoutError: as soon as the
//     current recovery has ended).
//   - It neither installs signal handlers nor ends the process.
//
// What it does not promise:
//
//   - The lock binds those who take it. A nats-server started by hand on the
//     same directory takes none. Nor is the lock known to hold on network file
//     systems.
//   - Durability with SyncAlways turned off: then nats-server syncs every two
//     minutes, and a machine that loses power loses what was acknowledged since.
//   - High availability. It is one node, standing alone.
package embedded
