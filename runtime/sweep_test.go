package runtime

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// A run whose queue message is lost is found also on a thread that changes all
// the while.
func TestSweepBusyThread(t *testing.T) {
	w := newWorld(t)
	w.agent("a", script(says("fine")))
	id, execution := w.begin("a", "hello")
	stream, err := w.log.JetStream().Stream(t.Context(), w.log.Config().Names.Stream("RUNS"))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	worker := w.work(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		_ = worker.Sweep(ctx, func(context.Context) iter.Seq2[ThreadRef, error] {
			return func(yield func(ThreadRef, error) bool) {
				if _, err := w.ask("item.create", id, events.CreateItem{Item: events.NewItem{
					Type: events.Message, Role: events.System, Content: jsontext.Value(`[{"type":"input_text","text":"a note"}]`),
				}}); err != nil {
					t.Error(err)
				}
				yield(ThreadRef{tenant, id}, nil)
			}
		}, 10*time.Millisecond)
	}()
	w.finished(id, execution)
	cancel()
	<-swept
}
