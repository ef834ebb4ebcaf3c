// Package threads is threads as documents, in the manner of Amp: read whole, changed by a
// function, observed, forked and handed off. It is a library over package client, and every
// operation of it is also a command or a query over NATS.
//
//	s := threads.New(c)
//	t, err := s.Create(ctx, "")
//	t, patches, err := s.Update(ctx, t.ID, func(t *threads.Thread) error {
//		t.Title = "Order 42"
//		t.Messages = append(t.Messages, threads.UserMessage("Where is it?"))
//		return nil
//	})
//	for t, err := range s.Observe(ctx, t.ID) { ... }
//
// # What it promises
//
//   - A change is durable when the call that made it returns. Nothing is dirty and nothing is
//     flushed later: FlushVersion only waits until reads show a version.
//   - Update stores what its function changed in one commit, or nothing. If another client
//     changed the thread meanwhile, the function runs again on what is there now. What cannot be
//     stored as a command is refused with an *UnsupportedError, never dropped.
//   - Observe yields the thread as it is, and then as it changes: the first value at once, then
//     at most one in 100 ms, and the last one always. ObserveRaw yields without a pause, with
//     the patches between two values.
//   - While a ReadWriter is open, no other client changes its thread. If its process dies, the
//     thread is free again after half a minute.
//
// # What it does not
//
// It keeps no thread in memory, and does not know what another process holds. Observers may miss
// values between two that they see, never the last. A thread of several megabytes is read in
// parts, and each change of it reads it again: use package client for such threads.
package threads

// AmpVersion is the version of Amp Code whose threads the documents follow.
const AmpVersion = "0.0.1769212917"
