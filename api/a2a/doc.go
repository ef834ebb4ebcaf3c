// Package a2a serves the Agent2Agent protocol, 1.0 and 0.3, at /a2a/{agent}: JSON-RPC of both versions
// on one URL, and HTTP+JSON of 1.0 below it. Tasks are another form of the frames of package runview.
//
// A contextId is the id of a thread, or its key is a2a: and the contextId. A task is an execution, with
// the execution's id. A message without a contextId begins a thread, whose id is the contextId.
//
//	SUBMITTED        the run waits in its thread's queue, or for a worker
//	WORKING          it runs
//	INPUT_REQUIRED   it waits for people: a data part {"grant": true} or {"deny": true, "reason"?} answers
//	                 an approval, and the message itself a question
//	COMPLETED, FAILED, CANCELED
//
// # What it promises
//
//   - The messageId makes a message repeatable: the same message is answered with the same task, and
//     another one with its id is refused. An Idempotency-Key counts instead.
//   - A stream begins with the task as it is, and what follows is what is new. It ends with a status that
//     is final, or that requires input. One that is cut off ends with an error: SubscribeToTask goes on.
//   - Each item that a run writes is an artifact. A stream that took back what it has shown sends the
//     artifact again, without append.
//   - A task is found at the URL of the agent that runs it, and by those who may use its thread.
//
// # What it does not
//
// It holds nothing between requests. Tools that Skein runs, and reasoning, are not part of a task.
// Push notifications are refused: a webhook (docs/http-workers.md) is told of runs. gRPC is not served, and
// HTTP+JSON not in the form of 0.3.
//
// # Two versions
//
// Everything is decoded to, and made in, the form of 1.0. Methods have other names in 0.3, by which a
// request says its version; [version] has what else differs.
package a2a
