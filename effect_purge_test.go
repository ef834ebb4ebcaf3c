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
	made, err := c.CreateThread(t.Context(), events.CreateThread{})
	s.Must(err)
	_, err = c.ScheduleEffect(t.Context(), made.ThreadID, events.ScheduleEffect{Name: events.PurgeEffect, EveryMs: new(int64(60_000))})
	s.Must(err)
	run, err := c.React(t.Context(), made.ThreadID, events.ReactThread{Text: new("secret"), AgentID: "slow"})
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
	if _, err := c.GetThread(t.Context(), events.GetThread{ThreadID: made.ThreadID}); err != nil {
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
