package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// bad is a reactor or a tool in another process, and what is wrong with it.
type bad struct {
	name    string
	process func(*testing.T, *nats.Conn, string) // answers on the subject
	want    string                               // what the error says
}

// timing allows more time to a process that sends much.
func (b bad) timing() remote.Option {
	if b.want == tooLarge || b.want == tooLong {
		return remote.Timing(time.Second, patience)
	}
	return remote.Timing(100*time.Millisecond, time.Second)
}

const (
	tooLarge = "too large"
	tooLong  = "store larger content in files"
)

// raw answers each request with messages as they are.
func raw(messages ...string) func(*testing.T, *nats.Conn, string) {
	return answering(func(m *nats.Msg) {
		for _, text := range messages {
			_ = m.Respond([]byte(text))
		}
	})
}

func answering(answer func(*nats.Msg)) func(*testing.T, *nats.Conn, string) {
	return func(t *testing.T, nc *nats.Conn, subject string) {
		t.Helper()
		if _, err := nc.QueueSubscribe(subject, events.WorkerQueue, answer); err != nil {
			t.Fatal(err)
		}
	}
}

// quoted returns a JSON string of n bytes.
func quoted(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

const megabyte = 1 << 20

// chunks sends that many megabytes of chunks.
func chunks(m *nats.Msg, megabytes int) {
	body := []byte(`{"kind":"chunk","type":"data-blob","data":` + quoted(megabyte) + `}`)
	for range megabytes {
		_ = m.Respond(body)
	}
}

// floods sends chunks until its call is cancelled. Any number of them could be too few: the
// server sends none to a connection that is far behind.
func floods(t *testing.T, process *nats.Conn, subject string) {
	t.Helper()
	answering(func(m *nats.Msg) {
		var request struct {
			Protocol struct {
				Cancel string `json:"cancel"`
			} `json:"protocol"`
		}
		if err := json.Unmarshal(m.Data, &request); err != nil {
			t.Error(err)
			return
		}
		cancelled, err := process.SubscribeSync(request.Protocol.Cancel)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = cancelled.Unsubscribe() }()
		for err = nats.ErrTimeout; errors.Is(err, nats.ErrTimeout); _, err = cancelled.NextMsg(0) {
			chunks(m, 1)
		}
		if err != nil {
			t.Error(err)
		}
	})(t, process, subject)
}

func beats(m *nats.Msg, n int) {
	for range n {
		_ = m.Respond([]byte(`{"kind":"heartbeat"}`))
	}
}

// secret must appear in no error.
const secret = "token=topsecret123"

var errFails = errors.New("the provider said no")

// A reactor in another process that is absent, hangs, dies, fails or sends nonsense, a
// little or 50 MB of it, fails its step and its run with a text that says why and holds
// no secret, and the thread stays usable. EK-93, EK-119, EK-124.
func TestBadReactors(t *testing.T) {
	t.Parallel()
	serving := func(r runtime.ReactorFunc) func(*testing.T, *nats.Conn, string) {
		return func(t *testing.T, nc *nats.Conn, subject string) {
			t.Helper()
			name := subject[strings.LastIndex(subject, ".")+1:]
			if _, err := remote.ServeReactor(nc, events.DefaultNames(), name, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []bad{
		{"hangs", answering(func(*nats.Msg) {}), "no heartbeat"},
		{"dies", answering(func(m *nats.Msg) { beats(m, 2); chunks(m, 1) }), "no heartbeat"},
		{"fails", serving(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			return nil, errFails
		}), errFails.Error()},
		{"panics", serving(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			panic(secret)
		}), "it panicked"},
		{"garbles", raw("}{"), "skein.reactor.garbles"},
		{"mumbles", raw(`{"kind":"result","assistantEvent":{"content":[{"text":"a part without a type"}]}}`), "a part has a type"},
		{"floods", floods, tooLarge},
		{"bloats", answering(func(m *nats.Msg) {
			chunks(m, 40) // with 48 waiting, the server would drop the result
			_ = m.Respond([]byte(`{"kind":"result","assistantEvent":{"content":[{"type":"output_text","text":` + quoted(3*megabyte) + `}]}}`))
		}), tooLong},
		{"repeats", raw(`{"kind":"result","assistantEvent":{"content":[]},"toolCalls":[{"callId":"c","name":"x"},{"callId":"c","name":"x"}]}`), `have the callId "c"`},
	}
	s := startStore(t)
	nc := openLine(t, s.url)
	startServe(t, server.Config{NATS: s.url, HTTPListen: "127.0.0.1:0", Register: func(r *runtime.Registry) error {
		err := r.AddReactor("fine", transcript.Fixed(transcript.Text("fine")))
		err = errors.Join(err, r.AddReactor("whale", runtime.ReactorFunc(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":` + quoted(50*megabyte) + `}`)}}}, nil
		})))
		for _, c := range cases {
			one, newErr := remote.Reactor(nc, events.DefaultNames(), c.name, c.timing())
			err = errors.Join(err, newErr, r.AddReactor(c.name, one))
		}
		return err
	}})
	cases = append(cases, bad{"whale", func(*testing.T, *nats.Conn, string) {}, tooLong})
	process := openLine(t, s.url)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.process(t, process, "skein.reactor."+c.name)
			if err := process.Flush(); err != nil {
				t.Fatal(err)
			}
			thread, execution := begin(t, s.Client, c.name)
			x := ended(t, s.Client, thread, execution)
			if x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, c.want) || strings.Contains(x.ErrorText, secret) || len(x.ErrorText) > 4200 {
				t.Errorf("it ended %s: %.300s; want %q", x.Status, x.ErrorText, c.want)
			}
			usable(t, s, thread, events.ThreadFailed)
		})
	}
	audited(t, s.url)
}

