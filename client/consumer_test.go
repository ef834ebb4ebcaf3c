package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A timeline that has read the log leaves no consumer behind, which the server would
// keep for half a minute.
func TestTimeline_LeavesNoConsumer(t *testing.T) {
	t.Parallel()
	url := start(t)
	c := connect(t, url)
	thread := newThread(t, c)
	nc := natstest.Dial(t, url)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	consumers := func() int {
		stream, err := js.Stream(t.Context(), "SKEIN_LOG")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		list := stream.ListConsumers(t.Context())
		for info := range list.Info() {
			if strings.Contains(info.Config.FilterSubject+strings.Join(info.Config.FilterSubjects, " "), thread) {
				n++ // and not one of Skein's own
			}
		}
		if err := list.Err(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 5 {
		line, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: thread, History: true})
		if err != nil {
			t.Fatal(err)
		}
		next(t, line)
		line.Close()
	}
	for deadline := time.Now().Add(5 * time.Minute); consumers() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d consumers were left", consumers())
		}
	}
}

// Batches have every event once and in order, from the commit on that the consumer was created with;
// one whose handler fails comes again. A consumer keeps its start.
func TestConsumeBatches(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	thread := newThread(t, c)
	var want []int64
	for range 20 {
		reply, err := c.Send(t.Context(), thread, message("hello"))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, reply.Seq)
	}
	want = want[5:]
	filter := client.Filter{Types: []string{"item.created"}, From: client.Seq(want[0])}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var got []int64
	failed := false
	err := c.ConsumeBatches(ctx, "table", filter, 4, func(_ context.Context, b client.Batch) error {
		if len(got) == 4 && !failed {
			failed = true
			return errors.New("the table is locked")
		}
		if len(b.Events) > 4 || b.Gap {
			t.Errorf("%d events, gap %v", len(b.Events), b.Gap)
		}
		for _, e := range b.Events {
			got = append(got, e.Seq)
		}
		if len(got) == len(want) {
			cancel(enough)
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(got, want) || !failed {
		t.Errorf("%v, want %v: %v", got, want, err)
	}

	ignore := func(context.Context, client.Batch) error { return nil }
	for name, f := range map[string]client.Filter{
		"another start": {Types: filter.Types, From: client.Now()},
		"the oldest":    {Types: filter.Types},
	} {
		if err := c.ConsumeBatches(t.Context(), "table", f, 4, ignore); events.AsError(err).Code != events.AlreadyExists {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]client.Filter{
		"beyond the end": {From: client.Seq(want[len(want)-1] + 1000)},
		"of another log": {From: client.At(events.Position{Seq: 2, Log: "another"})},
	} {
		if err := c.ConsumeBatches(t.Context(), "other", f, 4, ignore); events.AsError(err).Code != events.PositionAhead {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, most := range []int{0, 1001} {
		if err := c.ConsumeBatches(t.Context(), "table", filter, most, ignore); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("batches of %d: %v", most, err)
		}
	}
	if _, err := client.Read(t.Context(), c, events.CreateConsumer{Name: "both", New: true, FromSeq: new(int64(1))}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("two starts: %v", err)
	}
	// A consumer of single events takes the next one after batches.
	reply, err := c.Send(t.Context(), thread, message("hello"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	err = c.Consume(ctx, "table", filter, func(_ context.Context, e client.Event) error {
		if e.Seq != reply.Seq {
			t.Errorf("commit %d, want %d", e.Seq, reply.Seq)
		}
		cancel(enough)
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}
