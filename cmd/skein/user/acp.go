package user

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/api/acp"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

func (a *app) acpCommand() *cobra.Command {
	r := &cli.Remote{Actor: "acp"}
	o := acp.Options{Version: cli.Version()}
	cmd := &cobra.Command{
		Use: "acp", Short: "Serve an agent to an editor over the Agent Client Protocol", Args: cobra.NoArgs,
		Long: "Serve an agent to an editor over the Agent Client Protocol, on standard input and output. Sessions are\n" +
			"threads. It ends with exit code 0 when its input ends, and on SIGTERM; runs go on.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Agent == "" {
				return cli.WrongUsage("an agent is required: set --agent or SKEIN_AGENT")
			}
			c, err := r.Connect()
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := client.Read(cmd.Context(), c, events.GetAgent{Name: o.Agent}); err != nil { // a mistyped one
				return err
			}
			o.Warn = func(message string) { _, _ = fmt.Fprintln(a.Err, message) }
			return acp.New(c, o).Serve(cmd.Context(), a.In, a.Out)
		},
	}
	r.Flags(cmd)
	r.Serves()
	f := cmd.Flags()
	f.StringVar(&o.Agent, "agent", "", "the agent that answers"+cli.Required("agent"))
	f.StringVar(&o.User, "user", "", "the user to whom the threads of new sessions belong; session/list shows those of this user")
	return cmd
}
