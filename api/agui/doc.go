// Package agui serves AG-UI 1.0 at /agui/{agent}, and the routes of CopilotKit's runtime under /agui:
// AG-UI's events are another form of the frames of package runview.
//
// A threadId of the protocol is the id of a thread, or its key is agui: and the threadId. A run of the
// protocol is an execution, or, if it resumes one that waits for people, the rest of that execution.
//
// # What it promises
//
//   - What of the messages follows the last one that the thread has is new. A history that differs
//     forks the thread where it differs. Forks have keys that begin with that of the thread, and a
//     request goes on in the one that has most of its history.
//   - The runId makes a request repeatable: the same request is answered with the same run, and
//     another request with it is refused. The execution keeps it in its settings.
//   - An approval, or a question, that a run waits for is an interrupt whose id is the call's. A
//     message that comes meanwhile is refused with the ids.
//   - The ids of messages are functions of the thread's items: a snapshot has those that were
//     streamed. A message of a user has the id that its client gave it.
//   - A stream ends with RUN_FINISHED or RUN_ERROR unless its reader has gone, since released clients
//     treat a stream that just ends as a success. Nothing is open then, and no call ends twice.
//   - A field is left out where it has no value: released clients refuse null.
//   - What only 1.0 has, such as an outcome that says cancelled, is sent to clients that declare it.
//
// # What it does not
//
// It holds nothing between requests. A client that goes away ends its stream, and not the run.
//
// A step that a model begins again cannot be taken back: what was shown of it stays in the stream, and
// a snapshot has what is stored.
package agui
