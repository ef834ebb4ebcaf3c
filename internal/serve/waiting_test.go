package serve_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/serve"
	"github.com/skein-threads/skein/runtime"
)

// desk is a server with a reactor that answers when it is let, and a client.
type desk struct {
	t      *testing.T
	c      *client.Client
	url    string
	ctx    context.Context //nolint:containedctx // of the test
	answer chan string     // what the reactor "slow" answers next
	asked  chan *runtime.StepInput
}

func newDesk(t *testing.T, change ...func(*serve.Config)) *desk {
	t.Helper()
	d := &desk{t: t, answer: make(chan string), asked: make(chan *runtime.StepInput, 100)}
	cfg := serve.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true,
		Register: func(r *runtime.Registry) error {
			return r.AddReactor("slow", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				d.asked <- in
				select {
				case text := <-d.answer:
					out := &runtime.Reaction{}
					out.AssistantEvent.Content = []jsontext.Value{jsontext.Value(`{"type":"output_text","text":"` + text + `"}`)}
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
	s, err := serve.Start(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	d.url = s.Addresses().NATS
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
	return must(d.c.CreateThread(d.ctx, events.CreateThread{AgentID: agent}))(d.t).ThreadID
}

func (d *desk) react(thread string, what events.ReactThread) *events.Reply {
	d.t.Helper()
	return must(d.c.React(d.ctx, thread, what))(d.t)
}

// watch waits for the execution of a reply, and gathers what it waits for.
func (d *desk) watch(reply *events.Reply) (told chan client.Waiting, ended func() (*events.Execution, error)) {
	d.t.Helper()
	told = make(chan client.Waiting, 100)
	seq := events.Int(reply.Seq)
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

// C-51: every message is answered with its execution's id, and can be waited for by
// it while others go first, are replaced, moved and removed.
func TestQueue_WaitedForByExecutionID(t *testing.T) {
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
	must(d.c.MoveQueued(d.ctx, thread, events.MoveQueued{QueuedID: third.Result.QueuedID, Before: second.Result.QueuedID}))(t)
	d.until(toldSecond, func(w client.Waiting) bool { return w.Ahead == 2 })
	d.until(toldThird, func(w client.Waiting) bool { return w.Ahead == 1 })
	must(d.c.EditQueued(d.ctx, thread, events.EditQueued{QueuedID: second.Result.QueuedID, Item: events.NewItem{
		Type: events.Message, Role: events.User, Content: jsontext.Value(`[{"type":"input_text","text":"deux"}]`),
	}}))(t)
	must(d.c.RemoveQueued(d.ctx, thread, events.RemoveQueued{QueuedID: fourth.Result.QueuedID}))(t)
	if x, err := fourthEnded(); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("who waits for a message that was removed has %+v, %v", x, err)
	}
	list := must(d.c.ListQueue(d.ctx, events.ListQueue{ThreadID: thread}))(t)
	if len(list.Queued) != 2 || list.Queued[0].ExecutionID != third.Result.ExecutionID || list.Queued[1].ID != second.Result.QueuedID ||
		list.Queued[1].MessageID != 1 || list.Active == "" {
		t.Errorf("%+v", list)
	}
	if doc := must(d.c.WithMinSeq(list.Seq).GetThread(d.ctx, events.GetThread{ThreadID: thread}))(t); doc.Queued != 2 {
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
		seq := events.Int(x.Seq)
		item := must(d.c.GetItem(d.ctx, events.GetItem{ThreadID: thread, ItemID: x.TriggerItemID, Fresh: events.Fresh{MinSeq: &seq}}))(t)
		if x.ID != run.reply.Result.ExecutionID || x.ReactionItemID != run.reply.Result.ReactionItemID ||
			string(item.Content) != `[{"type":"input_text","text":"`+run.asked+`"}]` {
			t.Errorf("%+v answers %s", x, item.Content)
		}
	}
	if _, err := d.c.WaitRun(d.ctx, events.GetExecution{ThreadID: thread, ExecutionID: "exe_never"}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("an execution that never was: %v", err)
	}
}
