// Package runview folds a run: the events of its thread, and the chunks that its reactor streams,
// become typed [Frame]s, which a protocol's codec turns into bytes.
//
//	view := runview.New(executionID)
//	for each input:
//		frames := view.Event(event) // in the order of the thread
//		frames := view.Chunk(chunk) // in the order of the run, when view.Takes(chunk)
//	until view.Ended(), or view.Waiting() when no more events are known
//
// The package is pure: what a [View] returns depends only on its inputs.
//
// # Frames
//
// A run is steps. A step is texts, reasonings, calls and data, in order.
//
//	StepStarted
//	  TextStarted TextDelta... TextFinished      a text, or a reasoning; then its Cited
//	  Sealed                                     what only its model can read of a reasoning
//	  CallStarted CallDelta... CallWritten       a model writes a call
//	  CallReady                                  its arguments are known, or were changed by a person
//	  Asked                                      it waits for a person
//	  CallResult | CallFailed | CallDenied | CallDropped
//	  Data                                       a part, or a reactor's chunk, of another type
//	  StepReset                                  what the step has shown is taken back
//	StepFinished
//	Finished | Removed | Deleted
//
// # The law
//
// The log decides. Chunks only show earlier what the log will have, so these agree in content and
// order:
//
//   - the frames of a run that is read live, however chunks and events interleave;
//   - the frames of the same run that is read from the log, without any chunk;
//   - the frames of a reader that begins at any position: [View.History] folds what came before
//     and [View.Live] shows it as it is now, so an approval that was answered is not asked again.
//
// A step whose texts differ from its parts is reset and shown again. A reader that cannot take back
// what it has shown ([View.AppendOnly]) is shown the parts after it.
//
// Frames that show what the log has, and was not streamed, have the stored part, for protocols that
// show more of it. Sealed and CallWritten are for those that send clients what a model has written
// before it is known what becomes of it.
//
// These are not in the log, and stay as they were streamed: a reasoning whose endpoint streams
// another text than it returns, data that a reactor streams and does not record, the text of a
// failed step of which nothing was kept, and a call that a model began to write and that was never
// made, which ends as [CallDropped].
//
// A text may be divided in other places than the parts of the log. What a worker keeps of an
// interrupted step is one text.
//
// # The tree
//
// A [Tree] folds the same events into [Span]s, for charts and traces: the run, its steps, the calls of
// models and of tools, and waits, with their times, usage and failures. It takes the events alone,
// from execution.created on; what has no length, such as a retry, its user takes from the event.
//
// # The document
//
// [Execute] folds the same events into the document of an execution: the read model, and a stream of the
// run that needs no read model, call it.
//
// # Pauses
//
// [Pauses] and [AwaitsPeople] say the same of the document of a run: where it waits for people, and
// whether it does now. Chats, responses and [View.Waiting] share the rule.
package runview
