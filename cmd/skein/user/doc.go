// Package user has the commands of those who use threads: threads, items, messages, files, runs,
// approvals, queues, state, definitions, imports, events as they happen, the server of the Model
// Context Protocol, and any command or query by its name.
//
// They do what the credentials of one tenant permit, through the client, and reach nothing of the
// server: what reads the log or a store belongs in package operator, even if its command is in a
// group of this package, as thread freeze is.
//
// # Files of definitions
//
// It reads files of definitions, YAML or JSON, and records the place
// of every value, so that a refusal names the file and the line.
//
//   - A file holds any number of definitions: YAML documents, JSON values one
//     after another, or lists of them. A definition is an object with a kind; its
//     other members are the definition itself, or its one other member is
//     definition, and perhaps name, as in the command definition.apply.
//   - Numbers and texts survive: 9007199254740993, 1.0 and 1e3 stay as they are
//     written, and no, on and 2026-02-20 are texts, as YAML 1.2 says.
//   - Anchors and aliases are followed, within bounds. What JSON lacks (merge
//     keys, tags other than !!str, .inf, 010) is refused.
//
// It does not know whether what a definition refers to is there; the server does.
package user
