package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/rebuild"
	"github.com/skein-threads/skein/schema"
)

const threadOne = "T-0190a000-0000-7000-8000-000000000001"

// house is a log with a relay, and a dispatcher to fill it.
type house struct {
	t         *testing.T
	ctx       context.Context
	log       *eventlog.Log
	validator *schema.Validator
	dispatch  *commands.Dispatcher
	runner    *projections.Runner
	stopRelay func()

	stopRunner func()
}

func newHouse(t *testing.T) *house {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	log, err := eventlog.Open(nc, eventlog.Config{Patience: natstest.Patience}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	h := &house{t: t, ctx: t.Context(), log: log}
	if err := log.Ensure(h.ctx); err != nil {
		t.Fatal(err)
	}
	if h.validator, err = schema.New(); err != nil {
		t.Fatal(err)
	}
	h.dispatch = newDispatcher(h)
	h.runner = projections.New(log, projections.Config{}, zerolog.Nop(), nil)
	if err := h.runner.Ensure(h.ctx); err != nil {
		t.Fatal(err)
	}
	h.stopRunner = h.background(h.runner.Run)
	h.stopRelay = h.background(timeline.Of(h.log).Relay)
	return h
}

// newDispatcher returns one with an empty cache.
func newDispatcher(h *house) *commands.Dispatcher {
	h.t.Helper()
	contents, err := files.Open(h.ctx, h.log)
	if err != nil {
		h.t.Fatal(err)
	}
	return commands.NewDispatcher(h.log, h.validator, commands.Config{Contents: contents}, zerolog.Nop(), nil)
}

// background runs something until the test ends, or what it returns is called.
func (h *house) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	h.t.Cleanup(stop)
	return stop
}

