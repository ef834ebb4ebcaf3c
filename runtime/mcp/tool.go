package mcp

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/schema/arguments"
)

// KeyName is the field of a call's _meta with its key.
const KeyName = "skein/idempotency-key"

// ErrDown says that a server may serve later, without any change here.
var ErrDown = errors.New("the MCP server is down")

const (
	maxTools       = 1000
	maxDescription = 8 << 10 // bytes
)

// Listing is the list of a server's tools.
type Listing struct {
	Tools []runtime.Tool // in order of their names
	Left  []LeftOut      // tools that cannot be offered, in order of their names
}

// LeftOut is a tool of a server that cannot be a tool here.
type LeftOut struct {
	Name   string // the server's name of it
	Reason string
}

// Tools lists the tools of a server. A tool's name is SERVER__TOOL, as in its spec;
// characters that are not permitted become _, and then 8 hex digits follow to make it
// unique. readOnlyHint makes it ReadOnly, idempotentHint Idempotent, and the
// definition's Approval Manual. A tool is not portable. It stays valid when the session
// ends: each call finds its own.
//
// The error is an *events.Error: not_found, or unavailable with the server's name and
// the reason. It is an ErrDown if the server cannot be reached, or says that it cannot serve now.
func (m *Manager) Tools(ctx context.Context, server string) (*Listing, error) {
	l, ok := m.links[server]
	if !ok {
		return nil, events.Missing("MCP server", server)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.def.timeout(), outOfTime(l.def.timeout()))
	defer cancel()
	var listed []*mcp.Tool
	var f *failure
	if err := m.failing(ctx, l); err != nil {
		f = noSession(err)
	} else {
		listed, f = request(ctx, m, l, list)
	}
	if f != nil {
		err := events.Errorf(events.Unavailable, "the tools of the MCP server %s are not known: %s", server, f.text)
		if f.down {
			err.Cause = ErrDown
		}
		return nil, err
	}
	return m.offer(l, listed), nil
}

// Tool returns the tool of a server with the server's name of it. The error is an
// *events.Error: not_found, with the reason if it cannot be offered, or unavailable.
func (m *Manager) Tool(ctx context.Context, server, name string) (runtime.Tool, error) {
	listed, err := m.Tools(ctx, server)
	if err != nil {
		return nil, err
	}
	for _, t := range listed.Tools {
		if t.(*tool).name == name {
			return t, nil
		}
	}
	for _, l := range listed.Left {
		if l.Name == name {
			return nil, events.Errorf(events.NotFound, "the tool %s of the MCP server cannot be used: %s", excerpt.Of(name, 200), l.Reason)
		}
	}
	return nil, events.Missing("tool of the MCP server", name)
}

// OwnName returns the server's name of a tool in a Listing.
func OwnName(t runtime.Tool) string {
	own, ok := t.(*tool)
	if !ok {
		return ""
	}
	return own.name
}

// list requests all pages.
func list(ctx context.Context, client *mcp.ClientSession) ([]*mcp.Tool, error) {
	var out []*mcp.Tool
	params := &mcp.ListToolsParams{}
	for {
		page, err := client.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Tools...)
		if page.NextCursor == "" || len(out) > maxTools || len(page.Tools) == 0 {
			return out, nil
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
}

// offer returns the tools of a server's list. Of two with the same name here, the one
// whose own name it is stays.
func (m *Manager) offer(l *link, listed []*mcp.Tool) *Listing {
	slices.SortStableFunc(listed, func(a, b *mcp.Tool) int {
		exactA, exactB := toolName(l.def.Name, a.Name) == l.def.Name+between+a.Name, toolName(l.def.Name, b.Name) == l.def.Name+between+b.Name
		if exactA != exactB {
			if exactA {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := &Listing{}
	taken := map[string]bool{}
	leave := func(t *mcp.Tool, reason string) {
		out.Left = append(out.Left, LeftOut{Name: oneLine(excerpt.Of(t.Name, 200)), Reason: oneLine(excerpt.Of(reason, 1<<10))})
	}
	for i, t := range listed {
		spec, err := l.def.spec(t)
		switch {
		case i >= maxTools:
			leave(t, fmt.Sprintf("the server has more than %d tools", maxTools))
			return out.sorted()
		case t.Name == "":
			leave(t, "it has no name")
		case taken[spec.Name]:
			leave(t, "another tool has the name "+spec.Name)
		case err != nil:
			leave(t, err.Error())
		default:
			taken[spec.Name] = true
			out.Tools = append(out.Tools, &tool{m, l, t.Name, spec})
		}
	}
	return out.sorted()
}

func (l *Listing) sorted() *Listing {
	slices.SortFunc(l.Tools, func(a, b runtime.Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	slices.SortStableFunc(l.Left, func(a, b LeftOut) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// spec returns the spec of a server's tool.
func (s Server) spec(t *mcp.Tool) (runtime.ToolSpec, error) {
	spec := runtime.ToolSpec{Name: toolName(s.Name, t.Name), Description: t.Description, Timeout: s.timeout(), NotPortable: true}
	if spec.Description == "" {
		spec.Description = t.Title
	}
	spec.Description = excerpt.Of(spec.Description, maxDescription)
	destructive := true // the hint's default
	if hints := t.Annotations; hints != nil {
		spec.ReadOnly = hints.ReadOnlyHint
		spec.Idempotent = hints.IdempotentHint || hints.ReadOnlyHint
		destructive = hints.DestructiveHint == nil || *hints.DestructiveHint
	}
	spec.Manual = s.manual(spec, destructive)
	if t.InputSchema == nil {
		return spec, nil
	}
	schema, err := stdjson.Marshal(t.InputSchema)
	if err != nil {
		return spec, err
	}
	spec.Parameters = schema
	_, err = arguments.Compile(spec.Parameters)
	return spec, err
}

// tool is a tool of a server.
type tool struct {
	manager *Manager
	link    *link
	name    string // the server's name of it
	spec    runtime.ToolSpec
}

func (t *tool) Spec() runtime.ToolSpec { return t.spec }

// Call makes the call once.
func (t *tool) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	limited, cancel := context.WithTimeoutCause(ctx, t.spec.Timeout, outOfTime(t.spec.Timeout))
	defer cancel()
	given := in.Arguments
	if len(given) == 0 {
		given = events.JSON("{}")
	}
	answer, f := request(limited, t.manager, t.link, func(ctx context.Context, client *mcp.ClientSession) (*mcp.CallToolResult, error) {
		return client.CallTool(ctx, &mcp.CallToolParams{
			Meta: mcp.Meta{KeyName: in.Key}, Name: t.name, Arguments: given,
		})
	})
	switch {
	case f == nil:
		return t.result(answer), nil
	case ctx.Err() != nil: // the caller cancelled it
		return runtime.ToolResult{}, ctx.Err()
	case f.answer:
		return runtime.Failed("the MCP server " + t.link.def.Name + " refused the call: " + f.text), nil
	}
	text := "the MCP server " + t.link.def.Name + ": " + f.text
	if !f.made {
		text += "; the call was not made"
	} else if !t.spec.Idempotent {
		return runtime.ToolResult{}, errors.New(text + "; the call may have been made")
	}
	if f.passes {
		return runtime.ToolResult{}, &runtime.RetryError{After: f.after, NotMade: !f.made, Err: errors.New(text)}
	}
	return runtime.ToolResult{}, errors.New(text)
}

func outOfTime(limit time.Duration) error { return fmt.Errorf("no answer within %s", limit) }
