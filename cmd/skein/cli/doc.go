// Package cli is what all commands of skein share: the root command with its help and its
// errors, flags from the environment, the flags and the connection of a command that talks to a
// server, printing, progress, and exit codes.
//
// Each command parses its flags, calls a package that does the work, and prints the result.
// Standard output has results only, and nothing but JSON with --json; progress, logs and errors go
// to standard error as one line each.
//
// It has no commands, and nothing that only one package of commands needs.
//
// # Imports of conversations
//
// [ImportConversations] turns conversations in the OpenAI chat format, as package openaichat reads
// them, into threads.
//
// One conversation is one thread, with the key import:{id}. A user message
// begins a turn, which is one react: resolved context, trigger item,
// execution, a step for each assistant message, the reaction item, calls and
// results, and the end. A turn is one atomic commit, or, where that would be too
// large, several that end between two steps.
//
//   - All ids are derived from the tenant, the conversation's id and the place of
//     the message, so that importing again adds nothing, at any later time and
//     from any process, and importing a longer conversation adds what is new.
//   - An import that was killed is finished by the next one.
//   - Files stream: only the conversations being imported are in memory.
//   - A fault of one conversation is reported with its file and line, and does
//     not affect the others. All of its commands are checked before the first is
//     sent, so that one that cannot be imported whole leaves nothing.
//
// What it decides where the format is silent:
//
//   - Messages before the first user message, and system messages anywhere, are
//     items outside of any execution.
//   - A call without a result stays without one, also if a longer file that is
//     imported later has one for it.
//   - A reaction item holds all parts of its turn. Each step adds its own, so that
//     the size of a turn grows linearly with its length.
//   - Items have the times of their messages, a reaction that of its first step.
package cli