func (h *house) do(command, body string) *events.Reply {
	h.t.Helper()
	reply, err := h.dispatch.Do(h.ctx, "acme", command, []byte(body), commands.Meta{})
	if err != nil {
		h.t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// fill writes a thread with a turn, each boundary a commit.
func (h *house) fill(id string) {
	h.t.Helper()
	in := func(data string) string { return fmt.Sprintf(`{"threadId":%q,"data":%s}`, id, data) }
	h.do("thread.create", in(`{"title":"one"}`))
	h.do("item.create", in(`{"item":{"id":"itm_u1","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`))
	h.do("thread.status", in(`{"to":"streaming"}`))
	h.do("execution.create", in(`{"id":"exe_1","triggerItemId":"itm_u1"}`))
	h.do("step.create", in(`{"id":"stp_1","executionId":"exe_1"}`))
	h.do("part.put", in(`{"stepId":"stp_1","idx":0,"type":"output_text","part":{"type":"output_text","text":"hi"}}`))
	h.do("step.status", in(`{"stepId":"stp_1","to":"completed"}`))
	h.do("execution.status", in(`{"executionId":"exe_1","to":"completed"}`))
	last := h.do("thread.status", in(`{"to":"open"}`))
	h.settle(last.Seq)
}

// settle waits until timeline and read models show the log up to a sequence.
func (h *house) settle(seq int64) {
	h.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		got, err := timeline.Of(h.log).LastSeq(h.ctx)
		if err == nil && int64(got) >= seq && int64(h.runner.Progress().Seq()) >= seq {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the timeline stands at %d, not %d: %v", got, seq, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// verify returns the findings, each as "kind: ..." text.
func (h *house) verify(o Options) ([]Finding, Summary) {
	h.t.Helper()
	var found []Finding
	o.Finding = func(f Finding) { found = append(found, f) }
	contents, err := NewContents(h.ctx, h.log)
	if err != nil {
		h.t.Fatal(err)
	}
	if !o.LogOnly && o.Checks == nil {
		o.Checks = []Check{contents}
	}
	summary, err := Verify(h.ctx, h.log, h.validator, o)
	if err != nil {
		h.t.Fatal(err)
	}
	summary.Contents = int(contents.Read())
	if summary.Findings != len(found) {
		h.t.Errorf("the summary counts %d findings, %d were told", summary.Findings, len(found))
	}
	return found, summary
}

// rewrite re-creates a stream with its messages changed, without Skein.
func (h *house) rewrite(name string, change func(list []*nats.Msg) []*nats.Msg) {
	h.t.Helper()
	js := h.log.JetStream()
	stream, err := js.Stream(h.ctx, name)
	if err != nil {
		h.t.Fatal(err)
	}
	info := stream.CachedInfo()
	var list []*nats.Msg
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		m, err := stream.GetMsg(h.ctx, seq)
		if err != nil {
			h.t.Fatal(err)
		}
		header := nats.Header{}
		for k, v := range m.Header {
			if strings.HasPrefix(k, "Skein-") || k == "Content-Type" {
				header[k] = v
			}
		}
		list = append(list, &nats.Msg{Subject: m.Subject, Header: header, Data: m.Data})
	}
	// The server deletes in its own time: a stream made at once may still find what
	// it held.
	h.await("an empty "+name, func() bool {
		if err := js.DeleteStream(h.ctx, name); err != nil {
			h.t.Fatal(err)
		}
		made, err := js.CreateStream(h.ctx, info.Config)
		if err != nil {
			h.t.Fatal(err)
		}
		return made.CachedInfo().State.LastSeq == 0
	})
	for _, m := range change(list) {
		if _, err := js.PublishMsg(h.ctx, m); err != nil {
			h.t.Fatal(err)
		}
	}
}

func replaced(m *nats.Msg, old, with string) *nats.Msg {
	return &nats.Msg{Subject: m.Subject, Header: m.Header, Data: []byte(strings.Replace(string(m.Data), old, with, 1))}
}

// forge appends a commit that is right in its chain and versions, and wrong in
// what it says.
func (h *house) forge(id string, t events.Type, subject string, data any) {
	h.t.Helper()
	last, err := h.log.Last(h.ctx, "acme", id)
	if err != nil || last == nil {
		h.t.Fatal(last, err)
	}
	e := events.Event{
		ID: events.EventID("acme", id, "forged"+string(t), 0), Type: t, Time: events.TimeOf(time.Now()), Subject: subject, Tenant: "acme",
		ThreadID: id, Version: last.Version + 1, CommandID: "forged" + string(t), Data: data,
	}
	commit, err := events.NewCommit(last.Chain, []events.Event{e})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.log.Append(h.ctx, eventlog.Write{Commit: commit, Expected: last.Seq}); err != nil {
		h.t.Fatal(err)
	}
	h.settle(int64(commit.Seq))
}

func wantKinds(t *testing.T, found []Finding, kinds ...Kind) {
	t.Helper()
	have := map[Kind]bool{}
	for _, f := range found {
		have[f.Kind] = true
	}
	for _, k := range kinds {
		if !have[k] {
			t.Errorf("no finding of kind %s in %v", k, found)
		}
		delete(have, k)
	}
	if len(have) > 0 {
		t.Errorf("findings that are not of the kinds %v: %v", kinds, found)
	}
}

// What Skein wrote is found right, and is counted. EK-150, EK-186.
func TestVerifyClean(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.do("thread.create", `{"data":{"key":"a key"}}`)
	reply := h.do("thread.resolve", `{"data":{"key":"a key"}}`)
	h.settle(reply.Seq)
	found, summary := h.verify(Options{})
	if len(found) != 0 {
		t.Errorf("findings on a log that nobody touched: %v", found)
	}
	// Two threads and a key; 10 events, 3, 1 of resolve, and the key's own.
	if summary.Threads != 2 || summary.Others != 1 || summary.Events != 15 || summary.Timeline != 15 || int64(summary.LastSeq) != reply.Seq || summary.Documents == 0 {
		t.Errorf("summary %+v", summary)
	}
	found, summary = h.verify(Options{Tenant: "acme", Threads: []string{threadOne}})
	if len(found) != 0 || summary.Threads != 1 || summary.Events != 10 {
		t.Errorf("one thread: %+v, findings %v", summary, found)
	}
}

// Whatever is done to the log behind Skein's back is found and placed.
func TestVerifyTamperedLog(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(list []*nats.Msg) []*nats.Msg
		seq    uint64
		kinds  []Kind
	}{
		{"a letter altered", func(l []*nats.Msg) []*nats.Msg {
			l[1] = replaced(l[1], "hello", "hullo")
			return l
		}, 2, []Kind{KindChain}},
		{"a commit dropped", func(l []*nats.Msg) []*nats.Msg { return append(l[:5:5], l[6:]...) }, 6, []Kind{KindChain, KindVersion, KindLink}},
		{"two commits changed places", func(l []*nats.Msg) []*nats.Msg {
			l[4], l[5] = l[5], l[4]
			return l
		}, 5, []Kind{KindChain, KindVersion, KindLink}},
		{"a commit twice", func(l []*nats.Msg) []*nats.Msg { return append(l[:3:3], l[2:]...) }, 4, []Kind{KindChain, KindVersion, KindLink}},
		{"the first commits gone", func(l []*nats.Msg) []*nats.Msg { return l[1:] }, 1, []Kind{KindChain, KindVersion, KindLink}},
		{"not a commit", func(l []*nats.Msg) []*nats.Msg {
			return append(l, &nats.Msg{Subject: l[0].Subject, Data: []byte("what is this?")})
		}, 10, []Kind{KindBroken}},
		{"another thread's commit", func(l []*nats.Msg) []*nats.Msg {
			l[8] = replaced(l[8], threadOne, "T-0190a000-0000-7000-8000-000000000002")
			return l
		}, 9, []Kind{KindBroken}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			h.stopRelay()
			h.rewrite("SKEIN_LOG", tt.change)
			found, _ := h.verify(Options{LogOnly: true})
			wantKinds(t, found, tt.kinds...)
			if len(found) == 0 || found[0].Seq != tt.seq || found[0].Thread != threadOne {
				t.Errorf("the first finding should be at commit %d of %s: %v", tt.seq, threadOne, found)
			}
		})
	}
}

// Events that Skein would not have written are found, though their chains are
// right: schema, machine, link, and what this version does not know.
func TestVerifyForged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		typ     events.Type
		subject string
		data    any
		kind    Kind
	}{
		{"a forbidden move", events.ThreadStatusChangedType, threadOne, events.ThreadStatusChanged{From: "open", To: "closed"}, KindTransition},
		{"a move from another state", events.ItemStatusChangedType, "itm_u1", events.ItemStatusChanged{From: "pending", To: "completed"}, KindLink},
		{"a step of no execution", events.StepCreatedType, "stp_9", events.StepCreated{ID: "stp_9", ExecutionID: "exe_9", EventID: "itm_9", Status: "running"}, KindLink},
		{"a role that is none", events.ItemCreatedType, "itm_9", events.ItemCreated{ID: "itm_9", ContextID: "ctx", Index: 1, Type: "message", Role: "king", Status: "stored"}, KindSchema},
		{"an unknown type", "thread.sung", threadOne, events.Unknown{Schema: "urn:skein:event:thread.sung:1", Raw: []byte(`{}`)}, KindUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			h.forge(threadOne, tt.typ, tt.subject, tt.data)
			found, _ := h.verify(Options{})
			for _, f := range found {
				if f.Kind == tt.kind && f.Seq == 10 && f.Event != "" {
					return
				}
			}
			t.Errorf("no finding of kind %s at commit 10: %v", tt.kind, found)
		})
	}
}

