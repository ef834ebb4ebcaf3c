// Package bench measures Skein against what its users would otherwise do on
// the same store in the same run, so that the ratios hold on any machine.
//
// All cases write the same bytes: commits of twelve events, as Skein makes them
// of a turn with one tool call. "one-by-one" publishes each event and waits for
// its acknowledgement; "batch" sends the twelve as one atomic batch; "ceiling"
// group-commits ready-made commits of 256 writers, with nothing else of Skein
// in the way; "skein" is thread.commit over NATS from another process, with
// timeline and read models running. The server fsyncs what it acknowledges.
//
// Package peer adds databases that store the same bytes on the same disk.
package bench
