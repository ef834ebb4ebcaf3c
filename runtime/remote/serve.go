package remote

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Causes of the end of a call's context in a process.
var (
	errCancelled = errors.New("the call was cancelled")
	errClosing   = errors.New("the process is stopping")
)

// Service is a reactor or a tool that this process serves, until it is closed.
type Service struct {
	nc     *nats.Conn
	names  events.Names
	logger zerolog.Logger
	work   func(ctx context.Context, body []byte, send func(any) error) (any, error)
	sub    *nats.Subscription
	gone   chan struct{} // closed when no more requests are accepted
	ctx    context.Context
	stop   context.CancelCauseFunc
	calls  sync.WaitGroup
}

// ServeReactor makes this process a reactor: it answers on skein.reactor.{name}, and
// shares the requests with all other processes that do. A call's context ends when it
// is cancelled, when Close gives up on it, and when the connection is closed.
func ServeReactor(nc *nats.Conn, names events.Names, name string, r runtime.Reactor, opts ...Option) (*Service, error) {
	subject, err := names.Reactor(name)
	if err != nil {
		return nil, err
	}
	return serve(nc, names, subject, opts, func(ctx context.Context, body []byte, send func(any) error) (any, error) {
		var in reactorRequest
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, fmt.Errorf("the request %w", shape(err))
		}
		if in.Protocol.Pieces != nil {
			whole, err := gather(ctx, nc, names, in.Protocol.Pieces, send)
			if err != nil {
				return nil, err
			}
			in = reactorRequest{}
			if err := json.Unmarshal(whole, &in); err != nil {
				return nil, fmt.Errorf("the whole request %w", shape(err))
			}
		}
		reaction, err := r.React(ctx, &in.StepInput, stream{send})
		if err == nil && reaction == nil {
			err = errors.New("the reactor returned neither a reaction nor an error")
		}
		if err != nil {
			return nil, err
		}
		return reactorResult{kindResult, *reaction}, nil
	})
}

// ServeTool makes this process a tool: it answers on skein.tool.{name}, with the name
// in its spec. It is otherwise like ServeReactor.
func ServeTool(nc *nats.Conn, names events.Names, t runtime.Tool, opts ...Option) (*Service, error) {
	subject, err := names.Tool(t.Spec().Name)
	if err != nil {
		return nil, err
	}
	return serve(nc, names, subject, opts, func(ctx context.Context, body []byte, _ func(any) error) (any, error) {
		var in toolRequest
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, fmt.Errorf("the request %w", shape(err))
		}
		result, err := t.Call(ctx, &runtime.ToolInput{
			Tenant: in.Tenant, ThreadID: in.ThreadID, ExecutionID: in.ExecutionID, StepID: in.StepID,
			CallID: in.CallID, Name: in.Name, Key: in.Key, Attempt: in.Attempt, Arguments: in.Arguments,
		})
		if err != nil {
			return nil, err
		}
		return toolResult{kindResult, result}, nil
	})
}

func serve(nc *nats.Conn, names events.Names, subject string, opts []Option, work func(context.Context, []byte, func(any) error) (any, error)) (*Service, error) {
	set, err := with(opts)
	if err != nil {
		return nil, err
	}
	s := &Service{nc: nc, names: names, logger: set.logger, work: work, gone: make(chan struct{})}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.sub, err = nc.QueueSubscribe(subject, events.WorkerQueue, func(m *nats.Msg) {
		s.calls.Go(func() { s.answer(m) })
	})
	if err != nil {
		return nil, fmt.Errorf("cannot serve %s: %w", subject, err)
	}
	gone := sync.OnceFunc(func() {
		close(s.gone)
		if nc.IsClosed() { // there are no more answers
			s.stop(errClosing)
		}
	})
	s.sub.SetClosedHandler(func(string) { gone() })
	if err := nc.Flush(); err != nil { // requests arrive from here on
		_ = s.sub.Unsubscribe()
		return nil, fmt.Errorf("cannot serve %s: %w", subject, err)
	}
	return s, nil
}

