package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/rpcline"
)

// Options configures a Server. Agent is required; the zero value of any other field means its default.
type Options struct {
	Agent   string               // that answers in every session
	User    string               // to whom the threads of new sessions belong; default nobody
	Version string               // of the program
	Warn    func(message string) // called with what no answer tells; default nothing is
}

// Server serves an agent to one client.
type Server struct {
	c *client.Client
	o Options
	*conn

	mu       sync.Mutex // guards what follows
	ready    bool       // the client has sent initialize
	client   clientCapabilities
	sessions map[string]*session
	active   map[jsonrpc.ID]func() // cancel the requests that are not answered
}

// New returns a server. The client stays the caller's.
func New(c *client.Client, o Options) *Server {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	return &Server{c: c, o: o, sessions: map[string]*session{}, active: map[jsonrpc.ID]func(){}}
}

// errHungUp is why the work for a client ends that has gone.
var errHungUp = errors.New("the client has gone")

// Serve serves one connection, until in or ctx ends, neither of which is an error. Requests that came
// before the end of in are answered, except prompts, whose runs go on. It does not close in and out. A
// server serves once.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s.conn = &conn{out: out, waiting: map[jsonrpc.ID]chan *jsonrpc.Response{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var requests sync.WaitGroup
	ended, broken := make(chan error, 1), make(chan error, 1)
	go func() {
		err := s.read(ctx, in, &requests, broken)
		s.hangUp()
		requests.Wait()
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
		if errors.Is(err, io.EOF) {
			err = nil
		}
	case err = <-broken:
	case <-ctx.Done():
	}
	s.hangUp()
	return err
}

// read reads messages. The error is io.EOF at the end of in.
func (s *Server) read(ctx context.Context, in io.Reader, requests *sync.WaitGroup, broken chan<- error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, whole, end := rpcline.Read(r)
		m, refusal := rpcline.Decode(line, whole)
		var err error
		switch m := m.(type) {
		case nil:
			if refusal == nil {
				break
			}
			var raw []byte
			if raw, err = rpcline.Refusal(line, refusal); err == nil {
				err = s.writeLine(raw)
			}
		case *jsonrpc.Response:
			s.answered(m)
		case *jsonrpc.Request:
			if !m.IsCall() {
				s.notified(ctx, m)
				break
			}
			work, after := s.request(ctx, m)
			requests.Go(func() {
				defer after()
				result, err := work()
				s.forget(m.ID)
				if ctx.Err() != nil || errors.Is(err, errHungUp) {
					return
				}
				if err := s.reply(m.ID, result, err); err != nil {
					select {
					case broken <- err:
					default: // it is known
					}
					return
				}
				if then, ok := result.(*restored); ok {
					then.follow()
				}
			})
		}
		if err != nil {
			return err
		}
		if end != nil {
			return end
		}
	}
}

// request returns the work for a request, and what is done after its answer. What decides about later
// messages is done at once.
func (s *Server) request(ctx context.Context, m *jsonrpc.Request) (work func() (any, error), after func()) {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	ready := s.ready
	s.active[m.ID] = stop
	s.mu.Unlock()
	refuse := func(err error) func() (any, error) { return func() (any, error) { return nil, err } }
	if m.Method == "initialize" {
		result, err := s.initialize(m.Params)
		return func() (any, error) { return result, err }, stop
	}
	if !ready {
		return refuse(&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "send initialize first"}), stop
	}
	switch m.Method {
	case "authenticate":
		return refuse(events.Invalid("/methodId", "there are no methods to authenticate with; skein acp has its credentials from --creds")), stop
	case "session/new":
		return with(m.Params, func(p setup) (any, error) { return s.newSession(ctx, p) }), stop
	case "session/load":
		return with(m.Params, func(p setup) (any, error) { return s.open(ctx, p, true) }), stop
	case "session/resume":
		return with(m.Params, func(p setup) (any, error) { return s.open(ctx, p, false) }), stop
	case "session/list":
		return with(m.Params, func(p listing) (any, error) { return s.list(ctx, p) }), stop
	case "session/close":
		return with(m.Params, func(p named) (any, error) { return s.close(ctx, p.SessionID) }), stop
	case "session/prompt":
		p, err := decode[prompt](m.Params)
		if err != nil {
			return refuse(err), stop
		}
		t, err := s.begin(p.SessionID)
		if err != nil {
			return refuse(err), stop
		}
		s.mu.Lock()
		s.active[m.ID] = t.halt
		s.mu.Unlock()
		return func() (any, error) { return t.answer(p.Prompt) }, func() {
			close(t.done)
			stop()
		}
	}
	return refuse(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the method " + m.Method + " is not supported"}), stop
}

// notified takes a notification.
func (s *Server) notified(ctx context.Context, m *jsonrpc.Request) {
	switch m.Method {
	case "session/cancel":
		p, err := decode[named](m.Params)
		if err != nil {
			s.o.Warn("session/cancel: " + err.Error())
			return
		}
		if of := s.session(p.SessionID); of != nil {
			of.halt()
		}
	case "$/cancel_request":
		var p struct {
			ID any `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p) // another one names none
		id, err := jsonrpc.MakeID(p.ID)
		s.mu.Lock()
		cancel := s.active[id]
		s.mu.Unlock()
		if err == nil && cancel != nil {
			cancel()
		}
	}
}

// forget drops what would cancel a request.
func (s *Server) forget(id jsonrpc.ID) {
	s.mu.Lock()
	delete(s.active, id)
	s.mu.Unlock()
}

func (s *Server) initialize(params json.RawMessage) (*initialized, error) {
	p, err := decode[struct {
		ProtocolVersion *int               `json:"protocolVersion"`
		Capabilities    clientCapabilities `json:"clientCapabilities"`
	}](params)
	if err != nil {
		return nil, err
	}
	if p.ProtocolVersion == nil {
		return nil, events.Invalid("/protocolVersion", "a version is needed; this is version %d", protocolVersion)
	}
	s.mu.Lock()
	s.ready, s.client = true, p.Capabilities
	s.mu.Unlock()
	out := &initialized{ProtocolVersion: protocolVersion, Info: implementation{"skein", "Skein: " + s.o.Agent, s.o.Version}, AuthMethods: []struct{}{}}
	out.Capabilities.LoadSession = true
	out.Capabilities.Prompt.Image, out.Capabilities.Prompt.EmbeddedContext = true, true
	return out, nil
}

// with returns the work for a request with parameters.
func with[P any](raw json.RawMessage, do func(P) (any, error)) func() (any, error) {
	return func() (any, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, err
		}
		return do(p)
	}
}

// decode returns the parameters of a message.
func decode[P any](raw json.RawMessage) (p P, err error) {
	if len(raw) == 0 {
		return p, nil
	}
	err = json.Unmarshal(raw, &p)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		path := "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		return p, events.Invalid(path, "%.80q has the wrong type", path)
	}
	if err != nil {
		return p, events.Invalid("", "the parameters are not a JSON object")
	}
	return p, nil
}
