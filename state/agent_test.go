package state_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/state"
)

type question struct {
	Text string `json:"text" doc:"What is asked."`
	Tone string `json:"tone,omitempty" enum:"kind,short"`
}

type reply struct {
	Text string `json:"text"`
	Mood string `json:"mood" enum:"glad,sad"`
}

type (
	run = state.AgentRun[question, reply]
	opt = state.AgentOption[question, reply]
)

// post sends a body to a handler.
func (s *site) post(handler http.Handler, body string, headers ...string) answer {
	s.t.Helper()
	path := s.handle(func(w http.ResponseWriter, r *http.Request) error {
		handler.ServeHTTP(w, r)
		return nil
	})
	r := s.request(path, headers...)
	r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(body))
	response := must(s.http.Do(r))(s.t)
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		read = append(read, "!"+err.Error()...)
	}
	return answer{response, string(read)}
}

func agent(t *testing.T, handler func(context.Context, question) (reply, error), opts ...opt) *state.Agent[question, reply] {
	t.Helper()
	return must(state.NewAgent("helper", handler, opts...))(t)
}

// AG-7, AG-81: an input that does not fit is refused with the path, before the handler. An output that
// does not is an error with the path, which the client is not told.
func TestAgent_ChecksInputAndOutput(t *testing.T) {
	t.Parallel()
	s := open(t)
	var asked []question
	mood := "glad"
	a := agent(t, func(_ context.Context, in question) (reply, error) {
		asked = append(asked, in)
		return reply{"You said " + in.Text, mood}, nil
	})
	for name, c := range map[string]struct {
		body, want string
		status     int
	}{
		"it fits":            {`{"text":"hello","tone":"kind"}`, `{"text":"You said hello","mood":"glad"}`, 200},
		"a member is absent": {`{}`, "lacks 'text'", 400},
		"no body":            {``, "lacks 'text'", 400},
		"another type":       {`{"text":1}`, "/text: expected string, but got number", 400},
		"another value":      {`{"text":"x","tone":"rude"}`, "/tone: ", 400},
		"an unknown member":  {`{"text":"x","more":1}`, "does not know 'more'", 400},
		"no object":          {`[]`, "the input of agent helper does not fit its schema: expected object", 400},
		"no JSON":            {`{"text":`, "is not JSON", 400},
		"more than a value":  {`{"text":"x"},"value":{"text":"y"}`, "is not JSON", 400},
		"a name twice":       {`{"text":"x","text":"y"}`, "is not JSON, or has a name twice", 400},
		"too large":          {`{"text":"` + strings.Repeat("x", 1<<20) + `"}`, "payload_too_large", 413},
	} {
		got := s.post(a, c.body)
		if got.StatusCode != c.status || !strings.Contains(got.body, c.want) || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %.300s", name, got.StatusCode, got.body)
		}
	}
	poet := must(state.NewStreamAgent("poet", func(context.Context, question) iter.Seq2[string, error] { return stream("x") }))(t)
	for _, h := range []http.Handler{a, poet} {
		got := s.visit(func(w http.ResponseWriter, r *http.Request) error { h.ServeHTTP(w, r); return nil })
		if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "POST" || !strings.Contains(got.body, "by POST") {
			t.Errorf("a GET is answered with %d %s", got.StatusCode, got.body)
		}
	}
	if !slices.Equal(asked, []question{{"hello", "kind"}}) {
		t.Errorf("the handler was asked %+v", asked)
	}
	mood = "angry"
	if got := s.post(a, `{"text":"x"}`); got.StatusCode != http.StatusInternalServerError || strings.Contains(got.body, "mood") {
		t.Errorf("an output that does not fit is answered with %d %s", got.StatusCode, got.body)
	}
	if log := s.log.String(); !strings.Contains(log, "the output of agent helper does not fit its schema: /mood: ") {
		t.Errorf("the log is %s", log)
	}
	s.on(func(ctx context.Context, _ *state.ThreadScope) error {
		misfit := (*state.OutputError)(nil)
		if _, err := a.Run(ctx, question{Text: "x"}); !errors.As(err, &misfit) || misfit.Path != "/mood" {
			t.Errorf("Run of an output that does not fit: %v", err)
		}
		if _, err := a.Run(ctx, question{Text: "x", Tone: "rude"}); !refused(err, events.InvalidRequest) || events.AsError(err).Details.Path != "/tone" {
			t.Errorf("Run of an input that does not fit: %v", err)
		}
		// Without a shape of its own, any JSON passes.
		free := must(state.NewAgent("free", func(_ context.Context, in any) (any, error) { return in, nil }))(t)
		for _, v := range []any{nil, "text", 1.5, []any{true}, map[string]any{"a": "b"}} {
			if got, err := free.Run(ctx, v); fmt.Sprint(got) != fmt.Sprint(v) || err != nil {
				t.Errorf("%v became %v: %v", v, got, err)
			}
		}
		if _, err := free.Run(ctx, func() {}); !refused(err, events.InvalidRequest) {
			t.Errorf("a function as input: %v", err)
		}
		return nil
	})
}

