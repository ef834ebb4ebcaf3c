package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"
)

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

// Version returns the version of this program, devel if it was built from a checkout.
func Version() string { return thisBuild().Version }

func (a *App) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of this program and what it is built with", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return a.PrintJSON(b)
			}
			_, err := fmt.Fprintf(a.Out, "skein %s\ncommit %s\ngo %s\nnats-server %s\n", b.Version, b.Commit, b.Go, b.NATSServer)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
