// Package skeintest starts a Skein for a test: a real one, with a real nats-server in
// the process, a temporary store, no ports, and a clock that the test moves.
//
//	func TestReminder(t *testing.T) {
//		s := skeintest.Start(t)
//		s.Must(s.Effect("remind", remind))
//		c := s.Client("acme")
//		... schedule an effect in an hour ...
//		s.Advance(time.Hour)
//		s.WaitIdle()
//		... look at what it did ...
//	}
//
// # What it promises
//
//   - Nothing is shared with another test: the store is a temporary folder, nothing
//     listens (give NATSListen "127.0.0.1:0" for a port), and everything ends with the
//     test.
//   - Advance moves the clock of threads, effects and retention, and begins every
//     effect that is due then.
//   - WaitIdle returns when there is nothing left to do, without sleeping for longer
//     than that takes.
//
// # What it does not
//
// Timeouts (of requests, tools, leases, and of a run that waits for a worker) run by
// the machine's clock. The store does not wait for the disk: a power failure is not
// for these tests.
package skeintest