// An error of the handler is the answer if it is one for clients, and otherwise logged.
func TestAgent_Errors(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, c := range map[string]struct {
		err    error
		status int
		want   string
		logged bool
	}{
		"for clients": {events.Errorf(events.NotFound, "there is no order 7"), 404, "there is no order 7", false},
		"retried":     {events.Errorf(events.Unavailable, "the model is busy"), 503, "the model is busy", true},
		"other":       {errors.New("password wrong"), 500, "agent helper failed", true},
	} {
		a := s.post(agent(t, func(context.Context, question) (reply, error) { return reply{}, c.err }), `{"text":"x"}`)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.want) || strings.Contains(a.body, "password") {
			t.Errorf("%s: answered %d %s", name, a.StatusCode, a.body)
		}
		if strings.Contains(s.log.String(), c.err.Error()) != c.logged {
			t.Errorf("%s: the log is %s", name, s.log)
		}
	}
}

// stream returns the parts of a text.
func stream(parts ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, part := range parts {
			if !yield(part, nil) {
				return
			}
		}
	}
}

// AG-8: parts of the text leave while it is produced. Listeners and evals receive the whole of it, and what is
// written while it is sent is saved.
func TestStreamAgent_SendsParts(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := httptest.NewRecorder()
	var sent, whole string
	a := must(state.NewStreamAgent("poet", func(ctx context.Context, in question) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			if !yield("one ", nil) || !yield("", nil) {
				return
			}
			if sent = w.Body.String(); !w.Flushed {
				sent += ", not flushed"
			}
			if err := state.Thread(ctx).Set(ctx, "asked", in.Text); err != nil {
				yield("", err)
				return
			}
			yield("two", nil)
		}
	}, state.WithListener(state.AgentCompleted, func(ctx context.Context, r state.AgentRun[question, string]) error {
		whole = r.Output
		return state.Thread(ctx).Set(ctx, "whole", r.Output)
	})))(t)
	state.Middleware(s.app)(a).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"text":"hello"}`)))
	got := answer{w.Result(), w.Body.String()}
	if sent != "one " {
		t.Errorf("before the second part %q had left", sent)
	}
	if got.body != "one two" || whole != "one two" || got.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("sent %q %v, and the listener received %q", got.body, got.Header, whole)
	}
	if v := s.values(got.id()); v != `{"asked":"hello","whole":"one two"}` {
		t.Errorf("the state is %s", v)
	}
	if got := s.post(must(state.NewStreamAgent("mute", func(context.Context, question) iter.Seq2[string, error] { return stream() }))(t), `{"text":"x"}`); got.StatusCode != 200 || got.body != "" {
		t.Errorf("an empty text is answered with %d %q", got.StatusCode, got.body)
	}
	s.on(func(ctx context.Context, _ *state.ThreadScope) error {
		long := must(state.NewStreamAgent("long", func(context.Context, question) iter.Seq2[string, error] {
			return stream(strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20))
		}))(t)
		text, err := long.Run(ctx, question{Text: "x"})
		if len(text) != 2<<20 {
			t.Errorf("a long text has %d bytes", len(text))
		}
		return err
	})
}

// A text that fails before its first part is an error response. After it the response is cut off.
func TestStreamAgent_Fails(t *testing.T) {
	t.Parallel()
	s := open(t)
	var mu sync.Mutex
	var errored []error
	failing := func(parts ...string) http.Handler {
		return must(state.NewStreamAgent("poet", func(_ context.Context, _ question) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for part := range stream(parts...) {
					if !yield(part, nil) {
						return
					}
				}
				yield("", errors.New("no more words"))
			}
		}, state.WithListener(state.AgentErrored, func(_ context.Context, r state.AgentRun[question, string]) error {
			mu.Lock()
			defer mu.Unlock()
			errored = append(errored, r.Err)
			return nil
		})))(t)
	}
	if got := s.post(failing(), `{"text":"x"}`); got.StatusCode != http.StatusInternalServerError || !strings.Contains(got.body, "agent poet failed") || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("before the first part: %d %s", got.StatusCode, got.body)
	}
	if got := s.post(failing(), `{"text":1}`); got.StatusCode != http.StatusBadRequest {
		t.Errorf("an input that does not fit: %d %s", got.StatusCode, got.body)
	}
	if got := s.post(failing("one"), `{"text":"x"}`); got.body != "one!unexpected EOF" {
		t.Errorf("after the first part: %d %s", got.StatusCode, got.body)
	}
	s.drain()
	if len(errored) != 2 || errored[1].Error() != "no more words" || strings.Count(s.log.String(), "no more words") != 2 {
		t.Errorf("the listener received %v, and the log is %s", errored, s.log)
	}
}

// A client that leaves ends the run, which has errored.
func TestStreamAgent_ClientLeaves(t *testing.T) {
	t.Parallel()
	s := open(t)
	errored := make(chan error, 1)
	a := must(state.NewStreamAgent("poet", func(context.Context, question) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for yield(strings.Repeat("x", 1<<16), nil) {
			}
		}
	}, state.WithListener(state.AgentErrored, func(ctx context.Context, r state.AgentRun[question, string]) error {
		errored <- errors.Join(r.Err, ctx.Err())
		return nil
	}), state.WithListener(state.AgentCompleted, func(context.Context, state.AgentRun[question, string]) error {
		errored <- nil
		return nil
	})))(t)
	r := s.request(s.handle(func(w http.ResponseWriter, r *http.Request) error { a.ServeHTTP(w, r); return nil }))
	r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(`{"text":"hello"}`))
	response := must(s.http.Do(r))(t)
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-errored; err == nil || !strings.Contains(err.Error(), "has stopped") {
		t.Errorf("the run ended with %v", err)
	}
}

// AG-12, AG-13, AG-82: listeners run around the handler, with the values of its request. One that fails
// changes nothing.
func TestAgent_Listeners(t *testing.T) {
	t.Parallel()
	s := open(t)
	var order []string
	note := func(ctx context.Context, r run) error {
		seen, _ := state.Value[string](state.Request(ctx), "seen")
		order = append(order, fmt.Sprintf("%s %s %q %q %v", r.Event, seen, r.Input.Text, r.Output.Text, r.Err))
		return state.Request(ctx).Set("seen", seen+string(r.Event[0]))
	}
	broken := func(context.Context, run) error { panic("it broke") }
	handler := func(ctx context.Context, in question) (reply, error) {
		seen, _ := state.Value[string](state.Request(ctx), "seen")
		switch in.Text {
		case "fail":
			return reply{}, errors.New("it failed")
		case "panic":
			panic("out of paper")
		}
		return reply{"fine", "glad"}, state.Request(ctx).Set("seen", seen+"h")
	}
	a := agent(t, handler, state.WithListener(state.AgentStarted, broken), state.WithListener(state.AgentStarted, note), state.WithListener(state.AgentCompleted, note),
		state.WithListener(state.AgentErrored, note), state.WithListener(state.AgentCompleted, func(ctx context.Context, r run) error {
			return errors.Join(state.Thread(ctx).Set(ctx, "last", r.Output.Text), errors.New("it is not told"))
		}))
	good := s.post(a, `{"text":"x"}`)
	if good.StatusCode != 200 || s.values(good.id()) != `{"last":"fine"}` {
		t.Errorf("answered %d %s, and the state is %s", good.StatusCode, good.body, s.values(good.id()))
	}
	s.post(a, `{"text":1}`)
	s.post(a, `{"text":"fail"}`)
	s.on(func(ctx context.Context, _ *state.ThreadScope) error {
		defer func() {
			if v := recover(); v != "out of paper" {
				t.Errorf("the panic is %v", v)
			}
		}()
		_, err := a.Run(ctx, question{Text: "panic"})
		return err
	})
	want := []string{
		`started  "x" "" <nil>`, `completed sh "x" "fine" <nil>`,
		`started  "fail" "" <nil>`, `errored s "fail" "" it failed`,
		`started  "panic" "" <nil>`, `errored s "panic" "" panic: out of paper`,
	}
	if !slices.Equal(order, want) {
		t.Errorf("they ran\n%s\nand not\n%s", strings.Join(order, "\n"), strings.Join(want, "\n"))
	}
	if log := s.log.String(); strings.Count(log, "it broke") < 3 || !strings.Contains(log, "a listener to completed of agent helper failed") {
		t.Errorf("the log is %s", log)
	}
}

// records returns the evals on the log of a thread, oldest first, with their levels.
func (s *site) records(id string) (records []state.EvalRecord, levels []events.LogLevel) {
	s.t.Helper()
	page := must(client.Read(s.t.Context(), must(s.client.UpToDate(s.t.Context()))(s.t), events.ListLogs{ThreadID: id}))(s.t)
	for _, line := range slices.Backward(page.Logs) {
		var r state.EvalRecord
		if err := json.Unmarshal(line.Data, &r); err != nil {
			s.t.Fatal(err)
		}
		records, levels = append(records, r), append(levels, line.Level)
	}
	return records, levels
}

// AG-13, AG-82: evals run when the response has left, with the values of the request. Their results are on the
// thread's log, also if it did not exist; one that fails or panics does not change the answer.
func TestAgent_Evals(t *testing.T) {
	t.Parallel()
	s := open(t)
	goOn := make(chan struct{})
	judge := func(name string, f func(context.Context, run) (state.EvalResult, error)) opt {
		return state.WithEval(name, f)
	}
	a := agent(t, func(ctx context.Context, in question) (reply, error) {
		return reply{strings.ToUpper(in.Text), "glad"}, state.Request(ctx).Set("model", "m1")
	}, judge("loud", func(ctx context.Context, r run) (state.EvalResult, error) {
		<-goOn
		model, _ := state.Value[string](state.Request(ctx), "model")
		return state.EvalResult{Passed: true, Score: 0.5, Reason: model + " " + r.Input.Text + " " + r.Output.Text}, state.Thread(ctx).Set(ctx, "judged", true)
	}), judge("short", func(context.Context, run) (state.EvalResult, error) {
		return state.EvalResult{Reason: "too long"}, nil
	}), judge("failing", func(context.Context, run) (state.EvalResult, error) {
		return state.EvalResult{Passed: true}, errors.New("no judge")
	}), judge("panics", func(context.Context, run) (state.EvalResult, error) { panic("no memory") }),
		judge("odd", func(context.Context, run) (state.EvalResult, error) {
			return state.EvalResult{Score: math.NaN()}, nil
		}))
	var session string
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session = state.Session(r.Context()).ID
		a.ServeHTTP(w, r)
	})
	got := s.post(wrapped, `{"text":"hello"}`) // while the first eval waits
	if got.StatusCode != 200 || got.body != `{"text":"HELLO","mood":"glad"}` {
		t.Fatalf("answered %d %s", got.StatusCode, got.body)
	}
	close(goOn)
	s.drain()
	if v := s.values(got.id()); v != `{"judged":true}` {
		t.Errorf("the state is %s", v)
	}
	records, levels := s.records(got.id())
	if len(records) != 5 {
		t.Fatalf("recorded %+v", records)
	}
	odd := records[4].ErrorText
	records[4].ErrorText = ""
	of := func(name string, r state.EvalResult, failed string) state.EvalRecord {
		return state.EvalRecord{Agent: "helper", Eval: name, SessionID: session, EvalResult: r, ErrorText: failed}
	}
	want := []state.EvalRecord{
		of("loud", state.EvalResult{Passed: true, Score: 0.5, Reason: "m1 hello HELLO"}, ""), of("short", state.EvalResult{Reason: "too long"}, ""),
		of("failing", state.EvalResult{}, "no judge"), of("panics", state.EvalResult{}, "panic: no memory"), of("odd", state.EvalResult{}, ""),
	}
	if !slices.Equal(records, want) || !strings.Contains(odd, "cannot be encoded") ||
		!slices.Equal(levels, []events.LogLevel{events.LogInfo, events.LogWarn, events.LogError, events.LogError, events.LogError}) {
		t.Errorf("recorded %+v\n%v, and not %+v", records, levels, want)
	}
	for _, e := range s.happened(got.id(), events.TraceRecordedType) {
		if d := e.Data.(events.TraceRecorded); d.SessionID != session || d.Name != "eval" {
			t.Errorf("the event of the log is %+v", d)
		}
	}
}

// An eval runs after the response: the handler that calls the agent has still to write it.
func TestAgent_EvalsWaitForTheResponse(t *testing.T) {
	t.Parallel()
	s := open(t)
	var early, ran atomic.Int32
	var answered atomic.Bool
	a := agent(t, func(context.Context, question) (reply, error) { return reply{"fine", "glad"}, nil },
		state.WithEval("first", func(context.Context, run) (state.EvalResult, error) {
			if ran.Add(1); !answered.Load() {
				early.Add(1)
			}
			return state.EvalResult{Passed: true}, nil
		}))
	got := s.visit(func(w http.ResponseWriter, r *http.Request) error {
		for range 100 { // each of which has its chance to be too early
			if _, err := a.Run(r.Context(), question{Text: "x"}); err != nil {
				return err
			}
		}
		for range 1000 {
			runtime.Gosched()
		}
		answered.Store(true)
		_, err := io.WriteString(w, "done")
		return err
	})
	s.drain()
	if ran.Load() != 100 || early.Load() != 0 || got.body != "done" {
		t.Errorf("of %d evals %d ran before the response", ran.Load(), early.Load())
	}
}

// An agent without evals that uses no state costs no message, and an eval on a thread that exists one.
func TestAgent_RoundTrips(t *testing.T) {
	t.Parallel()
	s := open(t)
	handler := func(context.Context, question) (reply, error) { return reply{"fine", "glad"}, nil }
	plain := agent(t, handler)
	judged := agent(t, handler, state.WithEval("good", func(context.Context, run) (state.EvalResult, error) { return state.EvalResult{Passed: true}, nil }))
	thread := s.on(func(ctx context.Context, th *state.ThreadScope) error { return th.Set(ctx, "a", 1) })
	for want, a := range []http.Handler{plain, judged} {
		n := s.sent(func() {
			s.post(a, `{"text":"x"}`, thread.next()...)
			s.settle()
		})
		if n != uint64(want) {
			t.Errorf("%d messages, and not %d", n, want)
		}
	}
}

// What an agent cannot be is refused when it is made.
func TestNewAgent_Refusals(t *testing.T) {
	t.Parallel()
	handler := func(context.Context, question) (reply, error) { return reply{}, nil }
	eval := func(context.Context, run) (state.EvalResult, error) { return state.EvalResult{}, nil }
	of := func(name string, opts ...opt) error {
		_, err := state.NewAgent(name, handler, opts...)
		return err
	}
	_, noHandler := state.NewAgent[question, reply]("a", nil)
	_, noStream := state.NewStreamAgent[question]("a", nil)
	_, noInput := state.NewAgent("a", func(context.Context, chan int) (reply, error) { return reply{}, nil })
	_, noOutput := state.NewAgent("a", func(context.Context, question) (map[int]string, error) { return nil, nil })
	for name, err := range map[string]error{
		"no name": of(""), "a name with a space": of("a b"), "no handler": noHandler, "no stream": noStream, "no schema of the input": noInput, "no schema of the output": noOutput,
		"no such event": of("a", state.WithListener(state.ThreadCreated, func(context.Context, run) error { return nil })),
		"no listener":   of("a", state.WithListener[question, reply](state.AgentStarted, nil)),
		"no eval":       of("a", state.WithEval[question, reply]("e", nil)),
		"no eval name":  of("a", state.WithEval("", eval)),
		"an eval twice": of("a", state.WithEval("e", eval), state.WithEval("e", eval)),
	} {
		if !refused(err, events.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := open(t)
	var kept context.Context
	s.visit(func(_ http.ResponseWriter, r *http.Request) error {
		kept = context.WithoutCancel(r.Context())
		return nil
	})
	s.drain()
	if _, err := must(state.NewAgent("a", handler))(t).Run(kept, question{Text: "x"}); !errors.As(err, new(*state.EndedError)) {
		t.Errorf("after the request: %v", err)
	}
}
