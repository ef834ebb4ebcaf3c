// Command skein is the one program of Skein: it serves, and it is the client of
// a server that runs elsewhere.
//
// There is no logic here: each command reads its flags, calls a package that does
// the work, and prints what came of it. Standard output holds results only, and
// nothing but JSON with --json; progress, logs and errors go to standard error.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, isTerminal: onTerminal}
	os.Exit(a.run(ctx, os.Args[1:]))
}
