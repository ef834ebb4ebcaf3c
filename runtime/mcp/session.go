package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errBroken is the unexpected end of a session.
var errBroken = errors.New("the session broke")

// session is a session with a server.
type session struct {
	link    *link
	client  *mcp.ClientSession
	process *process // nil: on HTTP
	secrets map[string]string

	ctx  context.Context // ends with the session
	over context.CancelCauseFunc

	note func(detail string) // receives details that callers are not told

	// guarded by the manager's lock
	users  int
	used   time.Time // when the last user released it
	idle   *time.Timer
	ending bool
}

// startError says why no session could be started.
type startError struct {
	text string
	down bool // the server cannot be reached, or says that it cannot serve now
}

func (e *startError) Error() string { return e.text }

// connect starts a session. If it returns an error, a *startError, the session, which may be nil,
// must be stopped too.
func connect(ctx context.Context, l *link, o Options) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Start, fmt.Errorf("it did not complete the handshake within %s", o.Start))
	defer cancel()
	secrets, err := l.def.secrets(o.Variable)
	if err != nil {
		return nil, &startError{text: err.Error()}
	}
	s := &session{link: l, secrets: secrets}
	s.note = func(detail string) {
		o.Logger.Warn().Str("server", l.def.Name).Str("host", l.def.host()).Str("detail", s.safe(detail)).Msg("an MCP server could not be used")
	}
	var transport mcp.Transport
	if l.def.URL != "" {
		transport = s.web(o)
	} else {
		if s.process, err = startProcess(l.def, s.environment(o), o.Stderr(l.def.Name), o.MaxAnswer); err != nil {
			return nil, &startError{text: "its program cannot be started: " + s.safe(err.Error())}
		}
		transport = s.process.transport()
		// A program that does not read blocks the library; its end does not.
		defer context.AfterFunc(ctx, s.process.kill)()
	}
	ctx, e := withExchange(ctx)
	defer e.cancel(nil)
	client := mcp.NewClient(&mcp.Implementation{Name: "skein", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	if s.client, err = client.Connect(ctx, transport, nil); err != nil {
		s.client = nil
		return s, s.startFailure(ctx, e, err)
	}
	s.ctx, s.over = context.WithCancelCause(context.Background())
	return s, nil
}

// startFailure returns why the handshake failed.
func (s *session) startFailure(ctx context.Context, e *exchange, err error) *startError {
	said := s.answer(err)
	switch {
	case ctx.Err() != nil:
		return &startError{text: context.Cause(ctx).Error(), down: true}
	case said != nil && s.process == nil:
		s.note("it refused the handshake: " + said.Message)
		return &startError{text: noAnswer}
	case said != nil:
		return &startError{text: "it refused the handshake: " + s.safe(said.Message)}
	case s.process != nil:
		return &startError{text: s.process.cause().Error()}
	}
	f := s.webFailure(e)
	return &startError{text: f.text, down: f.down}
}

// environment returns the environment of a program.
func (s *session) environment(o Options) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME"} {
		if value, ok := o.Variable(name); ok && !slices.Contains(s.link.def.Env, name) {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range s.link.def.Env {
		env = append(env, name+"="+s.secrets[name])
	}
	return env
}

func (s *session) web(o Options) mcp.Transport {
	headers := http.Header{}
	for name, variable := range s.link.def.Headers {
		headers.Set(name, s.secrets[variable])
	}
	way := &web{base: s.link.way, headers: headers, most: o.MaxAnswer}
	return &mcp.StreamableClientTransport{Endpoint: s.link.def.URL, HTTPClient: way.client(), DisableStandaloneSSE: true, MaxEventSize: -1}
}

// stop ends a session's resources, and waits for that. Its calls must have been
// cancelled.
func (s *session) stop() {
	if s == nil {
		return
	}
	if s.process != nil {
		s.process.stop()
	}
	if s.client != nil {
		_ = s.client.Close() // it is over in any case
	}
}

// safe returns a text of the server or of the system without secrets, shortened.
func (s *session) safe(text string) string {
	const most = 1 << 10
	text = masked(text, s.secrets)
	if len(text) > most {
		text = text[:most] + "..."
	}
	return oneLine(text)
}
