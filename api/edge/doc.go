// Package edge is what all routes of Skein's HTTP edge share: who makes a request, what
// that principal may do, and how errors are answered. Other packages of the room have the routes:
//
//	stream         server-sent events and WebSockets, of all of them
//	rest           /api: commands, queries, resources, events, sockets
//	openresponses  /v1: Open Responses, and what OpenAI's clients call as well
//	completions    /v1/chat/completions: OpenAI's Chat Completions
//	openaifiles    /v1/files: OpenAI's Files, and their contents in messages
//	embeddings     /v1/embeddings
//	download       contents of files, of all of them
//	chat           /chat: the AI SDK's stream of UI messages
//	mcp            /mcp: the Model Context Protocol
//	agui           /agui: AG-UI, and CopilotKit's runtime
//	a2a            /a2a: the Agent2Agent protocol
//	runstream      reads a run for the streams that show it
//
// # What it promises
//
//   - A handler is called with a [Caller]: a principal that the request's credential alone
//     determines, and a client that acts as that principal and may do no more. There is no
//     other way from a route to a tenant's data.
//   - An error of a handler is answered as {"error": {"type", "code", "message", "param"}},
//     none of them null, with the status of its code. Every answer has Skein-Request-Id.
//   - A stream or a socket, which package stream sends, has a place of its own and the pace of
//     its tenant, and ends with its credential and with the edge.
//
// # What it does not
//
// It knows no command, query or protocol.
//
// # What may enter
//
// What at least two packages of routes need. It imports the client and events: an edge is a
// client, and runs inside `skein serve` or in a process of its own.
package edge
