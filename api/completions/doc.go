// Package completions serves OpenAI's Chat Completions at /v1/chat/completions.
//
// A completion is a response of Open Responses in another form: package openresponses has the way
// from a request to a run and back, and with it models, tools of the caller, bounds, repeats and
// temporary threads. This package translates requests, and what is shown of a run.
//
// # What it promises
//
//   - Without a chat id the thread is temporary: it is purged when its run has ended, or, if that
//     waits for people, when they have answered, at most a day later.
//   - With a chat id the thread is durable, and its key is chat: and the id. What of the messages
//     follows the last one that the thread has is new. A history that differs continues the fork
//     which has it, or forks the thread where it differs.
//   - The first chunk has the role, the first fragment of a call its id and name, and a stream that
//     is complete has a finish_reason: released clients throw without them. An error in mid-stream
//     is a frame of its own, before the end.
//   - A tool that the server runs is never shown as one of tool_calls.
//   - A parameter has the effect that the protocol says, or is refused, or is listed as ignored in
//     docs/completions.md.
//
// # What it does not
//
// It holds nothing between requests. A client that goes away ends its stream, and not the run.
package completions
