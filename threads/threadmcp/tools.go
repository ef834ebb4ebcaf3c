package threadmcp

import (
	"context"
	"errors"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
	"github.com/skein-threads/skein/threads/threadtools"
)

// What tools do, for clients that ask a person before some calls.
func reads() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)}
}

func adds(idempotent bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{IdempotentHint: idempotent, DestructiveHint: new(false), OpenWorldHint: new(false)}
}

func (s *Server) addTools() error {
	return errors.Join(
		add(s, threadtools.ReadTool, "Read a thread", threadtools.ReadDescription+" With mentionedBy, both threads record that one refers to the other.", adds(true), (*Caller).readThread),
		add(s, threadtools.FindTool, "Find threads", threadtools.FindDescription, reads(), (*Caller).findThread),
		add(s, "list_threads", "List threads", "Lists threads, the last changed one first.", reads(), (*Caller).listThreads),
		add(s, "create_thread", "Create a thread", "Creates a thread, and returns its id. With a key, a thread that has it already is returned instead, unchanged.", adds(false), (*Caller).createThread),
		add(s, "add_message", "Add a message", "Adds a message to a thread, at its end. No agent is asked to answer it.", adds(false), (*Caller).addMessage),
		add(s, "fork_thread", "Fork a thread", "Copies a thread up to a message, or whole, into a new thread, and returns the new one's id. The thread itself keeps all of its messages.", adds(false), (*Caller).forkThread),
		add(s, "handoff_thread", "Hand a thread off", "Continues a thread in a new one that knows only your summary of it, and returns the new one's id. Both record the other.", adds(false), (*Caller).handoffThread),
	)
}

// schemaOf returns the schema of arguments.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	raw, err := arguments.Of(t)
	if err != nil {
		return nil, err
	}
	made := &jsonschema.Schema{}
	return made, made.UnmarshalJSON(raw)
}

// add adds a tool, whose arguments are checked against the schema of A.
func add[A, R any](s *Server, name, title, description string, hints *mcp.ToolAnnotations, call func(*Caller, context.Context, A) (R, error)) error {
	return addAsking(s, name, title, description, hints, func(c *Caller, ctx context.Context, _ *mcp.CallToolRequest, a A) (*mcp.CallToolResult, R, error) {
		out, err := call(c, ctx, a)
		return nil, out, err
	})
}

// addAsking is add for a tool that may ask the client's user, or say more than its result.
func addAsking[A, R any](s *Server, name, title, description string, hints *mcp.ToolAnnotations, call func(*Caller, context.Context, *mcp.CallToolRequest, A) (*mcp.CallToolResult, R, error)) error {
	in, err := schemaOf(reflect.TypeFor[A]())
	if err != nil {
		return err
	}
	mcp.AddTool(s.mcp, &mcp.Tool{Name: name, Title: title, Description: description, InputSchema: in, Annotations: hints},
		func(ctx context.Context, req *mcp.CallToolRequest, a A) (*mcp.CallToolResult, R, error) {
			res, out, err := call(s.callerOf(ctx), ctx, req, a)
			if err != nil {
				err = told(ended(ctx, err))
			}
			return res, out, err
		})
	return nil
}

type readArgs struct {
	Thread      string `json:"thread" doc:"The thread: its id (T-...), or key: and its key."`
	Question    string `json:"question,omitempty" doc:"What you want to know. If the messages do not fit into one answer, those that share words with it are returned, instead of the first ones. It is recorded with mentionedBy."`
	From        int64  `json:"from,omitempty" doc:"The index of the first message, from 0. To continue, pass from and skip of next."`
	To          *int64 `json:"to,omitempty" doc:"The index of the last message."`
	Skip        int64  `json:"skip,omitempty" doc:"How many bytes of the text of the message from are left out."`
	MentionedBy string `json:"mentionedBy,omitempty" doc:"The thread in which you work, if it is one of Skein's: the read is recorded on both."`
}

func (c *Caller) readThread(ctx context.Context, a readArgs) (*threadtools.Page, error) {
	r := c.threads
	if a.MentionedBy != "" {
		r = r.For(a.MentionedBy)
	}
	return r.Read(ctx, threadtools.ReadArgs{Thread: a.Thread, Question: a.Question, From: a.From, To: a.To, Skip: a.Skip})
}

func (c *Caller) findThread(ctx context.Context, a threadtools.FindArgs) (*threadtools.Found, error) {
	return c.threads.Find(ctx, a)
}

