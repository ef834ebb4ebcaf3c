// Command skein is the one program of Skein: it serves, and it is the command line
// client of a running server.
//
// It has no logic of its own: each command parses its flags, calls a package that does
// the work, and prints the result. Standard output has results only, and nothing but
// JSON with --json; progress, logs and errors go to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the program immediately.
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, isTerminal: onTerminal}
	os.Exit(a.execute(ctx, os.Args[1:]))
}

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
