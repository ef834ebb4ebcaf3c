package commands

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// submit stores a command, as a client does, and waits until it is stored.
func (w *world) submit(name, body string) {
	w.t.Helper()
	if _, err := w.log.JetStream().Publish(w.t.Context(), "skein.submit.acme."+name, []byte(body)); err != nil {
		w.t.Fatalf("%q: %v", name, err)
	}
}

// work does submitted commands until the gotten function is called, which waits
// for the end.
func (w *world) work(d *Dispatcher) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.Submitted(ctx); err != nil {
			w.t.Errorf("doing submitted commands: %v", err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// empty waits until no submitted command is left.
func (w *world) empty() {
	w.t.Helper()
	w.until("the end of the submitted commands", func() bool {
		s, err := w.log.JetStream().Stream(w.t.Context(), "SKEIN_COMMANDS")
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
}

// rejections lists what was recorded as refused on an aggregate.
func (w *world) rejections(aggregate string) []events.CommandRejected {
	w.t.Helper()
	var list []events.CommandRejected
	for _, c := range w.commits(aggregate) {
		for i := range c.Events {
			if d, ok := c.Events[i].Data.(events.CommandRejected); ok {
				list = append(list, d)
			}
		}
	}
	return list
}

// itemsOf lists the ids of a thread's items, in order.
func (w *world) itemsOf(id string) []string {
	w.t.Helper()
	var list []string
	for _, c := range w.commits(id) {
		for i := range c.Events {
			if d, ok := c.Events[i].Data.(events.ItemCreated); ok {
				list = append(list, d.ID)
			}
		}
	}
	return list
}

func item(id string) string {
	return `{"item":{"id":"` + id + `","type":"message","role":"user","content":[]}}`
}

// Submitted commands are done in the order of their thread, whether it is named
// by its id or its key, and with an id or without.
func TestSubmit(t *testing.T) {
	w := newWorld(t, Config{})
	var want []string
	w.submit("thread.create", `{"commandId":"c-1","data":{"key":"k"}}`)
	for i := range 40 {
		id := "itm_" + strconv.Itoa(i)
		want = append(want, id)
		w.submit("item.create", on("key:k", item(id)))
	}
	w.submit("thread.update", with("c-2", "key:k", `{"title":"x"}`))
	w.submit("thread.resolve", `{"data":{"key":"k"}}`)
	for range 5 {
		w.submit("thread.create", `{"commandId":"","data":{}}`)
	}
	stop := w.work(w.d)
	w.empty()
	stop()
	if list := w.rejections(events.TenantAggregate); len(list) > 0 {
		t.Fatalf("%d were refused, the first: %+v", len(list), list[0])
	}
	id := events.DeriveThreadID(tenant, "c-1")
	if got := w.itemsOf(id); !slices.Equal(got, want) {
		t.Errorf("the items are %v", got)
	}
	count := w.byCommand(id)
	if count["c-1"] != 3 || count["c-2"] != 1 || w.lastSeq() != 2+40+2+5 {
		t.Errorf("the commands made %v events; the log ends at %d", count, w.lastSeq())
	}
}

// A refused command is recorded on its thread, or, if there is none, on the
// tenant, with the error that a request would have got, also where it had no
// id; and what no tenant could have sent holds nothing up.
func TestSubmitRefused(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	w.submit("thread.status", `{"commandId":"c-1","actor":"user:ada","threadId":"`+id+`","data":{"to":"failed"}}`)
	w.submit("item.create", on(id, `{"item":{}}`))
	w.submit("item.create", on(newThread, hello))
	w.submit("item.create", on("key:nobody", hello))
	w.submit("thread.fly", `{}`)
	w.submit("thread.create", `{`)
	w.submit("\xff.\xfe", `{}`)
	w.submit("thread.update", `{"threadId":"`+id+"\xff"+`"}`)
	for _, subject := range []string{"skein.submit.-bad-.thread.create", "skein.submit.\xff.thread.create"} {
		if _, err := w.log.JetStream().Publish(t.Context(), subject, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	w.submit("item.create", on(id, item("itm_last")))
	stop := w.work(w.d)
	w.empty()
	stop()
	mine, whole := w.rejections(id), w.rejections(events.TenantAggregate)
	codes := func(list []events.CommandRejected) (out []events.Code) {
		for _, r := range list {
			out = append(out, r.Code)
		}
		slices.Sort(out)
		return out
	}
	if got := codes(mine); !slices.Equal(got, []events.Code{events.IllegalTransition, events.InvalidRequest}) {
		t.Errorf("on the thread: %v", got)
	}
	if got := codes(whole); !slices.Equal(got, []events.Code{events.InvalidRequest, events.InvalidRequest, events.NotFound, events.NotFound, events.NotFound, events.NotFound}) {
		t.Errorf("on the tenant: %v", got)
	}
	if r := mine[0]; r.Command != "thread.status" || r.CommandID != "c-1" || r.ThreadID != id || r.Message == "" ||
		string(r.Details) != `{"entity":"thread","id":"`+id+`","from":"open","to":"failed","allowed":["streaming"]}` {
		t.Errorf("the refusal says %+v", r)
	}
	if got := w.itemsOf(id); !slices.Equal(got, []string{"itm_last"}) {
		t.Errorf("the items are %v", got)
	}
	if actor := w.commits(id)[1].Events[0].Actor; actor != "user:ada" {
		t.Errorf("asked by %q", actor)
	}
}

// lostAck is a message whose acknowledgement never arrives: the worker is
// stopped between doing and acknowledging.
type lostAck struct{ jetstream.Msg }

func (lostAck) DoubleAck(context.Context) error { return nil }

// fetch takes submitted commands as a worker does that will be stopped.
func (w *world) fetch(n int) []jetstream.Msg {
	w.t.Helper()
	consumer, err := w.log.JetStream().CreateOrUpdateConsumer(w.t.Context(), "SKEIN_COMMANDS", jetstream.ConsumerConfig{
		Durable: "skein-submit", AckPolicy: jetstream.AckExplicitPolicy, AckWait: submitWait, MaxAckPending: 1024, MaxDeliver: -1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	batch, err := consumer.Fetch(n)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []jetstream.Msg
	for m := range batch.Messages() {
		list = append(list, m)
	}
	if len(list) != n {
		w.t.Fatalf("%d of %d messages came: %v", len(list), n, batch.Error())
	}
	return list
}

// A command that was done or refused, but not taken off the list, is not done
// or refused again when it comes to another worker, whatever has changed since.
func TestSubmitOnce(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	holder := must(t, w.d, "thread.create", `{"data":{"key":"k"}}`).ThreadID
	w.submit("item.create", on(id, hello))
	w.submit("item.create", with("c-1", id, hello))
	w.submit("thread.create", `{"commandId":""}`)
	w.submit("thread.create", `{"data":{"key":"own"}}`)
	w.submit("thread.status", on(id, `{"to":"failed"}`))   // refused: it is open
	w.submit("thread.create", `{"data":{"key":"k"}}`)      // refused: it is taken
	w.submit("item.create", with("c-2", newThread, hello)) // refused: it is not there
	for _, m := range w.fetch(7) {
		w.d.submitted(t.Context(), lostAck{m}, 0, newShareLimiter(func() int { return 0 }))
	}
	if a, b := len(w.rejections(id)), len(w.rejections(events.TenantAggregate)); a != 1 || b != 2 {
		t.Fatalf("%d and %d were refused", a, b)
	}
	must(t, w.d, "thread.status", on(id, `{"to":"streaming"}`)) // now all of them could be done
	must(t, w.d, "thread.delete", on(holder, `{}`))
	must(t, w.d, "thread.create", on(newThread, `{}`))
	before := w.lastSeq()
	stop := w.work(w.another(Config{}))
	w.empty()
	stop()
	if after := w.lastSeq(); after != before {
		t.Errorf("the log went from %d to %d", before, after)
	}
}

// What a worker had in hand when it was killed comes before what was submitted
// later, and at once.
func TestSubmitOrderAfterAKill(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	var want []string
	add := func(n int) {
		for range n {
			next := "itm_" + strconv.Itoa(len(want))
			want = append(want, next)
			w.submit("item.create", on(id, item(next)))
		}
	}
	add(10)
	w.fetch(10) // and nothing is done
	add(10)
	stop := w.work(w.d)
	w.empty()
	stop()
	if got := w.itemsOf(id); !slices.Equal(got, want) {
		t.Errorf("the items are %v", got)
	}
}

// Workers that are stopped and replaced again and again do each command once,
// in order.
func TestSubmitWithStops(t *testing.T) {
	w := newWorld(t, Config{})
	ids := []string{create(t, w.d), create(t, w.d), create(t, w.d)}
	const each = 60
	var want []string
	for i := range each {
		next := "itm_" + strconv.Itoa(i)
		want = append(want, next)
		for _, id := range ids {
			w.submit("item.create", on(id, item(next)))
		}
	}
	for round := range 6 {
		d := w.another(Config{})
		stop := w.work(d)
		before := w.lastSeq()
		if round < 5 {
			w.until("some progress", func() bool { return w.lastSeq() > before+3 })
		} else {
			w.empty()
		}
		stop()
	}
	for _, id := range ids {
		if got := w.itemsOf(id); !slices.Equal(got, want) {
			t.Errorf("the items of %s are %v", id, got)
		}
		if list := w.rejections(id); len(list) > 0 {
			t.Errorf("%d were refused: %+v", len(list), list[0])
		}
	}
}

// A command of a tenant that cannot exist is dropped when it comes, although its subject is one that
// a gateway may publish on.
func TestSubmitted_ImpossibleTenant(t *testing.T) {
	w := newWorld(t, Config{})
	stop := w.work(w.d)
	defer stop()
	w.submit("thread.create", `{"threadId":"T-00000000-0000-7000-8000-00000000000a"}`)
	w.empty() // the worker has begun
	for _, tenant := range []string{"a$b", "ü", strings.Repeat("x", 65)} {
		if _, err := w.log.JetStream().Publish(t.Context(), "skein.submit."+tenant+".thread.create", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	w.empty()
}
