// Package messages calls endpoints that speak Anthropic's Messages protocol. It is a codec of
// package model.
//
// What one step made is one assistant message: its thinking first, then its text and its calls. A
// user message with the results of all of its calls follows at once. System messages at the front
// join the instructions; later ones are user messages that say what they are. Thinking goes back
// whole, with its signature, to the model that made it, and is left out for any other.
//
// The number of input tokens includes those that were read from or written to a cache. An answer
// ends with the message_delta that has its stop_reason.
package messages
