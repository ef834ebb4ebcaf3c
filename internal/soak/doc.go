// Package soak runs a whole Skein for a while under a steady load, with clients
// that come and go, and holds that nothing of it grows: memory, goroutines, file
// handles, and how far the read models are behind.
//
// Skein and its clients are one process, so that a leak of either shows; the NATS
// server, which keeps the newest block of each stream in memory, is another. Each visitor
// makes a thread, talks, asks the agent, keeps a file, follows the timeline,
// deletes the thread, one in forty with all that it held, and disconnects. What is there at the
// end of a minute is then what was there at its beginning, but for tombstones. A run of
// two minutes or more begins with the threads of others, which fill Skein's caches.
//
// `make soak` takes ten minutes; SOAK=30s make soak takes half of one, and so does
// nearly the run within `make test-long`, which -short leaves out.
package soak
