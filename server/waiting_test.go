package server_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// desk is a server with a reactor that answers when the test permits, and a client.
type desk struct {
	t      *testing.T
	c      *client.Client
	url    string
	http   string
	ctx    context.Context //nolint:containedctx // of the test
	answer chan string     // what the reactor "slow" answers next
	asked  chan *runtime.StepInput
	stop   func() // the server, before the test ends
}

func newDesk(t *testing.T, change ...func(*server.Config)) *desk {
	t.Helper()
	d := &desk{t: t, answer: make(chan string), asked: make(chan *runtime.StepInput, 100)}
	cfg := server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true,
		Register: func(r *runtime.Registry) error {
			return r.AddReactor("slow", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				d.asked <- in
				select {
				case text := <-d.answer:
					out := &runtime.Reaction{}
					out.AssistantEvent.Content = []events.JSON{events.JSON(`{"type":"output_text","text":"` + text + `"}`)}
					return out, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}))
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := server.Start(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	d.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	d.url, d.http = s.Addresses().NATS, s.Addresses().HTTP
	if d.c, err = client.Connect(d.url, client.Options{Tenant: "acme", Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	d.ctx = ctx
	return d
}

// thread makes a thread of an agent.
func (d *desk) thread(agent string) string {
	d.t.Helper()
	return must(d.c.Send(d.ctx, "", events.CreateThread{AgentID: agent}))(d.t).ThreadID
}

func (d *desk) react(thread string, what events.ReactThread) *events.Reply {
	d.t.Helper()
	return must(d.c.Send(d.ctx, thread, what))(d.t)
}

// watch waits for the execution of a reply, and collects what it waits for.
func (d *desk) watch(reply *events.Reply) (told chan client.Waiting, ended func() (*events.Execution, error)) {
	d.t.Helper()
	told = make(chan client.Waiting, 100)
	seq := reply.Seq
	var x *events.Execution
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		x, err = d.c.WatchRun(d.ctx, events.GetExecution{
			ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq},
		}, func(w client.Waiting) { told <- w })
	})
	return told, func() (*events.Execution, error) {
		done.Wait()
		return x, err
	}
}

// until waits for something that a run waits for.
func (d *desk) until(told chan client.Waiting, is func(client.Waiting) bool) client.Waiting {
	d.t.Helper()
	for {
		select {
		case w := <-told:
			if is(w) {
				return w
			}
		case <-d.ctx.Done():
			d.t.Fatal("it was never told what the run waits for")
		}
	}
}

