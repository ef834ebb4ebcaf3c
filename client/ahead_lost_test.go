package client_test

import (
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A subscription before a command shows the whole run, also what was said while its connection was lost.
func TestAhead_ConnectionLost(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"before the command", "before the timeline", "before the chunks", "in the middle of the chunks"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			const n = 20
			url := start(t)
			proxy := natstest.NewProxy(t, url)
			reader, err := client.New(proxy.Connect(t), client.Options{Tenant: "acme"})
			if err != nil {
				t.Fatal(err)
			}
			r := &run{t: t, c: connect(t, url), log: logAt(t, url)}
			r.thread = newThread(t, r.c)
			ctx := waits(t)
			item, err := r.c.Send(ctx, r.thread, message("do it"))
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := reader.Ahead(ctx, r.thread)
			if err != nil {
				t.Fatal(err)
			}
			defer ahead.Close()
			lose := func(when string) { proxy.DropReceived.Store(when == lost) }
			lose("before the command")
			made, err := r.c.Send(ctx, r.thread, events.CreateExecution{TriggerItemID: item.Result.ItemID})
			if err != nil {
				t.Fatal(err)
			}
			r.execution = made.Result.ExecutionID
			w := r.writer(1)
			r.say(w, 0, n)
			r.stored(n)
			cut := func(when string) {
				if when != lost {
					return
				}
				r.say(w, n, 2*n)
				r.stored(2 * n)
				proxy.Cut()
			}
			cut("before the command")
			lose("before the timeline")
			cut("before the timeline")
			timeline := ahead.Timeline(made, []string{"execution.*"})
			if e, err := timeline.Next(ctx); err != nil || e.Type != events.ExecutionCreatedType {
				t.Errorf("%+v, %v", e, err)
			}
			lose("before the chunks")
			cut("before the chunks")
			read(ctx, reader, r.thread, r.execution, func(c client.Chunk) {
				switch c.Index {
				case n - 1:
					lose("in the middle of the chunks")
					cut("in the middle of the chunks")
				case 2*n - 1:
					r.end(events.ExecutionCompleted, "")
					r.finish(w)
				}
			}, ahead.Chunks()).exact(t, 0, 0, 2*n)
			if e, err := timeline.Next(ctx); err != nil || e.Type != events.ExecutionStatusChangedType {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}
