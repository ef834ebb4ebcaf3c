package remote_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// An error of a reactor in Go reaches the worker as what it is: temporary errors, final
// ones, panics, and invalid answers.
func TestServedFailures(t *testing.T) {
	w := start(t)
	var logged lines
	var nothing []string
	for name, c := range map[string]struct {
		fail  func() (*runtime.Reaction, error)
		retry bool
		want  string
	}{
		"final": {func() (*runtime.Reaction, error) { return nil, errors.New("it broke") }, false, "it broke"},
		"passing": {func() (*runtime.Reaction, error) {
			return nil, &runtime.RetryError{After: time.Second, Err: errors.New("later")}
		}, true, "later"},
		"panic": {func() (*runtime.Reaction, error) { panic("the password is hunter22") }, false, "it panicked"},
		"crash": {func() (*runtime.Reaction, error) { return says(nothing[1]), nil }, false, "it panicked: runtime error: index out of range [1] with length 0"},
		"frail": {func() (*runtime.Reaction, error) { return nil, (*runtime.RetryError)(nil) }, false, "says no reason"},
		"empty": {func() (*runtime.Reaction, error) { return nil, &runtime.RetryError{After: time.Second} }, true, "says no reason"},
		"none":  {func() (*runtime.Reaction, error) { return nil, nil }, false, "neither a reaction nor an error"},
		"large": {func() (*runtime.Reaction, error) { return says(strings.Repeat("x", 5<<20)), nil }, false, "the answer has"},
		"no JSON": {func() (*runtime.Reaction, error) {
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON("{")}}}, nil
		}, false, "cannot be encoded as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "_")
			w.serve(t, id, func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) { return c.fail() }, remote.Logger(zerolog.New(&logged)))
			_, err := w.reactor(t, id).React(patient(t), &runtime.StepInput{}, nil)
			fails(t, err, c.retry, c.want)
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("a panic's text is shown: %v", err)
			}
			if retry, ok := retries(err); ok && retry.After != time.Second {
				t.Errorf("after %s", retry.After)
			}
		})
	}
	if text := logged.String(); strings.Count(text, "a call panicked") != 2 || !strings.Contains(text, "hunter22") || !strings.Contains(text, "serve_test.go") {
		t.Errorf("the log of the process does not show the panics: %s", text)
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A service that is closed finishes the calls in flight and accepts no more.
func TestCloseDrains(t *testing.T) {
	w := start(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	var first sync.Once
	s := w.serve(t, "planner", func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
		first.Do(func() { close(begun); <-finish })
		return says("done"), nil
	})
	r := w.reactor(t, "planner")
	answered, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.React(patient(t), &runtime.StepInput{}, nil)
		answered <- err
	}()
	<-begun
	go func() { closed <- s.Close(patient(t)) }()
	for ctx := patient(t); ; { // until the server knows that there are no responders
		sub, err := w.worker.RequestWithContext(ctx, "skein.reactor.planner", []byte("oops"))
		if errors.Is(err, nats.ErrNoResponders) {
			break
		}
		if err != nil {
			t.Fatalf("%v, %v", sub, err)
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("closed before its call ended: %v", err)
	default:
	}
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Calls that do not end in time are cancelled, and the worker is told to retry.
func TestCloseEnds(t *testing.T) {
	w := start(t)
	begun, closed := make(chan struct{}), make(chan error, 1)
	s := w.serve(t, "planner", func(ctx context.Context, _ *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	go func() {
		<-begun
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		closed <- s.Close(ctx)
	}()
	_, err := w.reactor(t, "planner").React(patient(t), &runtime.StepInput{}, nil)
	fails(t, err, true, "the process is stopping")
	if err := <-closed; !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// An invalid request is answered and changes nothing, and so is one whose cancel subject would
// match every subject.
func TestServe_InvalidRequestIsAnswered(t *testing.T) {
	w := start(t)
	w.serve(t, "planner", func(ctx context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		if err := w.worker.Publish("anything", nil); err != nil { // would cancel the call
			t.Error(err)
		}
		if _, err := w.worker.Request("echo", nil, time.Minute); err != nil || ctx.Err() != nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
		return says("ok"), nil
	})
	w.raw(t, "echo", "x")
	for request, want := range map[string]string{
		`oops`: `"kind":"error"`, `[]`: `"kind":"error"`, `{"items":7}`: `"kind":"error"`,
		`{}`: `"kind":"result"`, `{"protocol":{"cancel":">","heartbeatMs":-1,"maxBytes":-1}}`: `"kind":"result"`,
		`{"protocol":{"maxBytes":30}}`: "", // not even the error fits
	} {
		sub, err := w.worker.SubscribeSync(w.worker.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.worker.PublishRequest("skein.reactor.planner", sub.Subject, []byte(request)); err != nil {
			t.Fatal(err)
		}
		for want != "" {
			m, err := sub.NextMsg(time.Minute)
			if err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			var head struct{ Kind string }
			if err := json.Unmarshal(m.Data, &head, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatal(err)
			}
			if head.Kind == "heartbeat" {
				continue
			}
			if !strings.Contains(string(m.Data), want) {
				t.Errorf("%s: %s", request, m.Data)
			}
			break
		}
	}
	if err := w.worker.Publish("skein.reactor.planner", []byte("{}")); err != nil { // nothing waits for it
		t.Error(err)
	}
}
