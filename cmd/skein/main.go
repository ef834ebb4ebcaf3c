// Command skein is the one program of Skein: it serves, and it is the command line
// client of a running server.
//
// It has no logic of its own: each command parses its flags, calls a package that does
// the work, and prints the result. Standard output has results only, and nothing but
// JSON with --json; progress, logs and errors go to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/skein-threads/skein/events"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the program immediately, unless it comes at once:
	// who signals a process and its group sends two.
	context.AfterFunc(ctx, func() { time.AfterFunc(signalsTogether, stop) })
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, isTerminal: onTerminal}
	os.Exit(a.execute(ctx, os.Args[1:]))
}

// signalsTogether is the time in which several signals are one.
const signalsTogether = time.Second

// build describes how this program was built.
type build struct {
	Version    string `json:"version"`
	Commit     string `json:"commit"`
	Go         string `json:"go"`
	NATSServer string `json:"natsServer"`
}

func thisBuild() build {
	b := build{Version: "devel", Commit: "unknown", Go: "unknown", NATSServer: server.VERSION}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of this program and what it is built with", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return a.printJSON(b)
			}
			_, err := fmt.Fprintf(a.out, "skein %s\ncommit %s\ngo %s\nnats-server %s\n", b.Version, b.Commit, b.Go, b.NATSServer)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitFound  = 3
)

// usageError reports wrong usage: nothing was executed.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func wrongUsage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// foundError reports that a verification found something. The findings have been
// printed.
type foundError struct{ message string }

func (e *foundError) Error() string { return e.message }

// failedError is a failure with its own error code.
type failedError struct {
	code    string
	message string
}

func (e *failedError) Error() string { return e.message }

// exit prints an error as one line and returns the exit code.
func (a *app) exit(err error) int {
	if err = a.reason(err); err == nil {
		return exitDone
	}
	code, message, status := a.classify(err)
	_, _ = fmt.Fprintf(a.err, "skein: %s: %s\n", code, strings.Join(strings.Fields(message), " "))
	return status
}

// classify returns the code, the text and the exit code of an error.
func (a *app) classify(err error) (code, message string, status int) {
	var usage *usageError
	var found *foundError
	var failed *failedError
	var refusal *events.Error
	switch {
	case errors.As(err, &usage):
		return "usage", err.Error(), exitUsage
	case !a.begun: // cobra's own: an unknown command or flag, too few arguments
		return "usage", err.Error(), exitUsage
	case errors.As(err, &found):
		return "found", found.message, exitFound
	case errors.As(err, &failed):
		return failed.code, failed.message, exitFailed
	case errors.As(err, &refusal):
		return string(refusal.Code), refusal.Message, exitFailed
	case errors.Is(err, context.Canceled):
		return "interrupted", "interrupted", exitFailed
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", err.Error(), exitFailed
	}
	return "failed", err.Error(), exitFailed
}
