package user

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) threadCommand() *cobra.Command {
	return cli.Group("thread", "Create, show and change threads",
		a.threadCreate(), a.threadGet(), a.threadList(), a.threadReact(), a.threadUpdate(), a.threadStatus(), a.threadDelete(), a.threadShare(),
		a.threadFork(), a.threadHandoff(), a.threadMention(), a.threadTruncate(), a.threadTree(), a.threadExport())
}

func (a *app) threadCreate() *cobra.Command {
	var d events.CreateThread
	var id, commandID string
	var metadata, env, state jsonFlag
	cmd := remoteCommand("create", "Create a thread", cobra.NoArgs, func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
		d.Metadata, d.Env, d.Context = metadata.value(), env.value(), state.value()
		if d.AgentID != "" { // report a mistyped name now, not with the first message
			if _, err := client.Read(ctx, c, events.GetAgent{Name: d.AgentID}); events.IsNotFound(err) {
				return err
			}
		}
		reply, err := c.Send(ctx, "", d, client.ThreadID(id), client.CommandID(commandID))
		return a.printReply(r, reply, err)
	})
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "the id; default generated")
	f.StringVar(&d.Key, "key", "", "the public name, unique in the tenant")
	f.StringVar(&d.AgentID, "agent", "", "the agent in charge")
	f.StringVar(&d.UserID, "user", "", "the user it belongs to")
	f.StringVar(&d.Title, "title", "", "a title for lists")
	f.Var(&metadata, "metadata", "your own fields: a JSON object")
	f.Var(&env, "env", "what is known of the workspace: a JSON object")
	f.Var(&state, "context", "initial content of the default context: any JSON")
	f.StringVar(&commandID, "command-id", "", "makes retries safe: within 24 hours a repeated id returns the first reply")
	return cmd
}

func (a *app) threadGet() *cobra.Command {
	var at string
	cmd := reading("get THREAD", "Show a thread, now or at an earlier point", cobra.ExactArgs(1), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		then, err := parseAt(at)
		if err != nil {
			return err
		}
		t, err := client.Read(ctx, c, events.GetThread{ThreadID: args[0], At: then})
		if err != nil {
			return err
		}
		if r.JSON {
			return a.PrintJSON(t)
		}
		return a.printThread(t)
	})
	cmd.Flags().StringVar(&at, "at", "", "at this version or time: a version such as 12, or a time such as 2026-02-20T10:00:00Z")
	return cmd
}

// parseAt parses a version or a time.
func parseAt(text string) (*events.At, error) {
	if text == "" {
		return nil, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 1 {
			return nil, cli.WrongUsage("--at: the first version is 1")
		}
		return &events.At{Version: &n}, nil
	}
	if _, err := events.ParseTime(text); err != nil {
		return nil, cli.WrongUsage("--at: %v", err)
	}
	return &events.At{Time: text}, nil
}

func (a *app) threadList() *cobra.Command {
	var q events.ListThreads
	var status, archived string
	var limit int
	cmd := reading("list", "List threads, the latest changed first", cobra.NoArgs, func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
		q.Status = events.ThreadStatus(status)
		if status != "" {
			if err := cli.Choice("--status", status, q.Status.Enum()); err != nil {
				return err
			}
		}
		if archived != "" {
			yes, err := strconv.ParseBool(archived)
			if err != nil {
				return cli.WrongUsage("--archived: %q; use true or false", archived)
			}
			q.Archived = &yes
		}
		return a.listThreads(ctx, r, c, q, limit)
	})
	f := cmd.Flags()
	f.StringVar(&status, "status", "", "only this state")
	f.StringVar(&archived, "archived", "", "true: only archived ones; else only those that are not")
	f.StringVar(&q.AgentID, "agent", "", "only this agent")
	f.StringVar(&q.UserID, "user", "", "only this user")
	f.StringVar(&q.KeyPrefix, "key-prefix", "", "only keys with this prefix")
	f.StringVar(&q.UpdatedAfter, "updated-after", "", "only threads changed after this time")
	pageFlags(f, &q.Cursor, &limit, 50)
	return cmd
}

// listThreads prints pages of threads up to a limit.
func (a *app) listThreads(ctx context.Context, r *cli.Remote, c *client.Client, q events.ListThreads, limit int) error {
	t := a.table("THREAD", "KEY", "STATUS", "VERSION", "ITEMS", "CHANGED", "TITLE")
	return printPages(a, r, limit, t, t.Thread, q.Cursor, func(n int64, cursor string) ([]events.Thread, string, error) {
		q.Limit, q.Cursor = &n, cursor
		got, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, "", err
		}
		return got.Threads, got.NextCursor, nil
	})
}

