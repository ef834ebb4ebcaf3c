package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// world is a server with a worker's connection and that of a process.
type world struct {
	worker, process *nats.Conn
	names           events.Names
}

func start(t *testing.T) *world {
	t.Helper()
	s := natstest.Start(t)
	return &world{natstest.Connect(t, s), natstest.Connect(t, s), events.DefaultNames()}
}

// patient returns a context with a deadline that only a failing test reaches.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (w *world) reactor(t *testing.T, name string, opts ...remote.Option) runtime.Reactor {
	t.Helper()
	r, err := remote.Reactor(w.worker, w.names, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) tool(t *testing.T, spec runtime.ToolSpec, opts ...remote.Option) runtime.Tool {
	t.Helper()
	tool, err := remote.Tool(w.worker, w.names, spec, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func (w *world) serve(t *testing.T, name string, r runtime.ReactorFunc, opts ...remote.Option) *remote.Service {
	t.Helper()
	s, err := remote.ServeReactor(w.process, w.names, name, r, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil && !w.process.IsClosed() {
			t.Error(err)
		}
	})
	return s
}

// raw makes the process answer every request on a subject with these messages.
func (w *world) raw(t *testing.T, subject string, messages ...string) {
	t.Helper()
	_, err := w.process.QueueSubscribe(subject, events.WorkerQueue, func(m *nats.Msg) {
		for _, text := range messages {
			_ = m.Respond([]byte(text))
		}
	})
	if err == nil {
		err = w.process.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// double is a tool that doubles a number.
type double struct {
	got chan *runtime.ToolInput // if not nil
}

func (double) Spec() runtime.ToolSpec { return runtime.ToolSpec{Name: "double"} }

func (d double) Call(_ context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	if d.got != nil {
		d.got <- in
	}
	var a struct{ N int64 }
	if err := json.Unmarshal(in.Arguments, &a, json.MatchCaseInsensitiveNames(true)); err != nil {
		return runtime.Failed("n is a number"), nil
	}
	raw, err := json.Marshal(a.N * 2)
	return runtime.Done(raw), err
}

func says(text string) *runtime.Reaction {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":` + string(quoted) + `}`)}}}
}

func retries(err error) (*runtime.RetryError, bool) {
	var retry *runtime.RetryError
	return retry, errors.As(err, &retry)
}

// chunks records what is streamed.
type chunks struct{ got chan runtime.Chunk }

func (c chunks) Chunk(chunk runtime.Chunk) { c.got <- chunk }

// fails expects an error that contains want, and is temporary or not.
func fails(t *testing.T, err error, retry bool, want string) {
	t.Helper()
	if _, may := retries(err); err == nil || may != retry || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
		t.Errorf("%T %.2000v; want %q, may pass %v", err, err, want, retry)
	}
}