// A timeline that is not the log's events in order is found, and mended by a
// replay.
func TestVerifyTimeline(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(list []*nats.Msg) []*nats.Msg
	}{
		{"an event altered", func(l []*nats.Msg) []*nats.Msg {
			l[2] = replaced(l[2], "hello", "hullo")
			return l
		}},
		{"an event left out", func(l []*nats.Msg) []*nats.Msg { return append(l[:4:4], l[5:]...) }},
		{"an event twice", func(l []*nats.Msg) []*nats.Msg { return append(l[:4:4], l[3:]...) }},
		{"two events changed places", func(l []*nats.Msg) []*nats.Msg {
			l[5], l[6] = l[6], l[5]
			return l
		}},
		{"half a commit left out", func(l []*nats.Msg) []*nats.Msg { return append(l[:1:1], l[2:]...) }},
		{"an event of nobody", func(l []*nats.Msg) []*nats.Msg {
			return append(l[:4:4], append([]*nats.Msg{{Subject: l[0].Subject, Data: []byte("{}")}}, l[4:]...)...)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			h.stopRelay()
			h.rewrite("SKEIN_TIMELINE", tt.change)
			found, _ := h.verify(Options{})
			wantKinds(t, found, KindTimeline)
			if err := timeline.Of(h.log).Rebuild(h.ctx); err != nil {
				t.Fatal(err)
			}
			if found, _ := h.verify(Options{}); len(found) != 0 {
				t.Errorf("after a replay of the timeline: %v", found)
			}
		})
	}
}

