package user

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) threadFork() *cobra.Command {
	var d events.ForkThread
	var message, version int64
	cmd := remoteCommand("fork THREAD", "Copy a thread's history up to a message, or as it was at a version, into a new thread", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			reply, err := c.Send(ctx, args[0], d)
			if err == nil && !r.JSON {
				_, err = fmt.Fprintln(a.Out, reply.Result.ChildID)
				return err
			}
			return a.printReply(r, reply, err)
		})
	f := cmd.Flags()
	f.Int64Var(&message, "message", 0, "the last message that is copied, from 0")
	f.StringVar(&d.ItemID, "item", "", "the last message that is copied, by its item")
	f.Int64Var(&version, "at", 0, "the version of the thread that is copied")
	f.StringVar(&d.Key, "key", "", "the new thread's public name, unique in the tenant")
	f.StringVar(&d.Title, "title", "", "the new thread's title; default made of the thread's")
	cmd.PreRun = func(*cobra.Command, []string) {
		d.MessageIndex, d.Version = ifGiven(f.Changed("message"), message), ifGiven(f.Changed("at"), version)
	}
	cmd.MarkFlagsOneRequired("message", "item", "at")
	cmd.MarkFlagsMutuallyExclusive("message", "item", "at")
	return cmd
}

func (a *app) threadHandoff() *cobra.Command {
	var d events.HandoffThread
	cmd := remoteCommand("handoff THREAD", "Continue a thread in a new one that begins with a summary, which an agent writes if you give none", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			reply, err := c.Send(ctx, args[0], d)
			if err == nil && reply.Result.ExecutionID != "" {
				err = summaryWritten(ctx, r, c, reply)
			}
			if err == nil && !r.JSON {
				_, err = fmt.Fprintln(a.Out, reply.Result.ChildID)
				return err
			}
			return a.printReply(r, reply, err)
		})
	f := cmd.Flags()
	f.StringVar(&d.Summary, "summary", "", "what the new thread is to know")
	f.StringVar(&d.AgentID, "agent", "", "the agent in charge of the new thread; without a summary, it writes one first (default that of the policy handoff)")
	f.StringVar(&d.Comment, "comment", "", "what the thread is handed off for")
	f.StringVar(&d.Key, "key", "", "the new thread's public name, unique in the tenant")
	return cmd
}

// summaryWritten waits until an agent has written the summary of a handoff.
func summaryWritten(ctx context.Context, r *cli.Remote, c *client.Client, reply *events.Reply) error {
	q := events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}}
	x, err := c.WaitRun(ctx, q)
	if err != nil {
		return unfinished(ctx, r, q, err)
	}
	if x.Status != events.ExecutionCompleted {
		err = fmt.Errorf("hand off thread %s: its summary was not written: %s", reply.ThreadID, x.ErrorText)
	}
	return err
}

func (a *app) threadMention() *cobra.Command {
	var d events.MentionThread
	var message int64
	cmd := a.sending("mention THREAD OTHER", "Record on two threads that one refers to the other", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.MentionedID = args[1]
		return d, nil
	})
	f := cmd.Flags()
	f.Int64Var(&message, "message", 0, "the message that refers to the other thread, from 0; default the last one")
	cmd.PreRun = func(*cobra.Command, []string) { d.MessageIndex = ifGiven(f.Changed("message"), message) }
	f.StringVar(&d.Comment, "comment", "", "what it is mentioned for")
	return cmd
}

func (a *app) threadTruncate() *cobra.Command {
	var d events.TruncateThread
	cmd := a.sending("truncate THREAD MESSAGE", "Hide the messages after one, which is counted from 0", cobra.ExactArgs(2), func(args []string) (any, error) {
		message, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || message < 0 {
			return nil, cli.WrongUsage("the message is a number from 0, not %q", args[1])
		}
		d.MessageIndex = &message
		return d, nil
	})
	cmd.Flags().BoolVar(&d.Interrupt, "interrupt", false, "abort what runs on the thread")
	return cmd
}

