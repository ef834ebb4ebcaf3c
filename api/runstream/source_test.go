package runstream_test

import (
	"context"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
	"github.com/skein-threads/skein/skeintest"
)

// What AtEnd is told covers the run's last event, also where the history has that: the run ended between
// the start of the timeline and the reading of the history.
func TestPlay_AtEnd(t *testing.T) {
	s := skeintest.Start(t)
	proceed := make(chan struct{})
	s.Must(s.Reactor("echo", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		select {
		case <-proceed:
			return skein.Answer("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	c := s.Client("acme")
	item := events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"}]`)}
	create, err := client.Sub("thread.create", events.CreateThread{})
	s.Must(err)
	react, err := client.Sub("thread.react", events.ReactThread{Item: &item, AgentID: "echo", ExecutionID: "exe_one"})
	s.Must(err)
	begun, err := c.Commit(t.Context(), "", []events.SubCommand{create, react})
	s.Must(err)
	told := int64(0)
	source, err := runstream.Subscribe(t.Context(), c, runstream.Options{
		Thread: begun.ThreadID, Execution: "exe_one", From: 1, AtEnd: func(_ string, seq int64) { told = seq },
	})
	s.Must(err)
	defer source.Close()
	close(proceed)
	s.WaitIdle()
	s.Must(runstream.Play(t.Context(), source, runview.New("exe_one"), func([]runview.Frame) error { return nil }))
	thread, err := client.Read(t.Context(), c, events.GetThread{ThreadID: begun.ThreadID})
	s.Must(err)
	if told < thread.Seq {
		t.Errorf("AtEnd was told %d, before the run's end at %d", told, thread.Seq)
	}
}