func (a *app) threadStatus() *cobra.Command {
	var reason string
	cmd := a.sending("status THREAD STATUS", "Change the status of a thread: open, streaming, closed or failed", cobra.ExactArgs(2), func(args []string) (any, error) {
		to := events.ThreadStatus(args[1])
		if err := cli.Choice("STATUS", args[1], to.Enum()); err != nil {
			return nil, err
		}
		return events.SetThreadStatus{To: to, Reason: reason}, nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (a *app) threadDelete() *cobra.Command {
	var purge, yes bool
	cmd := remoteCommand("delete THREAD", "Delete a thread permanently", cobra.ExactArgs(1), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		if purge && !yes {
			if err := a.confirmPurge(ctx, c, args[0]); err != nil {
				return err
			}
		}
		reply, err := c.Send(ctx, args[0], events.DeleteThread{Purge: purge})
		if err != nil || r.JSON {
			return a.printReply(r, reply, err)
		}
		outcome := "deleted; its events stay in the log, and cannot be erased later"
		if purge {
			outcome = "purged; its events, documents and files are erased, and a tombstone remains"
		}
		_, err = fmt.Fprintf(a.Out, "%s version %d: %s\n", reply.ThreadID, reply.Version, outcome)
		return err
	})
	cmd.Long = "Delete a thread permanently. Its events stay in the log, and cannot be erased later. With --purge they are\n" +
		"erased, too, and a tombstone remains: on a terminal the command asks before."
	cmd.Flags().BoolVar(&purge, "purge", false, "also erase its events; a tombstone remains")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask before a purge")
	return cmd
}

// confirmPurge asks on a terminal whether a thread is to be purged. The error says that it is not.
func (a *app) confirmPurge(ctx context.Context, c *client.Client, ref string) error {
	if !a.Asks() {
		return nil
	}
	t, err := client.Read(ctx, c, events.GetThread{ThreadID: ref})
	if err != nil {
		return err
	}
	yes, err := a.Confirm(ctx, fmt.Sprintf("Erase %s (%s) with %s for ever?", t.ID, eventtext.Brief(cmp.Or(t.Title, cli.KeyOf(t), "no title"), 60), cli.Count(t.Items, "item")))
	if err == nil && !yes {
		err = cli.Failed("not_confirmed", "nothing was deleted; --yes purges without asking")
	}
	return err
}

func (a *app) threadUpdate() *cobra.Command {
	var title, draft, mode, user, policy string
	var archived, autoSubmit bool
	var maxTokens int64
	var metadata, env jsonFlag
	var d events.UpdateThread
	cmd := a.sending("update THREAD", "Change the properties of a thread that are set as flags", cobra.ExactArgs(1), func(args []string) (any, error) {
		return d, nil
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		given := cmd.Flags().Changed
		d = events.UpdateThread{
			Title: ifGiven(given("title"), title), Draft: ifGiven(given("draft"), draft), AgentMode: ifGiven(given("mode"), mode),
			UserID: ifGiven(given("user"), user), Archived: ifGiven(given("archived"), archived),
			AutoSubmitDraft: ifGiven(given("auto-submit-draft"), autoSubmit), MaxTokens: ifGiven(given("max-tokens"), maxTokens),
			Policy: ifGiven(given("policy"), events.Policy(policy)), Metadata: metadata.value(), Env: env.value(),
		}
		if d.Policy != nil {
			if err := cli.Choice("--policy", policy, d.Policy.Enum()); err != nil {
				return err
			}
		}
		if d.Title == nil && d.Draft == nil && d.AgentMode == nil && d.UserID == nil && d.Archived == nil && d.AutoSubmitDraft == nil &&
			d.MaxTokens == nil && d.Policy == nil && d.Metadata == nil && d.Env == nil {
			return cli.WrongUsage("nothing to change: use at least one of --title, --archived, --draft, --auto-submit-draft, --mode, --max-tokens, --policy, --user, --metadata, --env")
		}
		return nil
	}
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "a title for lists; empty clears it")
	f.BoolVar(&archived, "archived", false, "hide it from the main list, or show it again with --archived=false")
	f.StringVar(&draft, "draft", "", "an unsent message; empty clears it")
	f.BoolVar(&autoSubmit, "auto-submit-draft", false, "whether the draft is sent by itself when a run has completed")
	f.StringVar(&mode, "mode", "", "the mode, which picks the agent; empty clears it")
	f.Int64Var(&maxTokens, "max-tokens", 0, "the cap on the output tokens of a run")
	f.StringVar(&policy, "policy", "", "what happens to a message that arrives during a run: reject, enqueue, interrupt or steer")
	f.StringVar(&user, "user", "", "the user it belongs to; empty clears it")
	f.Var(&metadata, "metadata", "your own fields, all of them: a JSON object")
	f.Var(&env, "env", "what is known of the workspace: a JSON object")
	return cmd
}

// ifGiven returns the value of a flag that is set, and nil otherwise.
func ifGiven[T any](given bool, value T) *T {
	if !given {
		return nil
	}
	return &value
}