// C-51: every message is answered with its execution's id, and can be waited for by it
// while others precede it, are replaced, moved and removed.
func TestQueue_WaitedForByExecutionID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	thread := d.thread("slow")
	d.react(thread, events.ReactThread{Text: new("one")})
	<-d.asked
	second := d.react(thread, events.ReactThread{Text: new("two"), ExecutionID: "exe_two", ReactionItemID: "itm_two"})
	if r := second.Result; r.ExecutionID != "exe_two" || r.ReactionItemID != "itm_two" || r.QueuedID == "" {
		t.Fatalf("the queued message is answered with %+v", r)
	}
	third := d.react(thread, events.ReactThread{Text: new("three")})
	fourth := d.react(thread, events.ReactThread{Text: new("four")})
	if third.Result.ExecutionID == "" || third.Result.ReactionItemID == "" {
		t.Fatalf("%+v", third.Result)
	}
	toldSecond, secondEnded := d.watch(second)
	toldThird, thirdEnded := d.watch(third)
	_, fourthEnded := d.watch(fourth)
	d.until(toldSecond, func(w client.Waiting) bool { return w.Queued && w.Ahead == 1 })
	d.until(toldThird, func(w client.Waiting) bool { return w.Queued && w.Ahead == 2 })
	must(d.c.Send(d.ctx, thread, events.MoveQueued{QueuedID: third.Result.QueuedID, Before: second.Result.QueuedID}))(t)
	d.until(toldSecond, func(w client.Waiting) bool { return w.Ahead == 2 })
	d.until(toldThird, func(w client.Waiting) bool { return w.Ahead == 1 })
	must(d.c.Send(d.ctx, thread, events.EditQueued{QueuedID: second.Result.QueuedID, Item: events.NewItem{
		Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"deux"}]`),
	}}))(t)
	must(d.c.Send(d.ctx, thread, events.RemoveQueued{QueuedID: fourth.Result.QueuedID}))(t)
	if x, err := fourthEnded(); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("who waits for a message that was removed has %+v, %v", x, err)
	}
	list := must(d.c.ListQueue(d.ctx, events.ListQueue{ThreadID: thread}))(t)
	if len(list.Queued) != 2 || list.Queued[0].ExecutionID != third.Result.ExecutionID || list.Queued[1].ID != second.Result.QueuedID ||
		list.Queued[1].MessageID != 1 || list.Active == "" {
		t.Errorf("%+v", list)
	}
	if doc := must(client.Read(d.ctx, d.c.WithMinSeq(list.Seq), events.GetThread{ThreadID: thread}))(t); doc.Queued != 2 {
		t.Errorf("the thread says that %d wait", doc.Queued)
	}
	for _, text := range []string{"1", "3"} {
		d.answer <- text
		<-d.asked
	}
	d.answer <- "2"
	for _, run := range []struct {
		reply *events.Reply
		ended func() (*events.Execution, error)
		asked string
	}{{second, secondEnded, "deux"}, {third, thirdEnded, "three"}} {
		x, err := run.ended()
		if err != nil {
			t.Fatal(err)
		}
		seq := x.Seq
		item := must(client.Read(d.ctx, d.c, events.GetItem{ThreadID: thread, ItemID: x.TriggerItemID, Fresh: events.Fresh{MinSeq: &seq}}))(t)
		if x.ID != run.reply.Result.ExecutionID || x.ReactionItemID != run.reply.Result.ReactionItemID ||
			string(item.Content) != `[{"type":"input_text","text":"`+run.asked+`"}]` {
			t.Errorf("%+v answers %s", x, item.Content)
		}
	}
	if _, err := d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: thread, ExecutionID: "exe_never"}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("an execution that never was: %v", err)
	}
}

// shout serves a reactor until it is stopped.
func (d *desk) shout(name string) (stop func()) {
	d.t.Helper()
	nc := natstest.Dial(d.t, d.url)
	d.t.Cleanup(nc.Close)
	r := must(remote.ServeReactor(nc, events.DefaultNames(), name, transcript.Fixed(transcript.Text("HELLO"))))(d.t)
	if err := nc.Flush(); err != nil {
		d.t.Fatal(err)
	}
	return func() { _ = r.Close(d.ctx) }
}

func (d *desk) apply(pairs ...string) {
	d.t.Helper()
	a := events.ApplyDefinitions{}
	for i := 0; i < len(pairs); i += 2 {
		a.Definitions = append(a.Definitions, events.NewDefinition{Kind: events.DefinitionKind(pairs[i]), Definition: events.JSON(pairs[i+1])})
	}
	must(d.c.Send(d.ctx, "", a))(d.t)
}

func waitsForWorker(name string) func(client.Waiting) bool {
	return func(w client.Waiting) bool { return len(w.Workers) == 1 && w.Workers[0].Name == name }
}

// C-48: a reactor that a definition names and no process serves is waited for, and the
// thread shows it; so is one that was served once, without any definition.
func TestReact_AbsentReactorIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.apply("agent", `{"name":"loud","type":"ai_human","reactor":"shout"}`)
	first := d.react(d.thread("loud"), events.ReactThread{Text: new("hello")})
	told, ended := d.watch(first)
	d.until(told, waitsForWorker("shout"))
	now := must(d.c.UpToDate(d.ctx))(t)
	if x := must(client.Read(d.ctx, now, events.GetExecution{ExecutionID: first.Result.ExecutionID}))(t); len(x.WaitingFor) != 1 || x.WaitingFor[0].Kind != events.ReactorWorker {
		t.Errorf("%+v", x)
	}
	stop := d.shout("shout")
	if x, err := ended(); err != nil || x.Status != events.ExecutionCompleted || len(x.WaitingFor) != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	second := d.react(d.thread(""), events.ReactThread{Text: new("hello"), AgentID: "shout"})
	if x, err := d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: second.ThreadID, ExecutionID: second.Result.ExecutionID, Fresh: events.Fresh{MinSeq: seqOf(second)}}); err != nil || x.Status != events.ExecutionCompleted {
		t.Fatalf("%+v, %v", x, err)
	}
	stop()
	third := d.react(d.thread(""), events.ReactThread{Text: new("hello"), AgentID: "shout"})
	told, ended = d.watch(third)
	d.until(told, waitsForWorker("shout"))
	must(d.c.Send(d.ctx, third.ThreadID, events.StopRun{}))(t)
	if x, err := ended(); err != nil || !x.Stopped || x.Status != events.ExecutionCompleted {
		t.Errorf("a run that waits and is stopped: %+v, %v", x, err)
	}
}

func seqOf(r *events.Reply) *int64 {
	seq := r.Seq
	return &seq
}

// An agent that was never defined or served is refused immediately, and the request
// reaches no process.
func TestReact_UnknownAgentIsNotFound(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	gone := &events.Error{Code: events.NotFound}
	plain, own := d.thread(""), d.thread("nobody")
	nc := natstest.Dial(t, d.url)
	defer nc.Close()
	requests := make(chan *nats.Msg, 10)
	other := must(nc.ChanSubscribe("skein.reactor.probed", requests))(t)
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if a, err := client.Read(d.ctx, d.c, events.GetAgent{Name: "probed"}); err != nil || a.Name != "probed" {
		t.Errorf("a reactor that is served: %+v, %v", a, err)
	}
	if err := other.Drain(); err != nil || len(requests) > 0 {
		t.Errorf("the process was sent %d messages: %v", len(requests), err)
	}
	for name, err := range map[string]error{
		"named":      second(d.c.Send(d.ctx, plain, events.ReactThread{Text: new("x"), AgentID: "nobody"})),
		"its own":    second(d.c.Send(d.ctx, own, events.ReactThread{Text: new("x")})),
		"no reactor": second(d.c.Send(d.ctx, plain, events.ReactThread{Text: new("x"), AgentID: "a.b/c"})),
		"asked for":  second(client.Read(d.ctx, d.c, events.GetAgent{Name: "nobody"})),
	} {
		if !errors.Is(err, gone) || !strings.Contains(err.Error(), "nobody") && name != "no reactor" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.c.Send(d.ctx, plain, events.ReactThread{Text: new("x")}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a thread without an agent: %v", err)
	}
	list := must(client.Read(d.ctx, must(d.c.UpToDate(d.ctx))(t), events.ListItems{ThreadID: plain}))(t)
	if len(list.Items) > 0 {
		t.Errorf("%d items were stored", len(list.Items))
	}
}

func second[T any](_ T, err error) error { return err }

// A tool that no process serves is waited for, even one that must not be called twice;
// a definition may disable the wait.
func TestCall_AbsentToolIsWaitedFor(t *testing.T) {
	t.Parallel()
	step := transcript.Text("I look.", runtime.ToolCall{CallID: "c1", Name: "refund", Arguments: events.JSON(`{}`)})
	d := newDesk(t, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			return errors.Join(own(r), r.AddReactor("clerk", transcript.Fixed(step, transcript.Text("done"))))
		}
	})
	d.apply("tool", `{"name":"refund","description":"Refunds.","type":"nats"}`, "agent", `{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund"]}`)
	reply := d.react(d.thread("desk"), events.ReactThread{Text: new("hello")})
	told, ended := d.watch(reply)
	d.until(told, waitsForWorker("refund"))
	nc := natstest.Dial(t, d.url)
	defer nc.Close()
	var calls atomic.Int32
	tool := must(runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds."},
		func(context.Context, *runtime.ToolInput, struct{}) (string, error) {
			calls.Add(1)
			return "refunded", nil
		}))(t)
	must(remote.ServeTool(nc, events.DefaultNames(), tool))(t)
	if x, err := ended(); err != nil || x.Status != events.ExecutionCompleted || calls.Load() != 1 {
		t.Errorf("%+v, %v after %d calls", x, err, calls.Load())
	}

	d.apply("tool", `{"name":"never","description":"Nobody.","type":"nats","workerWaitMs":0}`,
		"agent", `{"name":"hasty","type":"ai_human","reactor":"absent","limits":{"workerWaitMs":0}}`,
		"agent", `{"name":"brief","type":"ai_human","reactor":"absent","limits":{"workerWaitMs":300}}`)
	for agent, says := range map[string]string{"hasty": "no process answers", "brief": "no process served the reactor absent for"} {
		reply := d.react(d.thread(agent), events.ReactThread{Text: new("hello")})
		x, err := d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: seqOf(reply)}})
		if err != nil || x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, says) {
			t.Errorf("%s: %+v, %v", agent, x, err)
		}
	}
}

