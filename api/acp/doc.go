// Package acp serves an agent over the Agent Client Protocol, version 1, to editors: updates of a
// session are another form of the frames of package runview.
//
//	err := acp.New(client, acp.Options{Agent: "triage"}).Serve(ctx, os.Stdin, os.Stdout)
//
// A session of the protocol is a thread, and its id the thread's. A prompt is a message of a user, and
// the turn that answers it an execution.
//
// # What it promises
//
//   - It acts through a client, with that client's credentials.
//   - A turn shows each text once, and then answers with why it stopped. A run that fails is an error
//     with the run's message. A second prompt in a session is refused while one is answered.
//   - An approval is a request for permission, to be granted or denied once. A question is a form,
//     where the client has forms and the answer fits into one. Otherwise it is a text with which the
//     turn ends, and the next prompt is the answer.
//   - What was answered elsewhere is not asked any longer.
//   - session/load sends all of the conversation before it answers, and session/resume nothing. A run
//     that is active is shown after either answer, from its beginning; a prompt waits for its end.
//   - A client that goes away ends nothing: its runs go on. session/cancel and session/close cancel.
//   - What is not supported is refused, or named in the answer, under _meta.skein.notSupported.
//   - A line that is no message is answered with an error, and the next line is read.
//   - A message on out is a line of the protocol. Nothing else is written there.
//
// # What it does not
//
// The agent does not run where the client is: it reads no files of the client, runs no commands
// there, and connects to no MCP server that the client names.
//
// The messages are declared here, and their lines read by package rpcline: the Go SDK of the protocol
// (coder/acp-go-sdk 0.13) drops lines that are no messages without an answer, ends at 10 MB, and
// brings 9,000 generated lines, of which this package needs 30 types. Tests use it as a client.
package acp
