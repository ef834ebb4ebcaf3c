package cli

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/internal/build"
)

// Version returns the version of this program, devel if it was built from a checkout.
func Version() string { return build.This().Version }

func (a *App) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of this program and what it is built with", Args: cobra.NoArgs,
		Long: "Show the version of this program, the commit it was built from and its date, the version of the contract\n" +
			"that it keeps (docs/versioning.md), and the versions of Go and nats-server in it.",
		RunE: func(*cobra.Command, []string) error {
			b := build.This()
			if asJSON {
				return a.PrintJSON(map[string]string{
					"version": b.Version, "commit": b.Commit, "date": b.Date, "contract": b.Contract, "go": b.Go, "natsServer": server.VERSION,
				})
			}
			_, err := fmt.Fprintf(a.Out, "skein %s\ncommit %s\ndate %s\ncontract %s\ngo %s\nnats-server %s\n",
				b.Version, b.Commit, b.Date, b.Contract, b.Go, server.VERSION)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
