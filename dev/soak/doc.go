// Package soak runs a whole Skein under a steady load of clients that come and go, and
// checks that nothing grows: memory, goroutines, file handles, and the lag of the read
// models.
//
// Skein and its clients are one process, so that a leak of either shows. The NATS server,
// which keeps the newest block of each stream in memory, is another. Each visitor creates
// a thread, talks, asks the agent, writes a file, follows the timeline, deletes the
// thread, one in forty with a purge, and disconnects. So each minute ends with what it
// began with, except for tombstones. A run of two minutes or more begins with threads
// that stay and fill Skein's caches.
//
// `make soak` takes ten minutes, `SOAK=30s make soak` half a minute, about as long as the
// run in `make test-long`. -short skips it.
package soak
