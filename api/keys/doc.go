// Package keys authenticates requests by API keys, skein_ID_SECRET, which a file of the
// access folder lists.
//
// # What it promises
//
//   - The file has the SHA-256 of a key's secret, never the secret, which has 256 bits.
//     Comparisons take the same time wherever they differ.
//   - A change of the file takes effect within a second, without a signal: what a revoked or
//     expired key is doing ends. The operating system tells of the change, and gateways are told
//     by the answer to a request that waits for it; who is told nothing looks a few times a second.
//
// # What it does not
//
// It changes no file but that of the last uses. `skein access key` writes the list.
package keys
