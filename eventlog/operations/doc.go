// Package operations keeps what operators' programs report of audits and backups.
//
// # What it promises
//
//   - A report that was acknowledged is stored, and outlives every process: in the bucket
//     operations, which holds the last [Kept] of each kind. The server drops older ones.
//   - What is stored was validated, is at most [events.MaxOperationBytes] long, and says when it
//     was received: see [events.ParseOperation].
//   - [Report] ends with its context, whatever the server does.
//
// # What it does not
//
// A report is the claim of who sent it. That only operators can send one, and ask for them, is
// what the server's permissions say: no tenant's account imports the subjects. The bucket is not
// derived, and not in backups: reports on the log before a restore do not apply to the restored one.
//
// # What may enter
//
// What reads or writes the bucket, and both sides of its requests.
package operations