// usable checks a thread's state, and then has a turn on it.
func usable(t *testing.T, s *store, thread string, want events.ThreadStatus) {
	t.Helper()
	c, err := s.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Read(t.Context(), c, events.GetThread{ThreadID: thread}); err != nil || got.Status != want {
		t.Fatalf("the thread is %+v, %v", got, err)
	}
	reply, err := c.Send(t.Context(), thread, events.ReactThread{Text: new("and now?"), AgentID: "fine"})
	if err != nil {
		t.Fatal(err)
	}
	if x := ended(t, c, thread, reply.Result.ExecutionID); x.Status != events.ExecutionCompleted {
		t.Errorf("the next turn ended %s: %s", x.Status, x.ErrorText)
	}
	if c, err = s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Read(t.Context(), c, events.GetThread{ThreadID: thread}); err != nil || got.Status != events.ThreadOpen {
		t.Errorf("after it the thread is %+v, %v", got, err)
	}
}

// A tool in another process that is absent, hangs, is killed during its work, fails or
// sends nonsense ends its call with an error that the model is shown; the run goes on.
// SA-66, EK-116, EK-92.
func TestBadTools(t *testing.T) {
	t.Parallel()
	s := startStore(t)
	nc, g := openLine(t, s.url), openGates(t, openLine(t, s.url))
	killed := func(t *testing.T, _ *nats.Conn, _ string) {
		t.Helper()
		p := launch(t, toolMode, "killed", t.TempDir(), s.url)
		go func() {
			<-g.at(gateSubject + "killed.called")
			_ = p.cmd.Process.Kill()
		}()
	}
	cases := []bad{
		{"hanging", answering(func(*nats.Msg) {}), "no heartbeat"},
		{"killed", killed, "no heartbeat"},
		{"failing", raw(`{"kind":"error","message":"out of stock"}`), "out of stock"},
		{"garbled", raw("nothing"), "skein.tool.garbled"},
		{"undecided", raw(`{"kind":"result","status":"maybe"}`), "skein.tool.undecided"},
		{"huge", raw(`{"kind":"result","status":"success","result":` + quoted(3*megabyte) + `}`), tooLong},
		{"flooding", floods, tooLarge},
	}
	startServe(t, server.Config{NATS: s.url, HTTPListen: "127.0.0.1:0", Register: func(r *runtime.Registry) error {
		err := r.AddReactor("fine", transcript.Fixed(transcript.Text("fine")))
		for _, c := range cases {
			tool, newErr := remote.Tool(nc, events.DefaultNames(), runtime.ToolSpec{Name: c.name}, c.timing())
			err = errors.Join(err, newErr, r.AddTool(tool), r.AddReactor("with-"+c.name, transcript.Fixed(
				transcript.Text("I look.", runtime.ToolCall{CallID: "c1", Name: c.name, Arguments: events.JSON(`{}`)}), transcript.Text("I saw."),
			)))
		}
		return err
	}})
	process := openLine(t, s.url)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.process(t, process, "skein.tool."+c.name)
			if err := process.Flush(); err != nil {
				t.Fatal(err)
			}
			thread, execution := begin(t, s.Client, "with-"+c.name)
			x := ended(t, s.Client, thread, execution)
			if x.Status != events.ExecutionCompleted || x.StepCount != 2 {
				t.Errorf("it ended %s after %d steps: %s", x.Status, x.StepCount, x.ErrorText)
			}
			told := ""
			for _, e := range historyOf(t, s.Client, thread) {
				if d, ok := e.Data.(events.PartUpdated); ok {
					told += fmt.Sprintf("%.500s", d.Part)
				}
			}
			if !strings.Contains(told, c.want) || !strings.Contains(told, "output-error") {
				t.Errorf("the call came to %s; want %q", told, c.want)
			}
			usable(t, s, thread, events.ThreadOpen)
		})
	}
	audited(t, s.url)
}
