package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// follow reads events until every thread was seen at a version, and checks that each
// event comes once and in order.
type follow struct {
	t    testing.TB
	last map[string]int64
	seq  int64
}

func (f *follow) take(e client.Event) {
	f.t.Helper()
	if e.Version != f.last[e.ThreadID]+1 {
		f.t.Fatalf("%s: version %d follows %d", e.ThreadID, e.Version, f.last[e.ThreadID])
	}
	if e.Seq < f.seq {
		f.t.Fatalf("sequence %d follows %d", e.Seq, f.seq)
	}
	f.last[e.ThreadID], f.seq = e.Version, e.Seq
}

func (f *follow) until(line *client.Timeline, want map[string]int64) {
	f.t.Helper()
	for {
		done := true
		for thread, version := range want {
			done = done && f.last[thread] >= version
		}
		if done {
			return
		}
		f.take(next(f.t, line))
	}
}

// A reader that starts at the beginning while others write sees the whole history and
// then new events, each once and in order.
func TestTimeline_HistoryContinuesLive(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	const threads, items = 8, 60
	want := map[string]int64{}
	var ids []string
	for range threads {
		id := newThread(t, c)
		ids = append(ids, id)
		want[id] = 2 + items
	}
	var writers sync.WaitGroup
	for _, id := range ids {
		writers.Go(func() {
			for i := range items {
				if _, err := c.Send(t.Context(), id, message(fmt.Sprint(i))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			line, err := c.Timeline(t.Context(), client.SubscribeOptions{From: client.Start()})
			if err != nil {
				t.Error(err)
				return
			}
			defer line.Close()
			f := &follow{t: t, last: map[string]int64{}}
			f.until(line, want)
		})
		time.Sleep(5 * time.Millisecond)
	}
	writers.Wait()
	readers.Wait()
}

// A reader that is slower than the live events misses none.
func TestTimeline_SlowReaderMissesNothing(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread := newThread(t, c)
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, From: client.Start()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	// More than is read ahead, and than the channel buffers.
	const commits, each = 40, 150
	for i := range commits {
		var commands []events.SubCommand
		for range each {
			sub, _ := client.Sub("item.create", message(fmt.Sprint(i)))
			commands = append(commands, sub)
		}
		if _, err := c.Commit(t.Context(), thread, commands); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(700 * time.Millisecond)
	f := &follow{t: t, last: map[string]int64{}}
	f.until(line, map[string]int64{thread: 2 + commits*each})
}

// A lost message is detected by its version, and read from the log; a duplicate is
// delivered once.
func TestTimeline_FillsGaps(t *testing.T) {
	t.Parallel()
	url := start(t)
	c := connect(t, url)
	thread := newThread(t, c)
	// A reader whose live messages the test publishes.
	nc := natstest.Dial(t, url)
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, From: client.Seq(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	f := &follow{t: t, last: map[string]int64{}}
	f.until(line, map[string]int64{thread: 2})
	for range 5 {
		if _, err := c.Send(t.Context(), thread, message("m")); err != nil {
			t.Fatal(err)
		}
	}
	f.until(line, map[string]int64{thread: 7})
	// Live messages again, out of order: duplicates.
	history, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer history.Close()
	for e, err := range history.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		m := nats.NewMsg(events.DefaultNames().Timeline("acme", thread, e.Type))
		m.Header.Set(events.HeaderSeq, fmt.Sprint(e.Seq))
		m.Data = e.Raw()
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Send(t.Context(), thread, message("last")); err != nil {
		t.Fatal(err)
	}
	f.until(line, map[string]int64{thread: 8})
}

func TestTimeline_FiltersTypesAndThreads(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	reply, err := c.Send(t.Context(), "", events.ResolveThread{Key: "support/1"})
	if err != nil {
		t.Fatal(err)
	}
	other := newThread(t, c)
	if _, err := c.Send(t.Context(), other, message("m")); err != nil {
		t.Fatal(err)
	}
	types := func(o client.SubscribeOptions) string {
		o.History = true
		line, err := c.Timeline(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer line.Close()
		var out []string
		for e, err := range line.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(e.Type))
		}
		return strings.Join(out, " ")
	}
	for name, one := range map[string]struct {
		o    client.SubscribeOptions
		want string
	}{
		"one thread":   {client.SubscribeOptions{Thread: reply.ThreadID}, "thread.created context.created key.claimed thread.resolved"},
		"an entity":    {client.SubscribeOptions{Types: []string{"item.*", "key.claimed"}}, "key.claimed item.created"},
		"from a place": {client.SubscribeOptions{From: client.Seq(reply.Seq + 1), Types: []string{"thread.*"}}, "thread.created"},
		"aggregates":   {client.SubscribeOptions{Aggregates: true, Types: []string{"key.*"}}, "key.claimed key.claimed"},
		"now":          {client.SubscribeOptions{From: client.Now()}, ""},
	} {
		if got := types(one.o); got != one.want {
			t.Errorf("%s: %q, not %q", name, got, one.want)
		}
	}
	for _, bad := range []client.SubscribeOptions{{Thread: "key:support/1"}, {Types: []string{"item.>"}}, {Types: []string{""}}, {Types: []string{"it*"}}} {
		if _, err := c.Timeline(t.Context(), bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// A restart of the server loses no event for a reader: what was written meanwhile is
// read from the log.
func TestTimeline_ReconnectMissesNothing(t *testing.T) {
	t.Parallel()
	address := natstest.FreeAddress(t)
	cfg := server.Config{Store: t.TempDir(), NATSListen: address, HTTPListen: "127.0.0.1:0", Volatile: true}
	run := func() (stop func()) {
		s, err := server.Start(t.Context(), cfg, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			if err := s.Stop(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	stop := run()
	c := connect(t, "nats://"+address)
	thread := newThread(t, c)
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	if _, err := c.Send(t.Context(), thread, message("before")); err != nil {
		t.Fatal(err)
	}
	f := &follow{t: t, last: map[string]int64{thread: 2}}
	f.until(line, map[string]int64{thread: 3})
	stop()
	stop = run()
	defer stop()
	for range 5 { // on another connection, which is back before the reader's
		if _, err := connect(t, "nats://"+address).Send(t.Context(), thread, message("after")); err != nil {
			t.Fatal(err)
		}
	}
	f.until(line, map[string]int64{thread: 8})
}

func TestTimeline_Ends(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := line.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing comes: %v", err)
	}
	line.Close()
	line.Close()
	if _, err := line.Next(t.Context()); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A commit that cannot be decoded is reported, and later events still follow.
func TestTimeline_ReportsBrokenCommit(t *testing.T) {
	t.Parallel()
	url := start(t)
	c := connect(t, url)
	nc := natstest.Dial(t, url)
	if _, err := nc.Request(events.DefaultNames().Log("acme", "T-01900000-0000-7000-8000-000000000000"), []byte("nonsense"), time.Minute); err != nil {
		t.Fatal(err)
	}
	thread := newThread(t, c)
	line, err := c.Timeline(t.Context(), client.SubscribeOptions{History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	var broken *events.BrokenError
	seen := 0
	for e, err := range line.All(t.Context()) {
		switch {
		case errors.As(err, &broken):
		case err != nil:
			t.Fatal(err)
		case e.ThreadID == thread:
			seen++
		}
	}
	if broken == nil || broken.Seq != 1 || seen != 2 {
		t.Errorf("%v, %d events", broken, seen)
	}
}
