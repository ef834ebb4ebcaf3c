// Package user has the commands of those who use threads: threads, items, messages, files, runs,
// approvals, queues, state, definitions, imports, events as they happen, the server of the Model
// Context Protocol, and any command or query by its name.
//
// They do what the credentials of one tenant permit, through the client, and reach nothing of the
// server: what reads the log or a store belongs in package operator, even if its command is in a
// group of this package, as thread freeze is.
package user
