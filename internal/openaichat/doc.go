// Package openaichat reads conversations in the OpenAI chat format: JSON Lines or one
// JSON array of {"id", "messages"}.
//
// # What it promises
//
//   - Files stream: no more than one conversation is in memory.
//   - What is wrong with one conversation is told with its line, in one line of
//     text, and does not keep the others back.
//   - A conversation that is given is whole: each result has its call, and each
//     message may be the content of an item.
//
// # What it decides where the format is silent
//
//   - Arguments of a call that are JSON text are kept as JSON, others as text.
//   - The format does not say whether a tool failed. A result is an error if the
//     message has "is_error": true, or if its text begins with "Error:".
//   - The id of a call may be used again once it was answered, as some programs
//     do; a result belongs to the last call of that id.
package openaichat
