// Package cli is what all commands of skein share: the root command with its help and its
// errors, flags from the environment, the flags and the connection of a command that talks to a
// server, printing, progress, and exit codes.
//
// Each command parses its flags, calls a package that does the work, and prints the result.
// Standard output has results only, and nothing but JSON with --json; progress, logs and errors go
// to standard error as one line each.
//
// It has no commands, and nothing that only one package of commands needs. Of Skein it imports the
// client alone.
package cli
