package skein_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// The effect skein_purge deletes its thread with its contents, and leaves one alone on which a
// run is active.
func TestPurgeEffect_WaitsForTheRun(t *testing.T) {
	s := skeintest.Start(t)
	begun, release := make(chan struct{}), make(chan struct{})
	s.Must(s.Reactor("slow", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		close(begun)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return skein.Answer("done"), ctx.Err()
	}))
	c := s.Client("acme")
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	_, err = c.Send(t.Context(), made.ThreadID, events.ScheduleEffect{Name: events.PurgeEffect, EveryMs: new(int64(60_000))})
	s.Must(err)
	run, err := c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("secret"), AgentID: "slow"})
	s.Must(err)
	<-begun
	timeline, err := c.Timeline(t.Context(), client.SubscribeOptions{From: client.Seq(run.Seq)})
	s.Must(err)
	defer timeline.Close()
	s.Advance(61 * time.Second)
	until := func(kind events.Type) client.Event {
		for {
			e, err := timeline.Next(t.Context())
			s.Must(err)
			if e.Type == kind {
				return e
			}
		}
	}
	until(events.EffectFailedType)
	if _, err := client.Read(t.Context(), c, events.GetThread{ThreadID: made.ThreadID}); err != nil {
		t.Fatalf("it was deleted during its run: %v", err)
	}
	close(release)
	until(events.ThreadFinishedType)
	s.Advance(61 * time.Second)
	if d, ok := until(events.LifecycleDeletedType).Data.(events.LifecycleDeleted); !ok || !d.Purge {
		t.Errorf("it was deleted, and not purged: %+v", d)
	}
	if err := s.Effect(events.PurgeEffect, func(context.Context, *skein.EffectInput) error { return nil }); !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
		t.Errorf("it can be replaced: %v", err)
	}
}

// With the argument handoffs, the threads that a thread was handed over to go with it, and its
// forks stay.
func TestPurgeEffect_WithHandoffs(t *testing.T) {
	s := skeintest.Start(t)
	c := s.Client("acme")
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	s.Must(err)
	_, err = c.Send(t.Context(), made.ThreadID, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON("[]")}})
	s.Must(err)
	fork, err := c.Send(t.Context(), made.ThreadID, events.ForkThread{MessageIndex: new(int64(0))})
	s.Must(err)
	handed, err := c.Send(t.Context(), made.ThreadID, events.HandoffThread{Summary: "secret"})
	s.Must(err)
	scheduled, err := c.Send(t.Context(), made.ThreadID, events.ScheduleEffect{
		Name: events.PurgeEffect, Args: events.JSON(`{"handoffs":true}`), EveryMs: new(int64(60_000)),
	})
	s.Must(err)
	timeline, err := c.Timeline(t.Context(), client.SubscribeOptions{From: client.Seq(scheduled.Seq), Types: []string{string(events.LifecycleDeletedType)}})
	s.Must(err)
	defer timeline.Close()
	s.Advance(61 * time.Second)
	for _, want := range []string{handed.Result.ChildID, made.ThreadID} {
		e, err := timeline.Next(t.Context())
		s.Must(err)
		if d, ok := e.Data.(events.LifecycleDeleted); !ok || !d.Purge || e.ThreadID != want {
			t.Errorf("%s: %+v, want %s", e.ThreadID, e.Data, want)
		}
	}
	if _, err := client.Read(t.Context(), c, events.GetThread{ThreadID: fork.Result.ChildID}); err != nil {
		t.Errorf("its fork: %v", err)
	}
}