// run.retry continues from the partial results of the failed run.
func TestRetry_ContinuesFromTheLastGoodBoundary(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	d := newDesk(t, func(c *server.Config) {
		own := c.Register
		c.Register = func(r *runtime.Registry) error {
			double := must(runtime.DefineTool(runtime.ToolSpec{Name: "count", Description: "Counts."},
				func(context.Context, *runtime.ToolInput, struct{}) (int, error) { return 42, nil }))(t)
			return errors.Join(own(r), r.AddTool(double), r.AddReactor("weak", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				out := &runtime.Reaction{}
				switch asked {
				case 1:
					out.AssistantEvent.Content = []events.JSON{events.JSON(`{"type":"output_text","text":"I count."}`)}
					out.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: "count"}}
					return out, nil
				case 2:
					return nil, errors.New("the model is away")
				}
				said := ""
				for _, i := range in.Items {
					said += string(i.Content)
				}
				if !strings.Contains(said, "how many?") || !strings.Contains(said, "42") || strings.Count(said, "how many?") != 1 {
					return nil, errors.New("it does not see what was done: " + said)
				}
				out.AssistantEvent.Content = []events.JSON{events.JSON(`{"type":"output_text","text":"42"}`)}
				return out, nil
			})))
		}
	})
	d.apply("tool", `{"name":"count","description":"Counts.","type":"go","readOnly":true}`, "agent", `{"name":"a","type":"ai_human","reactor":"weak","tools":["count"]}`)
	thread := d.thread("a")
	if _, err := d.c.Send(d.ctx, thread, events.RetryRun{}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("nothing has failed: %v", err)
	}
	wait := func(r *events.Reply) *events.Execution {
		return must(d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: thread, ExecutionID: r.Result.ExecutionID, Fresh: events.Fresh{MinSeq: seqOf(r)}}))(t)
	}
	first := d.react(thread, events.ReactThread{Text: new("how many?")})
	failed := wait(first)
	if failed.Status != events.ExecutionFailed {
		t.Fatalf("%+v", failed)
	}
	again := must(d.c.Send(d.ctx, thread, events.RetryRun{}))(t)
	x := wait(again)
	if x.Status != events.ExecutionCompleted || x.RetryOf != failed.ID || x.TriggerItemID != failed.TriggerItemID || x.ID == failed.ID {
		t.Errorf("%+v", x)
	}
	if _, err := d.c.Send(d.ctx, thread, events.RetryRun{ExecutionID: failed.ID}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a failed run that was retried: %v", err)
	}
}
