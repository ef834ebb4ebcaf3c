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
// It writes only the file of the last uses. `skein access key` writes the list.
//
// # Tokens
//
// An [Authenticator] authenticates requests by the signed tokens (JWT) of one issuer of OpenID
// Connect.
//
//   - Only asymmetric signatures by a key that the issuer publishes count; issuer, audience and
//     times of the token are checked, and what it is used for ends when it expires.
//   - Tenant, roles and user come from the claims that are configured. Without one of them, a
//     token is refused.
//   - An issuer that cannot be reached delays nobody who has a token by a known key.
//
// It cannot revoke a token: issue short ones.
package keys
