// Package skeintest starts a Skein for a test: a real one, with a real nats-server in
// the process, a temporary store, no ports, and a clock that the test advances.
//
//	func TestReminder(t *testing.T) {
//		s := skeintest.Start(t)
//		s.Must(s.Effect("remind", remind))
//		c := s.Client("acme")
//		... schedule an effect in an hour ...
//		s.Advance(time.Hour)
//		s.WaitIdle()
//		... check what it did ...
//	}
//
// # What it promises
//
//   - Tests share nothing: the store is a temporary folder, nothing listens (set
//     NATSListen to "127.0.0.1:0" for a port), and everything is stopped at the end of
//     the test.
//   - Advance moves the clock of threads, effects and retention, and starts every
//     effect that is due then.
//   - WaitIdle returns when no work is left, without unnecessary sleeps.
//
// # What it does not
//
// Timeouts (of requests, tools, leases, and of a run that waits for a worker) use the
// machine's clock. The store does not wait for the disk: these tests cannot simulate a
// power failure.
package skeintest
