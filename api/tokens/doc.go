// Package tokens authenticates requests by the signed tokens (JWT) of one issuer of OpenID
// Connect.
//
// # What it promises
//
//   - Only asymmetric signatures by a key that the issuer publishes count; issuer, audience and
//     times of the token are checked, and what it is used for ends when it expires.
//   - Tenant, roles and user come from the claims that are configured. Without one of them, a
//     token is refused.
//   - An issuer that cannot be reached delays nobody who has a token by a known key.
//
// # What it does not
//
// It cannot revoke a token: issue short ones.
package tokens
