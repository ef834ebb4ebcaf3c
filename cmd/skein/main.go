// Command skein is the one program of Skein: it serves, and it is the command line
// client of a running server.
//
// It has no logic of its own: each command parses its flags, calls a package that does
// the work, and prints the result. Standard output has results only, and nothing but
// JSON with --json; progress, logs and errors go to standard error.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the program immediately.
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, isTerminal: onTerminal}
	os.Exit(a.execute(ctx, os.Args[1:]))
}
