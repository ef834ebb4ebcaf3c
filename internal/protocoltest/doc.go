// Package protocoltest has one row for each protocol over which a client runs an agent: how
// the client begins a run, reads its stream, goes on with a stream that was cut off, cancels, and
// answers an approval. Tests run their cases over all rows, so that a new protocol inherits them.
//
//	for _, p := range protocoltest.Every() {
//		run := protocoltest.Open(t, server, p.Begin("order-7", "triage", "hello"))
//		run.ReadTo(p, "Hel")
//		...
//	}
package protocoltest
