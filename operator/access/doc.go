// Package access makes the accounts, users and credentials of a NATS server for
// Skein, in operator mode: what anybody may do stands in signed tokens (JWT),
// which the server checks and no client can change.
//
// # The model
//
//   - Skein has an account of its own. Its streams, buckets and services are
//     there, and nobody else is but administrators, who may do everything.
//   - Every tenant has an account of its own. It imports its tenant's commands,
//     queries, files, timeline and live events from Skein's account, and sees
//     nothing else: not even that there are other tenants. It has no JetStream.
//   - Gateways have an account of their own. It imports what tenants import, of every
//     tenant, and the API keys that a gateway names.
//   - Reactors, tools and effects are in the account of the workers, auditors in
//     that of the audit.
//
// Permissions alone, in one account for all, would not do. The server sends an
// answer to whatever reply subject a request names, in the name of the
// replier: with the right to ask one question, a user could have the answer
// stored in the log of another tenant. Across accounts the server replaces the
// reply subject, and the answer can only come back. For the same reason no user
// outside Skein's account may make a consumer: its deliver subject is in the
// body of the request, where no permission can check it.
//
// # What it promises
//
//   - A folder that Init has made holds all that a server needs. Its files are
//     written whole or not at all, and are readable by their owner only.
//   - A user that was added can connect at once; no server needs to be told,
//     unless its tenant is new. Who was revoked, or is of a new tenant, is known
//     to the server when it has read the folder again.
//   - Secrets are in the folders keys, creds and tls, and nowhere else. They are
//     not in errors, and nothing here logs.
//
// # What it does not
//
// It does not talk to the server. It does not guard the folder: any process that
// reads keys/ can create any user.
package access