// Close accepts no more requests, and waits until those in flight are answered. If ctx
// ends first, they are cancelled, the worker is told to retry, and Close returns ctx's
// error. The connection is not closed.
func (s *Service) Close(ctx context.Context) error {
	if err := s.sub.Drain(); err == nil {
		select {
		case <-s.gone:
		case <-ctx.Done():
		}
	}
	done := make(chan struct{})
	go func() { s.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.stop(errClosing)
		<-done
		return errors.Join(context.Cause(ctx), s.nc.Flush())
	}
	s.stop(errClosing)
	if s.nc.IsConnected() {
		return s.nc.Flush() // flush the last answers
	}
	return nil
}

// answer answers one request.
func (s *Service) answer(m *nats.Msg) {
	if m.Reply == "" {
		return // nothing waits for an answer
	}
	var head struct {
		Protocol protocol `json:"protocol"`
	}
	send := func(v any) error { return s.send(m.Reply, head.Protocol.MaxBytes, v) }
	if err := json.Unmarshal(m.Data, &head); err != nil {
		s.last(m.Subject, send(message{Kind: kindError, Message: "the request " + shape(err).Error()}))
		return
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	if subject := head.Protocol.Cancel; isCancel(s.names, subject) {
		sub, err := s.nc.Subscribe(subject, func(*nats.Msg) { cancel(errCancelled) })
		if err == nil {
			defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
		}
	}
	var beats sync.WaitGroup
	beats.Go(func() { beat(ctx, head.Protocol.HeartbeatMs, send) })
	result, err := s.run(ctx, m, send)
	cancelled := context.Cause(ctx)
	cancel(nil)
	beats.Wait() // nothing is sent after the last message
	if err == nil {
		if err = send(result); err == nil {
			return
		}
	}
	out := message{Kind: kindError, Message: clip(err.Error())}
	var retry *runtime.RetryError
	switch {
	case errors.As(err, &retry):
		out.Retry, out.AfterMs = true, retry.After.Milliseconds()
	case errors.Is(cancelled, errClosing):
		out.Retry, out.Message = true, errClosing.Error()
	}
	s.last(m.Subject, send(out))
}

// isCancel reports whether a subject is one on which a worker sends messages to the
// process of a call.
func isCancel(names events.Names, subject string) bool {
	token, ok := strings.CutPrefix(subject, names.Cancel(""))
	return ok && token != "" && !strings.ContainsAny(token, ".*> \t\r\n")
}

// last logs that an answer's last message could not be sent.
func (s *Service) last(subject string, err error) {
	if err != nil {
		s.logger.Error().Err(err).Str("subject", subject).Msg("cannot answer a call")
	}
}

// run calls work, and returns a panic as an error. The text of the panic may contain
// anything: only that of the Go runtime is reported.
func (s *Service) run(ctx context.Context, m *nats.Msg, send func(any) error) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			runtime.LogPanic(s.logger.Error().Str("subject", m.Subject), v, "a call")
			result, err = nil, errors.New("it panicked")
			if known, ok := v.(goruntime.Error); ok {
				err = fmt.Errorf("it panicked: %w", known)
			}
		}
	}()
	result, err = s.work(ctx, m.Data, send)
	return result, runtime.Returned(err)
}

// beat sends heartbeats, the first immediately.
func beat(ctx context.Context, everyMs int64, send func(any) error) {
	every := time.Duration(everyMs) * time.Millisecond
	if everyMs < 1 || every > time.Minute {
		every = 5 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = send(message{Kind: kindHeartbeat}) // the next may succeed
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// send sends one message of an answer.
func (s *Service) send(to string, most int64, v any) error {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("the result cannot be encoded as JSON: %w", err)
	}
	if server := s.nc.MaxPayload(); most <= 0 || server > 0 && server < most {
		most = server
	}
	if most > 0 && int64(len(body)) > most {
		return fmt.Errorf("the answer has %d bytes; the limit is %d", len(body), most)
	}
	return s.nc.Publish(to, body)
}

// stream passes chunks on. A chunk that cannot be sent is dropped: it is not state.
type stream struct{ send func(any) error }

func (s stream) Chunk(c runtime.Chunk) {
	_ = s.send(message{Kind: kindChunk, Type: c.Type, Data: c.Data})
}
