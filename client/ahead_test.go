package client_test

import (
	"sync"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/events"
)

// A subscription before a command shows what it commits, and the chunks that follow. One that comes too
// late, as with the repeat of a command, shows the same.
func TestAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		late bool
	}{{"before the command", false}, {"after the command", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const n = 600 // more than a channel buffers
			url := start(t)
			r := &run{t: t, c: connect(t, url), log: logAt(t, url)}
			r.thread = newThread(t, r.c)
			ctx := waits(t)
			item, err := r.c.Send(ctx, r.thread, message("do it"))
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := r.c.Ahead(ctx, r.thread)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { ahead.Close() }()
			made, err := r.c.Send(ctx, r.thread, events.CreateExecution{TriggerItemID: item.Result.ItemID})
			if err != nil {
				t.Fatal(err)
			}
			r.execution = made.Result.ExecutionID
			var w *chunks.Writer
			if c.late {
				w = r.writer(1)
				r.say(w, 0, n)
				r.stored(n)
				ahead.Close()
				if ahead, err = r.c.Ahead(ctx, r.thread); err != nil {
					t.Fatal(err)
				}
			}
			timeline := ahead.Timeline(made, []string{"execution.*"})
			if e, err := timeline.Next(ctx); err != nil || e.Type != events.ExecutionCreatedType || e.Seq != made.Seq {
				t.Errorf("%+v, %v", e, err)
			}
			if !c.late {
				w = r.writer(1)
				r.say(w, 0, n)
				r.stored(n)
			}
			var writing sync.WaitGroup
			writing.Go(func() {
				r.say(w, n, n+9)
				r.end(events.ExecutionCompleted, "")
				r.finish(w)
			})
			defer writing.Wait() // the reader may have the last chunk before the writer's acknowledgement
			read(ctx, r.c, r.thread, r.execution, nil, ahead.Chunks()).exact(t, 0, 0, n+9)
			if e, err := timeline.Next(ctx); err != nil || e.Type != events.ExecutionStatusChangedType {
				t.Errorf("%+v, %v", e, err)
			}
			ahead.Close()
			if e, err := timeline.Next(ctx); err == nil {
				t.Errorf("%+v after it was closed", e)
			}
		})
	}
	if _, err := (&client.Client{}).Ahead(t.Context(), "key:a"); !events.HasCode(err, events.InvalidRequest) {
		t.Errorf("a key: %v", err)
	}
}
