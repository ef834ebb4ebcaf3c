// Package keys authenticates requests by API keys, skein_ID_SECRET, which a file of the
// access folder lists.
//
// # What it promises
//
//   - The file has the SHA-256 of a key's secret, never the secret, which has 256 bits.
//     Comparisons take the same time wherever they differ.
//   - A change of the file takes effect within a second, without a signal: requests and streams of
//     a revoked or expired key end. The operating system reports the change, and gateways learn of
//     it by long poll; without a report the file is polled five times a second.
//
// # What it does not
//
// It changes no file but that of the last uses. `skein access key` writes the list.
package keys