// relative is a thread in a family.
type relative struct {
	ThreadID     string                  `json:"threadId"`
	Title        string                  `json:"title,omitzero"`
	Type         events.RelationshipKind `json:"type,omitzero"` // how it is related to the thread above it
	MessageIndex *int64                  `json:"messageIndex,omitzero"`
	Comment      string                  `json:"comment,omitzero"`
	Deleted      bool                    `json:"deleted,omitzero"`
	Children     []*relative             `json:"children,omitempty"`
}

// familySize bounds the threads of a family that are shown.
const familySize = 1000

func (a *app) threadTree() *cobra.Command {
	return reading("tree THREAD", "Draw the threads that a thread comes from, and those that come from it", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			t, err := client.Read(ctx, c, events.GetThread{ThreadID: args[0]})
			if err != nil {
				return err
			}
			f := family{client: c, seen: map[string]bool{}}
			top, err := f.top(ctx, t.ID)
			if err != nil {
				return err
			}
			root := &relative{ThreadID: top}
			if err := f.grow(ctx, root); err != nil {
				return err
			}
			if r.JSON {
				return a.PrintJSON(root)
			}
			drawFamily(a.Out, root, "", "", t.ID)
			return nil
		})
}

// family collects related threads.
type family struct {
	client *client.Client
	seen   map[string]bool
}

func (f *family) list(ctx context.Context, id string, role events.RelationshipRole) ([]events.Relationship, error) {
	var all []events.Relationship
	for q := (events.ListRelationships{ThreadID: id, Role: role}); ; {
		got, err := client.Read(ctx, f.client, q)
		if events.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, got.Relationships...)
		if q.Cursor = got.NextCursor; q.Cursor == "" {
			return all, nil
		}
	}
}

// top returns the thread from which the others of the family come.
func (f *family) top(ctx context.Context, id string) (string, error) {
	above := map[string]bool{id: true}
	for {
		list, err := f.list(ctx, id, events.ChildRole)
		if err != nil {
			return "", err
		}
		from := ""
		for i := range list {
			if list[i].Type != events.MentionRelation && !above[list[i].ThreadID] {
				from = cmp.Or(from, list[i].ThreadID)
			}
		}
		if from == "" {
			return id, nil
		}
		above[from] = true
		id = from
	}
}

// grow adds what comes from a thread. A thread that is there already is named again, without
// what comes from it.
func (f *family) grow(ctx context.Context, r *relative) error {
	t, err := client.Read(ctx, f.client, events.GetThread{ThreadID: r.ThreadID})
	switch {
	case events.IsNotFound(err):
		r.Deleted = true
		return nil
	case err != nil:
		return err
	}
	r.Title = t.Title
	if f.seen[r.ThreadID] || len(f.seen) >= familySize || r.Type == events.MentionRelation {
		return nil
	}
	f.seen[r.ThreadID] = true
	list, err := f.list(ctx, r.ThreadID, events.ParentRole)
	if err != nil {
		return err
	}
	for i := range list {
		child := &relative{ThreadID: list[i].ThreadID, Type: list[i].Type, MessageIndex: list[i].MessageIndex, Comment: list[i].Comment}
		r.Children = append(r.Children, child)
		if err := f.grow(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// drawFamily prints a thread and what comes from it; own is marked.
func drawFamily(w io.Writer, r *relative, first, rest, own string) {
	line := first + r.ThreadID
	if r.ThreadID == own {
		line += " *"
	}
	if r.Type != "" {
		line += " " + string(r.Type)
		if r.MessageIndex != nil {
			line += " at " + strconv.FormatInt(*r.MessageIndex, 10)
		}
	}
	for _, text := range []string{r.Title, r.Comment} {
		if text != "" {
			line += "  " + eventtext.Printable(text, false)
		}
	}
	if r.Deleted {
		line += "  (deleted)"
	}
	_, _ = fmt.Fprintln(w, line)
	for i, child := range r.Children {
		if i == len(r.Children)-1 {
			drawFamily(w, child, rest+"└─ ", rest+"   ", own)
		} else {
			drawFamily(w, child, rest+"├─ ", rest+"│  ", own)
		}
	}
}
