// Command skein is the one program of Skein: it serves, and it is the command line
// client of a running server.
//
// It has no logic of its own. What all commands share is in cli, the commands of those who run a
// Skein in operator, and commands for the users of its threads in user. The tests here run the
// program that is built.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/cmd/skein/user"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the program immediately, unless it comes at once:
	// who signals a process and its group sends two.
	context.AfterFunc(ctx, func() { time.AfterFunc(signalsTogether, stop) })
	a := cli.New()
	os.Exit(a.Execute(ctx, os.Args[1:], verbs(a)...))
}

// signalsTogether is the time in which several signals are one.
const signalsTogether = time.Second

// verbs returns all commands.
func verbs(a *cli.App) []cli.Verbs {
	return []cli.Verbs{a.Verbs(), user.Verbs(a), operator.Verbs(a)}
}
