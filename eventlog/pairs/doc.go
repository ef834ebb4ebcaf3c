// Package pairs stores the key-value pairs of tenants, a bucket for each tenant.
//
// # What it promises
//
//   - A pair that was set is stored as durably as the log, and every read shows it: reads are
//     answered by the leader of the bucket's stream. Only a listing on a cluster may lag.
//   - A command is executed once for each key: the message of a key names the last 32 commands
//     that wrote it, and a write is conditional on the message before it. So a repeat changes
//     nothing, also after another command has set or deleted the key, on any process.
//   - A key is gone when its time to live ends, to the second.
//
// # What it does not
//
// Pairs are no events: they have no history, no audit chain and no timeline. There is no
// transaction over keys. What a command with a prefix deletes, it deletes key by key.
//
// # What may enter
//
// What reads or writes the buckets of pairs. It knows no threads.
package pairs