// Messages that are missing from the log are noticed even where no commit that
// is left can tell.
func TestVerifySequence(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.do("thread.create", `{"threadId":"T-0190a000-0000-7000-8000-000000000002"}`)
	last := h.do("thread.create", `{"threadId":"T-0190a000-0000-7000-8000-000000000003"}`)
	h.settle(last.Seq)
	stream, err := h.log.JetStream().Stream(h.ctx, "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(h.ctx, jetstream.WithPurgeSubject("skein.log.acme.T-0190a000-0000-7000-8000-000000000002")); err != nil {
		t.Fatal(err)
	}
	found, _ := h.verify(Options{LogOnly: true})
	wantKinds(t, found, KindSequence)
}

// A document that is altered, missing, or of nobody is found, and named by
// bucket and key.
func TestVerifyDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, bucket, key string
		change            func(kv jetstream.KeyValue, key string) error
	}{
		{"altered", "thread_items", "acme." + threadOne + ".itm_u1", func(kv jetstream.KeyValue, key string) error {
			e, err := kv.Get(context.Background(), key)
			if err == nil {
				_, err = kv.Put(context.Background(), key, []byte(strings.Replace(string(e.Value()), "hello", "hullo", 1)))
			}
			return err
		}},
		{"missing", "thread_steps", "acme." + threadOne + ".exe_1.stp_1", func(kv jetstream.KeyValue, key string) error {
			return kv.Delete(context.Background(), key)
		}},
		{"of nobody", "thread_contexts", "acme.T-0190a000-0000-7000-8000-00000000dead.ctx_1", func(kv jetstream.KeyValue, key string) error {
			_, err := kv.Put(context.Background(), key, []byte(`{"id":"ctx_1","seq":3}`))
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.fill(threadOne)
			h.settle(h.do("thread.create", `{"threadId":"`+threadTwo+`"}`).Seq)
			kv, err := h.log.JetStream().KeyValue(h.ctx, tt.bucket)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.change(kv, tt.key); err != nil {
				t.Fatal(err)
			}
			found, _ := h.verify(Options{})
			if len(found) != 1 || found[0].Kind != KindDocument || found[0].Bucket != tt.bucket || found[0].Key != tt.key {
				t.Errorf("findings %v, want %s %s", found, tt.bucket, tt.key)
			}
			for _, id := range []string{threadOne, threadTwo} {
				named, _ := h.verify(Options{Tenant: "acme", Threads: []string{id}})
				if strings.Contains(tt.key, id) != (len(named) == 1) || len(named) > 1 || len(named) == 1 && named[0].Key != tt.key {
					t.Errorf("findings of %s alone: %v, want %s %s where it is its", id, named, tt.bucket, tt.key)
				}
			}
			if _, err := rebuild.Repair(h.ctx, h.log); err != nil {
				t.Fatal(err)
			}
			if found, _ := h.verify(Options{}); len(found) != 0 {
				t.Errorf("after a replay: %v", found)
			}
		})
	}
}

