package remote_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// EK-102..EK-104, and EK-105, EK-106, EK-107, EK-108: a reactor in another process
// receives everything about a step, and its reaction arrives unchanged, with its stream
// in order.
func TestReactor(t *testing.T) {
	w := start(t)
	warm := 0.5
	in := &runtime.StepInput{
		Tenant: "acme", ThreadID: "T-1", ContextID: "ctx_1", ExecutionID: "exe_1", StepID: "stp_1", ItemID: "itm_2", Iteration: 3, Attempt: 2, Side: "a",
		Agent: "helper", Model: runtime.Model{Name: "m", Model: "m-1", MaxOutputTokens: 9, Temperature: &warm, Params: events.JSON(`{"x":1}`)},
		Instructions: "Be brief.", Tools: []runtime.ToolSpec{{Name: "double", Parameters: events.JSON(`{"type":"object"}`), Idempotent: true}},
		Context: events.JSON(`{"k":[1]}`),
		Items:   []events.Item{{ID: "itm_1", Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`)}},
	}
	want := &runtime.Reaction{
		AssistantEvent: runtime.Assistant{ID: "itm_2", Content: []events.JSON{
			events.JSON(`{"type":"output_text","text":"hi","mine":{"a":1e400}}`), events.JSON(`{"type":"acme.mood","mood":"good"}`)}},
		ToolCalls:        []runtime.ToolCall{{CallID: "c1", Name: "double", Arguments: events.JSON(`{"n":2}`)}},
		MessagesForModel: &runtime.Shown{Items: []string{"itm_1"}, Digest: "ab"},
		Usage:            &runtime.Usage{Provider: "p", Model: "m-1", InputTokens: 1, CachedTokens: 2, OutputTokens: 3, ReasoningTokens: 4, TotalTokens: 5, LatencyMs: 6},
	}
	told := make(chan *runtime.StepInput, 1)
	w.serve(t, "planner", func(_ context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		told <- in
		for _, text := range []string{`{"delta":"h"}`, `{"delta":"i"}`} {
			out.Chunk(runtime.Chunk{Type: runtime.ChunkTextDelta, Data: events.JSON(text)})
		}
		return want, nil
	})
	out := chunks{make(chan runtime.Chunk, 10)}
	got, err := w.reactor(t, "planner").React(patient(t), in, out)
	if err != nil {
		t.Fatal(err)
	}
	if have := <-told; !reflect.DeepEqual(have, in) {
		t.Errorf("told %+v\nnot  %+v", have, in)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("gave %+v\nnot  %+v", got, want)
	}
	for _, want := range []string{`{"delta":"h"}`, `{"delta":"i"}`} {
		if c := <-out.got; c.Type != runtime.ChunkTextDelta || string(c.Data) != want {
			t.Errorf("chunk %+v", c)
		}
	}
}

// SA-66: a tool in another process: a success, a failure that is a result, and all
// fields of the call.
func TestTool(t *testing.T) {
	w := start(t)
	got := make(chan *runtime.ToolInput, 2)
	s, err := remote.ServeTool(w.process, w.names, double{got})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	tool := w.tool(t, runtime.ToolSpec{Name: "double", Idempotent: true})
	if !tool.Spec().Idempotent {
		t.Error("the specification is another")
	}
	in := &runtime.ToolInput{Tenant: "acme", ThreadID: "T-1", ExecutionID: "exe_1", StepID: "stp_1", CallID: "c1", Name: "double", Key: "k", Attempt: 2, Arguments: events.JSON(`{"n":21}`)}
	result, err := tool.Call(patient(t), in)
	if err != nil || result.Status != runtime.Success || string(result.Result) != "42" {
		t.Errorf("%+v, %v", result, err)
	}
	if have := <-got; !reflect.DeepEqual(have, in) {
		t.Errorf("told %+v\nnot  %+v", have, in)
	}
	in.Arguments = events.JSON(`{"n":"x"}`)
	if result, err = tool.Call(patient(t), in); err != nil || result.Status != runtime.Failure || result.Error != "n is a number" {
		t.Errorf("%+v, %v", result, err)
	}
}

// Several processes with one name share the requests: each goes to one of them.
func TestProcessesShare(t *testing.T) {
	w := start(t)
	asked := make(chan string, 100)
	for _, name := range []string{"one", "two"} {
		w.serve(t, "planner", func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			asked <- name
			return says(name), nil
		})
	}
	r, seen := w.reactor(t, "planner"), map[string]int{}
	for range 40 {
		if _, err := r.React(patient(t), &runtime.StepInput{}, nil); err != nil {
			t.Fatal(err)
		}
		seen[<-asked]++
	}
	if len(asked) != 0 || seen["one"] == 0 || seen["two"] == 0 {
		t.Errorf("%v, and %d more", seen, len(asked))
	}
}

// Names that are not a token of a subject are refused, and so are invalid options.
func TestNames(t *testing.T) {
	w := start(t)
	for _, bad := range []string{"", "a.b", "*", ">", "a b"} {
		_, err1 := remote.Reactor(w.worker, w.names, bad)
		_, err2 := remote.Tool(w.worker, w.names, runtime.ToolSpec{Name: bad})
		_, err3 := remote.ServeReactor(w.worker, w.names, bad, runtime.ReactorFunc(nil))
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
	for _, bad := range []remote.Option{remote.Timing(0, 0), remote.Timing(time.Second, time.Second), remote.MaxBytes(0)} {
		if _, err := remote.Reactor(w.worker, w.names, "planner", bad); err == nil {
			t.Error("an invalid option is accepted")
		}
	}
}

// Heartbeats keep a silent call alive for much longer than the silence after which a
// process is given up.
func TestHeartbeats(t *testing.T) {
	w := start(t)
	w.serve(t, "planner", func(ctx context.Context, _ *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		select { // the time itself is tested
		case <-time.After(6 * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return says("late"), nil
	})
	if _, err := w.reactor(t, "planner", remote.Timing(50*time.Millisecond, 2*time.Second)).React(patient(t), &runtime.StepInput{}, nil); err != nil {
		t.Error(err)
	}
}

// A process that does not answer, or goes silent, is given up: the error is temporary.
// The process is notified.
func TestSilence(t *testing.T) {
	w := start(t)
	r := w.reactor(t, "planner", remote.Timing(100*time.Millisecond, 300*time.Millisecond))
	_, err := r.React(patient(t), &runtime.StepInput{}, nil)
	fails(t, err, true, "skein.reactor.planner: no process answers there")
	var retry *runtime.RetryError
	if !errors.As(err, &retry) || !retry.NotMade {
		t.Error("a call that no process received may have been made")
	}
	cancels, err := w.process.SubscribeSync("skein.cancel.*")
	if err != nil {
		t.Fatal(err)
	}
	w.raw(t, "skein.reactor.planner", `{"kind":"heartbeat"}`)
	_, err = r.React(patient(t), &runtime.StepInput{}, nil)
	fails(t, err, true, "skein.reactor.planner: no heartbeat for 300ms")
	if errors.As(err, &retry); retry.NotMade {
		t.Error("a call that a process received was not made")
	}
	if _, err := cancels.NextMsg(time.Minute); err != nil {
		t.Errorf("no cancel: %v", err)
	}
}

// A call whose context ends is cancelled in the process, and returns the cause.
func TestCancel(t *testing.T) {
	w := start(t)
	ended := make(chan error, 1)
	w.serve(t, "planner", func(ctx context.Context, _ *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		out.Chunk(runtime.Chunk{Type: "x"})
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancelCause(patient(t))
	stopped := errors.New("the run was stopped")
	out := chunks{make(chan runtime.Chunk, 1)}
	go func() { <-out.got; cancel(stopped) }()
	if _, err := w.reactor(t, "planner").React(ctx, &runtime.StepInput{}, out); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
	select {
	case err := <-ended:
		if err.Error() != "the call was cancelled" {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the process works on")
	}
}

// Without a connection nothing is sent, now or later.
func TestNoConnection(t *testing.T) {
	w := start(t)
	r := w.reactor(t, "planner")
	w.worker.Close()
	_, err := r.React(patient(t), &runtime.StepInput{}, nil)
	fails(t, err, true, "no connection")
	var retry *runtime.RetryError
	if errors.As(err, &retry); !retry.NotMade {
		t.Error("a call that was not sent may have been made")
	}
}

// A connection that is lost during a call: on the worker's side the error is temporary;
// if the process's connection is closed permanently, its calls end.
func TestConnectionLost(t *testing.T) {
	w := start(t)
	ended := make(chan error, 1)
	w.serve(t, "planner", func(ctx context.Context, _ *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		out.Chunk(runtime.Chunk{Type: "x"})
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	out := chunks{make(chan runtime.Chunk, 1)}
	go func() { <-out.got; w.worker.Close() }()
	_, err := w.reactor(t, "planner").React(patient(t), &runtime.StepInput{}, out)
	fails(t, err, true, "the answer was lost")
	w.process.Close()
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Error("the process works on")
	}
}

// An invalid answer is reported as such, with a final error.
func TestNonsense(t *testing.T) {
	w := start(t)
	const part = `{"type":"output_text","text":"a"}`
	for name, c := range map[string]struct {
		reactor, tool string
		want          string
	}{
		"no JSON":             {`oops`, `oops`, "is not JSON"},
		"nothing":             {``, ``, "is not JSON"},
		"a list":              {`[]`, `[]`, "wrong shape"},
		"no kind":             {`{}`, `{}`, `kind ""`},
		"another kind":        {`{"kind":"results"}`, `{"kind":"answer"}`, `not heartbeat, chunk, result or error`},
		"a chunk of no type":  {`{"kind":"chunk","data":1}`, `{"kind":"chunk"}`, "chunk without a type"},
		"no content":          {`{"kind":"result"}`, "", "assistantEvent has no content"},
		"content of no parts": {`{"kind":"result","assistantEvent":{"content":"hello"}}`, "", "/assistantEvent/content is a JSON string"},
		"a part of no type":   {`{"kind":"result","assistantEvent":{"content":[` + part + `,{}]}}`, "", "a part has a type of 1 to 128 letters at /assistantEvent/content/1/type"},
		"a call of no id":     {`{"kind":"result","assistantEvent":{"content":[]},"toolCalls":[{"name":"f"}]}`, "", "callId of toolCalls/0"},
		"a call of no name":   {`{"kind":"result","assistantEvent":{"content":[]},"toolCalls":[{"callId":"c"}]}`, "", "toolCalls/0 has no name"},
		"a call twice":        {`{"kind":"result","assistantEvent":{"content":[]},"toolCalls":[{"callId":"c","name":"f"},{"callId":"c","name":"f"}]}`, "", `the callId "c"`},
		"usage of no kind":    {`{"kind":"result","assistantEvent":{"content":[]},"usage":{"inputTokens":"many"}}`, "", "/usage/inputTokens is a JSON string"},
		"no status":           {"", `{"kind":"result","result":1}`, `status is ""`},
		"an error of no text": {"", `{"kind":"result","status":"error"}`, "has no error"},
		"an error":            {`{"kind":"error","message":"it\nbroke"}`, `{"kind":"error","message":"it\nbroke"}`, "it broke"},
		"an error, wordless":  {`{"kind":"error"}`, `{"kind":"error"}`, "returned an error without a message"},
		"an error of length":  {`{"kind":"error","message":"` + strings.Repeat("x", 9000) + `"}`, `{"kind":"error","message":"` + strings.Repeat("x", 9000) + `"}`, "xxx..."},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.Map(func(r rune) rune {
				if r == ' ' || r == ',' {
					return '_'
				}
				return r
			}, name)
			if c.reactor != "" || c.tool == "" || name == "nothing" {
				w.raw(t, "skein.reactor."+id, c.reactor)
				_, err := w.reactor(t, id).React(patient(t), &runtime.StepInput{}, nil)
				fails(t, err, false, c.want)
			}
			if c.tool != "" || name == "nothing" {
				w.raw(t, "skein.tool."+id, c.tool)
				_, err := w.tool(t, runtime.ToolSpec{Name: id}).Call(patient(t), &runtime.ToolInput{})
				fails(t, err, false, c.want)
			}
		})
	}
	w.raw(t, "skein.reactor.later", `{"kind":"error","message":"later","retry":true,"afterMs":1500}`)
	_, err := w.reactor(t, "later").React(patient(t), &runtime.StepInput{}, nil)
	if retry, ok := retries(err); !ok || retry.After != 1500*time.Millisecond || err.Error() != "later" {
		t.Errorf("%#v", err)
	}
}

// Unknown fields and chunks of a tool are ignored; arguments are optional.
func TestCall_UnknownFieldsAreIgnored(t *testing.T) {
	w := start(t)
	w.raw(t, "skein.reactor.more", `{"kind":"heartbeat","x":1}`, `{"kind":"chunk","type":"t"}`,
		`{"kind":"result","x":1,"assistantEvent":{"content":[],"y":1},"toolCalls":[{"callId":"c","name":"f","z":1}]}`)
	got, err := w.reactor(t, "more").React(patient(t), &runtime.StepInput{}, nil)
	if err != nil || string(got.ToolCalls[0].Arguments) != "{}" {
		t.Errorf("%+v, %v", got, err)
	}
	w.raw(t, "skein.tool.more", `{"kind":"chunk","type":"t"}`, `{"kind":"result","status":"success"}`)
	if result, err := w.tool(t, runtime.ToolSpec{Name: "more"}).Call(patient(t), &runtime.ToolInput{}); err != nil || result.Status != runtime.Success {
		t.Errorf("%+v, %v", result, err)
	}
}

// An answer that arrives faster than it is read ends its call at once, with the reason,
// not after minutes without a heartbeat: whether its bytes or its messages are too many.
func TestBounds_FasterThanItIsRead(t *testing.T) {
	w := start(t)
	for name, flood := range map[string]struct {
		messages int
		data     string
	}{
		"bytes":    {70, strings.Repeat("x", 1<<20)},
		"messages": {nats.DefaultSubPendingMsgsLimit + 10, ""},
	} {
		sent := make(chan error, 1)
		_, err := w.process.Subscribe("skein.reactor."+name, func(m *nats.Msg) {
			body := []byte(`{"kind":"chunk","type":"t","data":"` + flood.data + `"}`)
			for range flood.messages {
				_ = m.Respond(body)
			}
			sent <- w.process.FlushWithContext(patient(t))
		})
		if err == nil {
			err = w.process.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		read := sync.OnceFunc(func() { // all of it has arrived before the first chunk is read
			if err := errors.Join(<-sent, w.worker.FlushWithContext(patient(t))); err != nil {
				t.Error(err)
			}
		})
		_, err = w.reactor(t, name, remote.Timing(time.Second, 5*time.Minute)).React(patient(t), &runtime.StepInput{}, slow(read))
		fails(t, err, false, "too large: more than 67108864 bytes or 500000 messages")
	}
}

// slow is a stream whose reader does something with each chunk.
type slow func()

func (s slow) Chunk(runtime.Chunk) { s() }

// An answer has limits: of one message, of all of them, and of the request.
func TestBounds(t *testing.T) {
	w := start(t)
	big := strings.Repeat("x", 40_000)
	w.raw(t, "skein.reactor.big", `{"kind":"result","assistantEvent":{"content":[{"type":"output_text","text":"`+big+`"}]}}`)
	_, err := w.reactor(t, "big", remote.MaxBytes(30_000)).React(patient(t), &runtime.StepInput{}, nil)
	fails(t, err, false, "too large: the limit is 30000 bytes")
	_, err = w.reactor(t, "big").React(patient(t), &runtime.StepInput{Instructions: strings.Repeat("x", int(w.worker.MaxPayload()))}, nil)
	if !errors.Is(err, &events.Error{Code: events.PayloadTooLarge}) || !strings.Contains(err.Error(), "skein.reactor.big") {
		t.Errorf("%v", err)
	}
	// A process that streams without end.
	ended := make(chan error, 1)
	w.serve(t, "endless", func(ctx context.Context, _ *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		for ctx.Err() == nil {
			out.Chunk(runtime.Chunk{Type: "t", Data: events.JSON(`"` + big + `"`)})
			_ = w.process.Flush()
		}
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	_, err = w.reactor(t, "endless", remote.MaxBytes(50_000)).React(patient(t), &runtime.StepInput{}, nil)
	fails(t, err, false, "too large")
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Error("the process streams on")
	}
}

// Arguments that no tool can use are left to the runtime, where that call alone fails.
func TestReactor_UnusableArguments(t *testing.T) {
	w := start(t)
	for n, c := range []struct{ arguments, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`[1]`, `"[1]"`},
		{`7`, `"7"`},
		{`"text"`, `"text"`},
		{`{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`},
		{`{"a":"\ud800"}`, `"{\"a\":\"\\ud800\"}"`},
		{`{"__proto__":1}`, `"{\"__proto__\":1}"`},
	} {
		id := fmt.Sprintf("arguments_%d", n)
		w.raw(t, "skein.reactor."+id, `{"kind":"result","assistantEvent":{"content":[{"type":"tool-f","toolCallId":"c","input":`+c.arguments+`}]},"toolCalls":[{"callId":"c","name":"f","arguments":`+c.arguments+`}]}`)
		got, err := w.reactor(t, id).React(patient(t), &runtime.StepInput{}, nil)
		if err != nil || len(got.ToolCalls) != 1 || string(got.ToolCalls[0].Arguments) != c.want {
			t.Errorf("%s: %v, %v", c.arguments, got, err)
		}
	}
}

// An answer that breaks off after its first chunk says so, so that what was streamed is kept. A
// final error of the process, or a failure before that, does not.
func TestReactor_BreaksOff(t *testing.T) {
	w := start(t)
	const chunk = `{"kind":"chunk","type":"text-delta","data":{"id":"t","delta":"so far"}}`
	for id, c := range map[string]struct {
		answer []string
		broke  bool
	}{
		"later_streamed": {[]string{chunk, `{"kind":"error","message":"later","retry":true}`}, true},
		"wrong_streamed": {[]string{chunk, `oops`}, true},
		"shape_streamed": {[]string{chunk, `{"kind":"result"}`}, true},
		"final_streamed": {[]string{chunk, `{"kind":"error","message":"no"}`}, false},
		"wrong_at_once":  {[]string{`oops`}, false},
	} {
		w.raw(t, "skein.reactor."+id, c.answer...)
		_, err := w.reactor(t, id).React(patient(t), &runtime.StepInput{}, nil)
		var broke *runtime.BrokenOffError
		if err == nil || errors.As(err, &broke) != c.broke {
			t.Errorf("%s: %#v", id, err)
		}
	}
}
