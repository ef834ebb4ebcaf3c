// Package readtest sets up the read side for tests: a real server with a log, the buckets
// of the read models, and commands to fill them.
package readtest
