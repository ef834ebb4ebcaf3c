package user

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

// remoteCommand returns a command that talks to a server.
func remoteCommand(use, short string, args cobra.PositionalArgs, run func(context.Context, *cli.Remote, *client.Client, []string) error) *cobra.Command {
	r := &cli.Remote{}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Connect()
			if err != nil {
				return err
			}
			defer c.Close()
			return run(cmd.Context(), r, c, args)
		},
	}
	r.Flags(cmd)
	return cmd
}

// reading returns a command that reads: it shows at least what was committed when it
// started.
func reading(use, short string, args cobra.PositionalArgs, run func(context.Context, *cli.Remote, *client.Client, []string) error) *cobra.Command {
	return remoteCommand(use, short, args, func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		if now, err := c.UpToDate(ctx); err == nil { // the credentials may not permit it; then the latest commits may be missing
			c = now
		}
		return run(ctx, r, c, args)
	})
}

// sending returns a command that sends what command returns to the thread that its first argument
// names, and prints the reply.
func (a *app) sending(use, short string, args cobra.PositionalArgs, command func(args []string) (any, error)) *cobra.Command {
	return remoteCommand(use, short, args, func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		d, err := command(args)
		if err != nil {
			return err
		}
		reply, err := c.Send(ctx, args[0], d)
		return a.printReply(r, reply, err)
	})
}

// jsonFlag is a flag with a JSON value.
type jsonFlag events.JSON

// String returns the flag's text.
func (j *jsonFlag) String() string { return string(*j) }

// Type names the flag's values in help.
func (j *jsonFlag) Type() string { return "JSON" }

// Set parses the flag.
func (j *jsonFlag) Set(text string) error {
	v := events.JSON(text)
	if !jsontext.Value(v).IsValid() {
		return cli.WrongUsage("%.40q is not JSON", text)
	}
	*j = jsonFlag(v)
	return nil
}

// value returns the JSON, nil if the flag is not set.
func (j jsonFlag) value() events.JSON { return events.JSON(j) }

// choiceOf is a flag with a fixed set of values, or none.
type choiceOf struct {
	flag, value string
	allowed     []string
}

// choices refuses the first flag whose value is not allowed.
func choices(list ...choiceOf) error {
	for _, c := range list {
		if c.value != "" {
			if err := cli.Choice(c.flag, c.value, c.allowed); err != nil {
				return err
			}
		}
	}
	return nil
}
