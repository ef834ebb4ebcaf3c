package user

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

func (a *app) stateCommand() *cobra.Command {
	return cli.Group("state", "Show and change a thread's key-value state", a.stateGet(), a.stateSet(), a.statePush(), a.stateRemove(), a.stateDestroy())
}

func (a *app) stateGet() *cobra.Command {
	var d events.GetState
	cmd := remoteCommand("get THREAD [KEY...]", "Show the values, or those of some keys", cobra.MinimumNArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			d.ThreadID, d.Keys = args[0], args[1:]
			v, err := client.Read(ctx, c, d)
			if err != nil {
				return err
			}
			if r.JSON {
				return a.PrintJSON(v)
			}
			_, err = fmt.Fprintf(a.Out, "%s\n", v.Values)
			return err
		})
	cmd.Flags().Int64Var(&d.Life, "life", 0, "of this life, which may have ended and is not cleared yet; default the current one")
	return cmd
}

func (a *app) stateSet() *cobra.Command {
	var d events.MergeState
	cmd := a.stateMerge("set THREAD KEY VALUE", "Set a key to a value: JSON, or else a text", 3, &d, func(args []string) events.StateOperation {
		return events.StateOperation{Op: events.SetOp, Key: args[1], Value: jsonOrText(args[2])}
	})
	cmd.Flags().BoolVar(&d.Create, "create", false, "create the thread if it does not exist")
	return cmd
}

func (a *app) statePush() *cobra.Command {
	var d events.MergeState
	most := int64(0)
	cmd := a.stateMerge("push THREAD KEY VALUE", "Append a value to the list of a key: JSON, or else a text", 3, &d, func(args []string) events.StateOperation {
		return events.StateOperation{Op: events.PushOp, Key: args[1], Value: jsonOrText(args[2]), Max: most}
	})
	cmd.Flags().BoolVar(&d.Create, "create", false, "create the thread if it does not exist")
	cmd.Flags().Int64Var(&most, "max", 0, "keep this many of the last values; default all")
	return cmd
}

func (a *app) stateRemove() *cobra.Command {
	return a.stateMerge("rm THREAD KEY", "Remove a key", 2, &events.MergeState{}, func(args []string) events.StateOperation {
		return events.StateOperation{Op: events.DeleteOp, Key: args[1]}
	})
}

func (a *app) stateMerge(use, short string, n int, d *events.MergeState, operation func(args []string) events.StateOperation) *cobra.Command {
	return a.sending(use, short, cobra.ExactArgs(n), func(args []string) (any, error) {
		d.Operations = []events.StateOperation{operation(args)}
		return *d, nil
	})
}

func (a *app) stateDestroy() *cobra.Command {
	return a.sending("destroy THREAD", "End the current life of the state, so that it starts afresh", cobra.ExactArgs(1), func(args []string) (any, error) {
		return events.DestroyState{}, nil
	})
}

// jsonOrText returns a value that is JSON as it is, and anything else as a JSON text.
func jsonOrText(value string) events.JSON {
	if json.Valid([]byte(value)) {
		return events.JSON(value)
	}
	text, _ := json.Marshal(value)
	return text
}

func (a *app) sessionCommand() *cobra.Command {
	return cli.Group("session", "Record the requests of a conversation", a.sessionStart(), a.sessionComplete())
}

func (a *app) sessionStart() *cobra.Command {
	var d events.StartSession
	cmd := a.sending("start THREAD SESSION", "Record that a request started; SESSION is sess_ and hex digits", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.SessionID = args[1]
		return d, nil
	})
	cmd.Flags().StringVar(&d.StartedAt, "started-at", "", "when it started; default now")
	return cmd
}

func (a *app) sessionComplete() *cobra.Command {
	var d events.CompleteSession
	cmd := a.sending("complete THREAD SESSION", "Record that a request has ended", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.SessionID = args[1]
		return d, nil
	})
	cmd.Flags().StringVar(&d.ErrorText, "error", "", "why it failed")
	return cmd
}