type listArgs struct {
	Limit    int64  `json:"limit,omitempty" doc:"How many threads to return: 1 to 50, default 10."`
	Agent    string `json:"agent,omitempty" doc:"Only threads of this agent."`
	Archived bool   `json:"archived,omitempty" doc:"The archived threads, instead of the others."`
	Cursor   string `json:"cursor,omitempty" doc:"next of the answer before, with the same other arguments."`
}

func (c *Caller) listThreads(ctx context.Context, a listArgs) (*threadtools.Found, error) {
	return c.threads.Find(ctx, threadtools.FindArgs{Limit: a.Limit, Agent: a.Agent, Archived: a.Archived, Cursor: a.Cursor})
}

type createArgs struct {
	Title string `json:"title,omitempty" doc:"A title for lists."`
	Key   string `json:"key,omitempty" doc:"A public name, unique in the tenant, such as support/42. It makes a repeat of the call safe."`
	Agent string `json:"agent,omitempty" doc:"The agent in charge."`
}

type created struct {
	ThreadID string `json:"threadId"`
	URI      string `json:"uri"` // of its resource
}

func (c *Caller) createThread(ctx context.Context, a createArgs) (*created, error) {
	var reply *events.Reply
	var err error
	if a.Key != "" {
		reply, err = c.client.Send(ctx, "", events.ResolveThread{Key: a.Key, Title: a.Title, AgentID: a.Agent}, c.once()...)
	} else {
		reply, err = c.client.Send(ctx, "", events.CreateThread{Title: a.Title, AgentID: a.Agent}, c.once()...)
	}
	if err != nil {
		return nil, err
	}
	return &created{reply.ThreadID, uriOf(reply.ThreadID)}, nil
}

type messageArgs struct {
	Thread string `json:"thread" doc:"The thread: its id (T-...), or key: and its key."`
	Text   string `json:"text" doc:"What is said."`
	Role   string `json:"role,omitempty" enum:"user,assistant" doc:"Who says it; user if absent."`
}

type added struct {
	ThreadID  string `json:"threadId"`
	MessageID string `json:"messageId"`
	Version   int64  `json:"version"` // of the thread
}

func (c *Caller) addMessage(ctx context.Context, a messageArgs) (*added, error) {
	d := events.AddMessage{Role: events.FromUser, Content: &a.Text}
	if a.Role != "" {
		d.Role = events.MessageRole(a.Role)
	}
	reply, err := c.client.Send(ctx, a.Thread, d, c.once()...)
	if err != nil {
		return nil, err
	}
	return &added{reply.ThreadID, reply.Result.ItemID, reply.Version}, nil
}

type forkArgs struct {
	Thread  string `json:"thread" doc:"The thread: its id (T-...), or key: and its key."`
	Message *int64 `json:"message,omitempty" doc:"The index of the last message that is copied, as read_thread shows it; all of them if absent."`
	Title   string `json:"title,omitempty" doc:"The new thread's title; made of the thread's if absent."`
}

func (c *Caller) forkThread(ctx context.Context, a forkArgs) (*created, error) {
	d := events.ForkThread{MessageIndex: a.Message, Title: a.Title}
	if a.Message == nil {
		t, err := client.Read(ctx, c.client, events.GetThread{ThreadID: a.Thread})
		if err != nil {
			return nil, err
		}
		d.Version = &t.Version
	}
	reply, err := c.client.Send(ctx, a.Thread, d, c.once()...)
	if err != nil {
		return nil, err
	}
	return &created{reply.Result.ChildID, uriOf(reply.Result.ChildID)}, nil
}

type handoffArgs struct {
	Thread  string `json:"thread" doc:"The thread: its id (T-...), or key: and its key."`
	Summary string `json:"summary" doc:"What the new thread is to know: its first message."`
	Comment string `json:"comment,omitempty" doc:"What the thread is handed off for."`
	Agent   string `json:"agent,omitempty" doc:"The agent in charge of the new thread; the thread's own if absent."`
}

func (c *Caller) handoffThread(ctx context.Context, a handoffArgs) (*created, error) {
	if err := events.CheckSummary(a.Summary); err != nil { // without one, an agent would have to write it
		return nil, err
	}
	reply, err := c.client.Send(ctx, a.Thread, events.HandoffThread{Summary: a.Summary, Comment: a.Comment, AgentID: a.Agent}, c.once()...)
	if err != nil {
		return nil, err
	}
	return &created{reply.Result.ChildID, uriOf(reply.Result.ChildID)}, nil
}
