package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// keyPrefix begins the keys of threads that session/new creates.
const keyPrefix = "acp:"

// listPage is how many sessions a page of a list has at most.
const listPage = 50

// session is a thread that the client has open.
type session struct {
	id string

	mu        sync.Mutex // guards what follows
	left      *turn      // shows a run that was active when the session was opened
	turn      *turn      // answers a prompt
	last      *turn      // of the last prompt
	shown     *encoder   // what the client knows of the last run
	questions []question // that were asked as texts, and are not answered
	closed    bool
}

// question is a question that waits for the next prompt.
type question struct {
	execution string
	asked     events.ApprovalRequested
	answered  []string // calls about which it was asked with, and that were answered
}

type named struct {
	SessionID string `json:"sessionId"`
}

// prompt are the parameters of session/prompt.
type prompt struct {
	SessionID string  `json:"sessionId"`
	Prompt    []block `json:"prompt"`
}

// listing are the parameters of session/list.
type listing struct {
	CWD    string `json:"cwd"`
	Cursor string `json:"cursor"`
}

// session returns a session that is open, nil if it is not.
func (s *Server) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// settings are what a thread keeps of its session.
type settings struct {
	ACP struct {
		CWD string `json:"cwd"`
	} `json:"acp"`
}

// check refuses what a session cannot have, and returns what is not used of the rest.
func (p *setup) check() (*meta, error) {
	if !filepath.IsAbs(p.CWD) && !windowsPath(p.CWD) {
		return nil, events.Invalid("/cwd", "the working directory is an absolute path, and not %.200q", p.CWD)
	}
	if len(p.Directories) > 0 {
		return nil, events.Invalid("/additionalDirectories", "additional directories are not supported; leave them out")
	}
	if len(p.MCPServers) == 0 {
		return nil, nil
	}
	m := &meta{}
	m.Skein.NotSupported = []notSupported{{"mcpServers", "the agent does not run on this machine; define the servers of its tools in Skein"}}
	return m, nil
}

// windowsPath reports whether a path begins with a drive, or is one of a share.
func windowsPath(path string) bool {
	return len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') || strings.HasPrefix(path, `\\`)
}

// said tells the log what is not supported, as well as the answer.
func (s *Server) said(m *meta) {
	if m == nil {
		return
	}
	for _, n := range m.Skein.NotSupported {
		s.o.Warn(n.Field + " is not supported: " + n.Reason)
	}
}

func (s *Server) newSession(ctx context.Context, p setup) (any, error) {
	m, err := p.check()
	if err != nil {
		return nil, err
	}
	var own settings
	own.ACP.CWD = p.CWD
	metadata, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	id := uuid.Must(uuid.NewV7()).String()
	reply, err := s.c.Send(ctx, "", events.CreateThread{Key: keyPrefix + id, AgentID: s.o.Agent, UserID: s.o.User, Metadata: metadata})
	if err != nil {
		return nil, err
	}
	s.said(m)
	s.mu.Lock()
	s.sessions[reply.ThreadID] = &session{id: reply.ThreadID}
	s.mu.Unlock()
	return &opened{SessionID: reply.ThreadID, Meta: m}, nil
}

// restored is the answer to session/load and session/resume.
type restored struct {
	opened
	turn *turn // that shows what is live
}

// follow shows what is live, after the answer.
func (r *restored) follow() {
	if r.turn != nil {
		go r.turn.showLeft()
	}
}

// open opens a thread as a session, and sends its messages if it is loaded.
func (s *Server) open(ctx context.Context, p setup, load bool) (any, error) {
	m, err := p.check()
	if err != nil {
		return nil, err
	}
	if !events.ValidThreadID(p.SessionID) {
		return nil, events.Missing("session", p.SessionID)
	}
	now, err := s.c.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	thread, err := client.Read(ctx, now, events.GetThread{ThreadID: p.SessionID})
	if err != nil {
		return nil, err
	}
	if before := s.session(p.SessionID); before != nil && before.busy() {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session is open, and at work; wait for the end of its turn, or cancel it"}
	}
	var x *events.Execution
	if thread.Run != nil {
		x, err = client.Read(ctx, now, events.GetExecution{ThreadID: thread.ID, ExecutionID: thread.Run.ExecutionID})
		if err != nil && !events.IsNotFound(err) {
			return nil, err
		}
	}
	if load {
		if err := s.replay(ctx, now, thread.ID, x); err != nil {
			return nil, err
		}
	}
	s.said(m)
	of := &session{id: thread.ID}
	out := &restored{opened: opened{Meta: m}}
	if x != nil {
		of.left = s.newTurn(of)
		of.left.left, out.turn = x, of.left
	}
	s.mu.Lock()
	s.sessions[thread.ID] = of
	s.mu.Unlock()
	return out, nil
}

// busy reports whether the session shows a run.
func (of *session) busy() bool {
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.turn != nil || of.left != nil
}

// list returns a page of the agent's sessions, which were created here.
func (s *Server) list(ctx context.Context, p listing) (any, error) {
	q := events.ListThreads{AgentID: s.o.Agent, UserID: s.o.User, KeyPrefix: keyPrefix, Cursor: p.Cursor, Limit: new(int64(listPage))}
	now, err := s.c.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	out := &list{Sessions: []listed{}}
	for len(out.Sessions) == 0 {
		page, err := client.Read(ctx, now, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Threads {
			t := &page.Threads[i]
			var own settings
			_ = json.Unmarshal(t.Metadata, &own) // another program's has none
			if own.ACP.CWD == "" || p.CWD != "" && own.ACP.CWD != p.CWD {
				continue
			}
			out.Sessions = append(out.Sessions, listed{t.ID, own.ACP.CWD, t.Title, max(t.CreatedAt, t.UpdatedAt)})
		}
		if out.Next, q.Cursor = page.NextCursor, page.NextCursor; q.Cursor == "" {
			break
		}
	}
	return out, nil
}

// close cancels what a session does, and closes it. The thread stays.
func (s *Server) close(ctx context.Context, id string) (any, error) {
	of := s.session(id)
	if of == nil {
		return nil, events.Missing("session", id)
	}
	of.mu.Lock()
	of.closed = true
	turns := []*turn{of.left, of.last} // its prompt is answered first
	of.mu.Unlock()
	of.halt()
	for _, t := range turns {
		if t == nil {
			continue
		}
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	delete(s.sessions, id)
	s.mu.Unlock()
	return struct{}{}, nil
}

// halt cancels the turns of a session.
func (of *session) halt() {
	of.mu.Lock()
	turns := []*turn{of.left, of.turn}
	of.mu.Unlock()
	for _, t := range turns {
		if t != nil {
			t.halt()
		}
	}
}

// hangUp ends what is shown to a client that has gone. Runs go on.
func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.sessions {
		of.mu.Lock()
		for _, t := range []*turn{of.left, of.turn} {
			if t != nil {
				t.cancel(errHungUp)
			}
		}
		of.mu.Unlock()
	}
}
