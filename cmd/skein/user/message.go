package user

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) messageCommand() *cobra.Command {
	return cli.Group("message", "Add, show, change and remove the messages of threads", a.messageList(), a.messageAdd(), a.messageEdit(), a.messageRemove())
}

func (a *app) messageList() *cobra.Command {
	var q events.ListMessages
	var order, at string
	var limit, offset, depth int
	cmd := reading("list THREAD", "List the messages of a thread, newest first", cobra.ExactArgs(1), func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		q.ThreadID, q.Order = args[0], events.Order(order)
		if err := cli.Choice("--order", order, q.Order.Enum()); err != nil {
			return err
		}
		if n := int64(offset); n > 0 {
			q.Offset = &n
		}
		if n := int64(depth); n >= 0 {
			q.MaxDepth = &n
		}
		var err error
		if q.At, err = parseAt(at); err != nil {
			return err
		}
		return a.listMessages(ctx, r, c, q, limit)
	})
	cmd.Long = "List the messages of a thread as Standard Agents defines them: a tool's result is a message with the role\n" +
		"tool, and a call is part of the assistant's message that made it."
	f := cmd.Flags()
	f.IntVar(&limit, "limit", 0, "maximum number; 0 for all")
	f.IntVar(&offset, "offset", 0, "how many to skip")
	f.StringVar(&order, "order", "desc", "desc (newest first) or asc")
	f.BoolVar(&q.IncludeSilent, "silent", false, "silent messages too")
	f.IntVar(&depth, "max-depth", -1, "maximum depth of nesting; -1 for all")
	cli.MayBeZero(f, "max-depth")
	f.StringVar(&q.ContextID, "context", "", "only this context")
	f.StringVar(&at, "at", "", "at this version or time of the thread")
	f.StringVar(&q.Cursor, "cursor", "", "cursor of the previous page, instead of --offset")
	return cmd
}

// listMessages prints pages of messages up to a limit.
func (a *app) listMessages(ctx context.Context, r *cli.Remote, c *client.Client, q events.ListMessages, limit int) error {
	t := a.table("MESSAGE", "AT", "ROLE", "STATUS", "WHAT")
	return printPages(a, r, limit, t, t.message, q.Cursor, func(n int64, cursor string) ([]events.ThreadMessage, string, error) {
		if q.Limit, q.Cursor = &n, cursor; cursor != "" {
			q.Offset = nil
		}
		got, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, "", err
		}
		return got.Messages, got.NextCursor, nil
	})
}

func (t table) message(m *events.ThreadMessage) {
	status, what := "", ""
	switch {
	case m.ToolStatus != nil:
		status = string(*m.ToolStatus)
	case m.Status != nil:
		status = string(*m.Status)
	}
	if m.Content != nil {
		what = *m.Content
	}
	if m.ToolCalls != nil {
		what += " " + called(*m.ToolCalls)
	}
	at := time.UnixMicro(m.CreatedAt).Format("2006-01-02 15:04:05")
	t.Row(m.ID, at, string(m.Role), status, eventtext.Brief(what, 80))
}

// called formats calls for people.
func called(toolCalls string) string {
	list, err := events.ParseToolCalls(toolCalls)
	if err != nil { // abbreviated for the list
		return toolCalls
	}
	text := ""
	for _, c := range list {
		text += " " + c.Name + "(" + eventtext.Plain(c.Arguments) + ")"
	}
	return text
}

