package skeintest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

func thread(t *testing.T, c *client.Client, agent string) string {
	t.Helper()
	reply, err := c.Send(t.Context(), "", events.CreateThread{AgentID: agent})
	if err != nil {
		t.Fatal(err)
	}
	return reply.ThreadID
}

// An effect a year ahead runs once when the clock is advanced by a year, and a repeated
// one on its schedule.
func TestAdvance_BeginsEffectsThatAreDue(t *testing.T) {
	s := skeintest.Start(t)
	var once, daily atomic.Int64
	s.Must(s.Effect("once", func(context.Context, *skein.EffectInput) error { once.Add(1); return nil }))
	s.Must(s.Effect("daily", func(context.Context, *skein.EffectInput) error { daily.Add(1); return nil }))
	c := s.Client("acme")
	id := thread(t, c, "")
	year, day := int64(365*24*3600*1000), int64(24*3600*1000)
	for _, e := range []events.ScheduleEffect{{Name: "once", DelayMs: &year}, {Name: "daily", EveryMs: &day}} {
		if _, err := c.Send(t.Context(), id, e); err != nil {
			t.Fatal(err)
		}
	}
	s.WaitIdle()
	if once.Load() != 0 || daily.Load() != 0 {
		t.Fatalf("before their time, %d and %d ran", once.Load(), daily.Load())
	}
	for range 3 {
		s.Advance(24 * time.Hour)
		s.WaitIdle()
	}
	if once.Load() != 0 || daily.Load() != 3 {
		t.Errorf("after three days, %d and %d ran, want 0 and 3", once.Load(), daily.Load())
	}
	s.Advance(365 * 24 * time.Hour)
	s.WaitIdle()
	if once.Load() != 1 || daily.Load() != 4 {
		t.Errorf("after a year, %d and %d ran, want 1 and 4: what was missed runs once", once.Load(), daily.Load())
	}
	got, err := c.ScheduledEffects(t.Context(), id, "")
	if err != nil || len(got) != 1 || got[0].Name != "daily" {
		t.Errorf("pending: %v %v", got, err)
	}
}

// The clock applies to threads, too.
func TestAdvance_MovesTheTimeOfEvents(t *testing.T) {
	s := skeintest.Start(t)
	c := s.Client("acme")
	s.Advance(1000 * time.Hour)
	reply, err := c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Read(t.Context(), c.WithMinSeq(reply.Seq), events.GetThread{ThreadID: reply.ThreadID})
	if err != nil {
		t.Fatal(err)
	}
	made, err := events.ParseTime(got.CreatedAt)
	if err != nil || made.Go().Before(time.Now().Add(999*time.Hour)) {
		t.Errorf("made at %s (%v)", got.CreatedAt, err)
	}
}

// After WaitIdle no run is queued, and its answer is in the read models without
// waiting.
func TestWaitIdle_RunsHaveEnded(t *testing.T) {
	s := skeintest.Start(t)
	s.Must(s.Reactor("shout", func(ctx context.Context, in *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return skein.Answer(strings.ToUpper(in.LastText(events.User))), nil
	}))
	c := s.Client("acme")
	hi := events.UserText("hi")
	var ids []string
	for range 5 {
		id := thread(t, c, "shout")
		if _, err := c.Send(t.Context(), id, events.ReactThread{Item: &hi}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	s.WaitIdle()
	for _, id := range ids {
		list, err := client.Read(t.Context(), c, events.ListMessages{ThreadID: id})
		if err != nil || len(list.Messages) != 2 {
			t.Errorf("thread %s: %+v %v", id, list, err)
		}
	}
}

// A run whose message the queue does not have, because it is on its way or was lost, is work
// that is left.
func TestWaitIdle_RunIsNotQueued(t *testing.T) {
	s := skeintest.Start(t, func(o *skein.Options) { o.Workers, o.NATSListen = 1, "127.0.0.1:0" })
	begun, end := make(chan struct{}, 1), make(chan struct{})
	s.Must(s.Reactor("slow", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		begun <- struct{}{}
		select {
		case <-end:
			return skein.Answer("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	s.Must(s.Reactor("shout", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		return skein.Answer("HI"), nil
	}))
	c := s.Client("acme")
	ask := func(agent string) (id string) {
		id = thread(t, c, agent)
		if _, err := c.Send(t.Context(), id, events.ReactThread{Text: new("hi")}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	ask("slow")
	<-begun
	id := ask("shout") // it waits: the only place is taken
	nc := natstest.Dial(t, s.Addresses().NATS)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	queue, err := js.Stream(t.Context(), "SKEIN_RUNS")
	if err != nil {
		t.Fatal(err)
	}
	for queue.CachedInfo().State.Msgs < 2 {
		if _, err := queue.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(end)
	s.WaitIdle()
	list, err := client.Read(t.Context(), c, events.ListMessages{ThreadID: id})
	if err != nil || len(list.Messages) != 2 {
		t.Errorf("the run has not ended: %+v %v", list, err)
	}
}

// Nothing listens unless requested.
func TestStart_ListensNowhere(t *testing.T) {
	if at := skeintest.Start(t).Addresses(); at != (skein.Addresses{}) {
		t.Errorf("%+v", at)
	}
	at := skeintest.Start(t, func(o *skein.Options) { o.NATSListen, o.HTTPListen = "127.0.0.1:0", "127.0.0.1:0" }).Addresses()
	if !strings.HasPrefix(at.NATS, "nats://127.0.0.1:") || !strings.HasPrefix(at.HTTP, "http://127.0.0.1:") {
		t.Errorf("%+v", at)
	}
}
