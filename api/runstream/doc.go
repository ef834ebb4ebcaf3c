// Package runstream reads a run for a stream that shows it: the events of its thread and the chunks of its
// reactor, merged in the order that a view of them needs.
//
//	source, err := runstream.Subscribe(ctx, client, runstream.Options{Thread: thread, Execution: execution, From: version})
//	...
//	defer source.Close()
//	err = runstream.Play(ctx, source, view, send)
//
// # What it promises
//
//   - A view is told each event of the thread once, from a version on, and each chunk when it takes it.
//     First comes the history, and then what is live; nothing between the two is missed.
//   - A run that its reader begins needs no history: a [Live] subscribes before the command, and nothing of
//     the run is queried. A [Record] is what queries would tell of it.
//   - [Play] returns when the run has ended, or waits for people. A wait in the history may be over:
//     only one that nothing known follows ends the stream.
//
// # What it does not
//
// It does not fold: package runview does. A source holds nothing of a run but the chunk that the view
// does not take yet, and a record its parts.
package runstream