func (a *app) messageAdd() *cobra.Command {
	var d events.AddMessage
	var role, status, ended, commandID string
	var metadata jsonFlag
	var depth int
	cmd := remoteCommand("add THREAD [TEXT]", "Add a message to a thread", cobra.RangeArgs(1, 2),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			d.Role, d.Status, d.ToolStatus, d.Metadata = events.MessageRole(role), events.MessageStatus(status), events.ToolStatus(ended), metadata.value()
			if err := choices(choiceOf{"--role", role, d.Role.Enum()}, choiceOf{"--status", status, d.Status.Enum()}, choiceOf{"--tool-status", ended, d.ToolStatus.Enum()}); err != nil {
				return err
			}
			if n := int64(depth); n != 0 {
				d.Depth = &n
			}
			if len(args) == 2 {
				text, err := a.text(args[1])
				if err != nil {
					return err
				}
				d.Content = &text
			}
			reply, err := c.Send(ctx, args[0], d, client.CommandID(commandID))
			return a.printReply(r, reply, err)
		})
	cmd.Long = "Add a message to a thread. TEXT may be - for standard input, or omitted for a message without text."
	f := cmd.Flags()
	f.StringVar(&d.ID, "id", "", "the id; default generated")
	f.StringVar(&d.ContextID, "context", "", "the context; default the thread's default context")
	f.StringVar(&role, "role", string(events.FromUser), "the role: system, user, assistant or tool")
	f.StringVar(&d.Name, "name", "", "of a result: the tool's name")
	f.StringVar(&d.ToolCalls, "tool-calls", "", `of an assistant: the calls, [{"id":...,"function":{"name":...,"arguments":"..."}}]`)
	f.StringVar(&d.ToolCallID, "tool-call-id", "", "of a result: the call that it answers")
	f.StringVar(&d.ParentID, "parent", "", "the parent item")
	f.IntVar(&depth, "depth", 0, "depth of nesting; 0 is the conversation itself")
	f.BoolVar(&d.Silent, "silent", false, "hidden from people, shown to the model")
	f.Var(&metadata, "metadata", "your own fields: a JSON object")
	f.StringVar(&status, "status", "", "the status: pending, completed or failed")
	f.StringVar(&ended, "tool-status", "", "of a result: success (default) or error")
	f.StringVar(&commandID, "command-id", "", "makes retries safe: within 24 hours a repeated id returns the first reply")
	return cmd
}

func (a *app) messageEdit() *cobra.Command {
	var d events.UpdateMessage
	var status, ended string
	var silent maybe
	var metadata jsonFlag
	cmd := a.sending("edit THREAD MESSAGE [TEXT]", "Change a message", cobra.RangeArgs(2, 3), func(args []string) (any, error) {
		d.MessageID, d.Status, d.ToolStatus, d.Metadata = args[1], events.MessageStatus(status), events.ToolStatus(ended), metadata.value()
		d.Silent = silent.value
		if err := choices(choiceOf{"--status", status, d.Status.Enum()}, choiceOf{"--tool-status", ended, d.ToolStatus.Enum()}); err != nil {
			return nil, err
		}
		if len(args) == 3 {
			text, err := a.text(args[2])
			if err != nil {
				return nil, err
			}
			d.Content = &text
		}
		if d.Content == nil && d.Metadata == nil && d.Silent == nil && status == "" && ended == "" {
			return nil, cli.WrongUsage("nothing to change: use TEXT or a flag")
		}
		return d, nil
	})
	cmd.Long = "Change a message. TEXT is the whole new text; - reads it from standard input."
	f := cmd.Flags()
	f.VarPF(&silent, "silent", "", "hide it from people, or --silent=false: show it").NoOptDefVal = "true"
	f.Var(&metadata, "metadata", "fields to set in the metadata: a JSON object")
	f.StringVar(&status, "status", "", "the status: pending, completed or failed")
	f.StringVar(&ended, "tool-status", "", "of a result: success or error")
	return cmd
}

func (a *app) messageRemove() *cobra.Command {
	return a.sending("rm THREAD MESSAGE", "Hide a message from every view", cobra.ExactArgs(2), func(args []string) (any, error) {
		return events.DeleteMessage{ItemID: args[1]}, nil
	})
}

// maybe is a flag that is true, false, or not set.
type maybe struct{ value *bool }

// String returns the flag's text.
func (m *maybe) String() string {
	if m.value == nil {
		return ""
	}
	return strconv.FormatBool(*m.value)
}

// Type names the flag's values in help.
func (m *maybe) Type() string { return "bool" }

// Set parses the flag.
func (m *maybe) Set(text string) error {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return cli.WrongUsage("%.40q is neither true nor false", text)
	}
	m.value = &v
	return nil
}
