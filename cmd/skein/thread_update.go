package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func (a *app) threadUpdate() *cobra.Command {
	var title, draft, mode, user, policy string
	var archived, autoSubmit bool
	var maxTokens int64
	var metadata, env jsonFlag
	var d events.UpdateThread
	cmd := remoteCommand("update THREAD", "Change the properties of a thread that are set as flags", cobra.ExactArgs(1),
		func(ctx context.Context, r *remote, c *client.Client, args []string) error {
			reply, err := c.UpdateThread(ctx, args[0], d)
			return a.printReply(r, reply, err)
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
			if err := choice("--policy", policy, d.Policy.Enum()); err != nil {
				return err
			}
		}
		if d.Title == nil && d.Draft == nil && d.AgentMode == nil && d.UserID == nil && d.Archived == nil && d.AutoSubmitDraft == nil &&
			d.MaxTokens == nil && d.Policy == nil && d.Metadata == nil && d.Env == nil {
			return wrongUsage("nothing to change: use at least one of --title, --archived, --draft, --auto-submit-draft, --mode, --max-tokens, --policy, --user, --metadata, --env")
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
