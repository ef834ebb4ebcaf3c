// Package openai is a reactor over any endpoint that speaks the OpenAI Responses
// protocol: OpenAI itself, and compatible ones.
//
// # What it promises
//
//   - One streamed call of the endpoint per step, with the whole conversation in it:
//     the endpoint is asked to store nothing, and none of its state is used.
//   - What the model was shown is recorded as the ids of the items and the SHA-256 of
//     the request's input, exactly as sent.
//   - An answer is read to at most Config.MaxBytes, with limits of its idle time and
//     its total time.
//   - No error contains the key, a URL, or more than a short excerpt of the endpoint's
//     message, in which anything like a key is masked.
//
// # What the model is shown
//
// Messages as they are, by their roles. A part tool-NAME becomes a function_call and
// its function_call_output, in the place of the part; so do items of kind
// action_execute with their action_result. A call without a result is shown with a note
// that it has none, and a result without its call is omitted, because endpoints refuse
// either. Reasoning that nothing of its answer follows is omitted, too. Parts input_text, output_text, refusal, input_image and input_file are shown
// if the protocol supports them there. Omitted are item references, parts of any other
// type, the content of the EK context, and reasoning that cannot be sent back: a
// reasoning part can if it has encrypted_content (request it with "include" in the
// model's params; it is by default where the model reasons and the endpoint stores nothing), or its
// content if Config.RawReasoning is set. Calls that the endpoint made itself, such as a
// web_search_call, and its reasoning go back to it alone. Messages keep their phase and annotations.
//
// # What comes back
//
// Parts of messages, unchanged; text, a refusal or reasoning that came as deltas alone,
// as some endpoints do, as if the answer had an item of it. Reasoning as a reasoning part. A function_call as a
// part tool-NAME and a call; its id is replaced if it is empty or was used before, as
// some endpoints do, and so is a name that no tool can have. Arguments that are not a
// JSON object that tools can use are passed on as a JSON string, so that the call fails
// and the model is told. Output of any other kind is stored in an extension part
// open.KIND, as package events defines it.
//
// # How it ends
//
//   - response.completed: the reaction. A refusal is a part of it like any other.
//   - response.incomplete: the parts received, without a call that was cut off; the
//     reaction's FinishReason says why: length, content-filter, or other.
//   - Temporary, a *runtime.RetryError: status 408, 429 (with its Retry-After, unless the
//     quota is used up) and 5xx; no connection, or one that breaks; a stream without an
//     end; a failed response or error event whose code names the server, a rate or
//     nothing. At the step's last attempt of Config.Attempts it is final.
//   - Final: every other status; an event or an answer that is not what the protocol says,
//     which is paid, and which the next would be as well; an answer that is not an
//     event stream or is too large; a failed response or error event with any other code; silence, and a call that
//     takes too long, which are paid.
//   - The rate, the quota, a policy or the key, where the endpoint names it, is a
//     *runtime.FailureError in it.
//   - A stream that ends without its last event is a *runtime.BrokenOffError as well,
//     temporary or not: what was streamed is kept.
//
// It does not retry: the worker does, and records it.
package openai
