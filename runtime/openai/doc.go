// Package openai is a reactor over any endpoint that speaks the OpenAI Responses
// protocol: OpenAI itself, and what is compatible with it.
//
// # What it promises
//
//   - One call of the endpoint a step, streamed, with the whole conversation in
//     it: the endpoint is asked to keep nothing, and no state of it is relied on.
//   - What the model was shown is told by the ids of the items and the SHA-256 of
//     the request's input, just as it was sent.
//   - An answer is read to at most Config.MaxBytes, with a bound on its silence and
//     on its time.
//   - No error holds the key, a URL, or more than a short excerpt of what the
//     endpoint said, and in that excerpt what looks like a key is masked.
//
// # What the model is shown
//
// Messages as they are, by their roles. A part tool-NAME becomes a
// function_call and its function_call_output, in the place of the part; so do
// items of kind action_execute with their action_result. A call without a result
// is shown with the note that it has none, and a result without its call is left
// out, because endpoints refuse either. Parts input_text, output_text, refusal,
// input_image and input_file are shown where the protocol has a place for them.
// Left out are item references, parts of any other type, the content of the EK
// context, and reasoning that cannot go back: a reasoning part does so if it
// bears encrypted_content (ask for it with "include" in the model's params), or
// its content if Config.RawReasoning is set.
//
// # What comes back
//
// Parts of messages as they came. Reasoning as a reasoning part. A function_call
// as a part tool-NAME and a call; its id is replaced if it is empty or was used
// before, as some endpoints do. Arguments that are no JSON object are handed on as
// a JSON string, so that the call fails and the model is told. Output of any other
// kind is kept in an extension part open.KIND, as package events has it.
//
// # How it ends
//
//   - response.completed: the reaction. A refusal is a part of it like any other.
//   - response.incomplete: the parts so far, without a call that was cut off, and
//     the reaction's FinishReason says why: length, content-filter, or other.
//   - May pass, a *runtime.RetryError: status 408, 429 (with its Retry-After) and
//     5xx; no connection, or one that breaks; silence; an event that is not JSON; a
//     stream that ends without an end; a failed response or error event whose code
//     speaks of the server, of a rate or of nothing.
//   - Final: every other status; an answer that is no event stream or is too large;
//     a failed response or error event of any other code.
//
// It never tries again by itself: the worker does, and records it.
package openai
