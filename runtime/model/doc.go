// Package model calls the endpoints of models. It owns what all their protocols have in common; a
// [Codec] translates to and from one of them: packages responses, chat and messages.
//
// # What it promises
//
//   - One streamed call of the endpoint per step, with the whole conversation in it.
//   - What the model was shown is recorded as the ids of the items and the SHA-256 of the part of
//     the request that holds them, exactly as sent.
//   - An answer is read to at most Config.MaxBytes, with limits of its idle time and its total
//     time.
//   - No error contains the key, a URL, or more than a short excerpt of the endpoint's message, in
//     which anything like a key is masked. The key is sent to the configured address only:
//     redirects are not followed.
//
// # The way of a step
//
//	runtime.StepInput
//	  Config.permit: which params a definition may set
//	  history:       items of the thread -> Turn, whose items every protocol has
//	  Codec.Encode:  Turn -> bytes
//	  call:          HTTP, limits, failures, server-sent events
//	  Codec.Decode:  events -> Output, which streams chunks and collects items
//	  Output:        runtime.Reaction
//
// # What the model is shown
//
// Messages, with those parts that a model can be shown. A part tool-NAME becomes a [Call] and its
// [Result], in the place of the part; so do items of kind action_execute with their action_result. A
// call without a result is shown with a note that it has none, and a result without its call is
// omitted, because endpoints refuse either. Names and ids of calls are ones that every protocol
// accepts, each id once. [Reasoning] is shown if it can be sent back: it has encrypted content, or
// its text and Config.RawReasoning is set. It is omitted if nothing that it led to follows. What an
// endpoint has made itself, such as a search, is [Own]: it goes back to that endpoint alone, as does
// its encrypted reasoning. Omitted are item references, parts of any other type, and the content of
// the EK context.
//
// # What comes back
//
// Parts of messages, unchanged; text, a refusal or reasoning that came as deltas alone, as some
// endpoints do, as if the answer had an item of it. Reasoning as a reasoning part. A call as a part
// tool-NAME and a call; its id is replaced if it is empty or was used before, as some endpoints do,
// and so is a name that no tool can have. Arguments that are not a JSON object that tools can use are
// passed on as a JSON string, so that the call fails and the model is told. Output of any other kind
// is stored in an extension part open.KIND, as package events defines it.
//
// # How it ends
//
//   - The codec ends the output: the reaction. A refusal is a part of it like any other. An answer
//     that is incomplete keeps its parts, without a call that was cut off; the reaction's
//     FinishReason says why: length, content-filter, or other.
//   - Temporary, a *runtime.RetryError: status 408, 429 (with its Retry-After, unless the
//     quota is used up) and 5xx; no connection, or one that breaks; a stream without an
//     end; an error in the stream whose code names the server, a rate or
//     nothing. At the step's last attempt of Config.Attempts it is final.
//   - Final: every other status; an event or an answer that is not what the protocol says, which is
//     paid, and which the next would be as well; an answer that is not an event stream or is too
//     large; an error in the stream with any other code; silence, and a call that takes too long,
//     which are paid.
//   - The rate, the quota, a policy or the key, where the endpoint names it, is a
//     *runtime.FailureError in it.
//   - A stream that ends without its last event is a *runtime.BrokenOffError as well,
//     temporary or not: what was streamed is kept.
//   - All of these but requests that are refused are a *runtime.UnansweredError: the worker asks the
//     fallback of the model, once another attempt is not due.
//
// It does not retry: the worker does, and records it. Only a conversation that is too long for the
// model is halved and sent again.
package model