// await waits until something has come about.
func (h *house) await(what string, done func() bool) {
	h.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			h.t.Fatalf("%s did not come about", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Verifying reads the log once in its own order, and asks nothing about short threads, nor about
// keys that both sides confirm: on a log of many short threads such requests were most of the work.
func TestVerify_RequestsOfEachThread(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const threads = 20
	var last *events.Reply
	for n := range threads {
		last = h.do("thread.create", fmt.Sprintf(`{"data":{"key":"orders/%d"}}`, n))
	}
	h.settle(last.Seq)
	var asked []*nats.Subscription
	for _, subject := range []string{"$JS.API.DIRECT.GET.SKEIN_LOG", "$JS.API.STREAM.MSG.GET.SKEIN_LOG"} {
		sub, err := h.log.Conn().SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, sub)
	}
	if err := h.log.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	if found, sum := h.verify(Options{LogOnly: true}); len(found) != 0 || sum.Threads != threads || sum.Others < threads {
		t.Fatalf("%v, %+v", found, sum)
	}
	if err := h.log.Conn().Flush(); err != nil { // what was asked before has arrived
		t.Fatal(err)
	}
	n := 0
	for _, sub := range asked {
		here, _, err := sub.Pending()
		if err != nil {
			t.Fatal(err)
		}
		n += here
	}
	if most := 10; n > most {
		t.Errorf("%d requests for %d threads with a key each, more than %d", n, threads, most)
	}
}

// What a thread and a key's record say of one another is believed only if both are what Skein
// writes: a deleted thread holds no key, one that was created without it never has it, and a key's
// record ends with its claim.
func TestVerify_KeysOfBothSides(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const three = "T-0190a000-0000-7000-8000-000000000003"
	h.keyed(threadOne, "orders/1")
	h.keyed(threadTwo, "orders/2")
	h.settle(h.do("thread.create", `{"threadId":"`+three+`"}`).Seq)
	h.forge(threadOne, events.LifecycleDeletedType, threadOne, events.LifecycleDeleted{})
	h.forge(events.KeyAggregate("orders/2"), "key.sung", events.KeyAggregate("orders/2"), events.Unknown{Schema: "urn:skein:event:key.sung:1", Raw: []byte(`{}`)})
	claim := events.KeyClaimed{Key: "orders/3", ThreadID: three}
	h.forge(three, events.KeyClaimedType, three, claim)
	k := events.KeyAggregate("orders/3")
	if err := h.log.Append(h.ctx, eventlog.Write{Commit: forgedCommit(t, "", k, 1, events.KeyClaimedType, k, claim)}); err != nil {
		t.Fatal(err)
	}
	const four = "T-0190a000-0000-7000-8000-000000000004"
	h.keyed(four, "orders/4")
	stolen := events.KeyClaimed{Key: "orders/4", ThreadID: three}
	h.forge(four, events.KeyClaimedType, four, stolen)
	h.forge(events.KeyAggregate("orders/4"), events.KeyClaimedType, events.KeyAggregate("orders/4"), stolen)
	found, _ := h.verify(Options{LogOnly: true})
	links := map[string]bool{}
	for _, f := range found {
		if f.Kind == KindLink {
			links[f.Thread] = true
		}
	}
	for _, id := range []string{events.KeyAggregate("orders/1"), threadTwo, k, events.KeyAggregate("orders/4")} {
		if !links[id] {
			t.Errorf("what %s says of a key is not found: %v", id, found)
		}
	}
}
