package skein_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
)

// A Stop without patience returns when the store is free, and says in one line what did not end.
func TestStop_WithoutPatience(t *testing.T) {
	t.Parallel()
	o := skein.Options{Store: t.TempDir(), NATSListen: skein.None, HTTPListen: skein.None, Volatile: true}
	working, release := make(chan struct{}, 20), make(chan struct{})
	defer close(release)
	o.Setup = func(s *skein.Server) error {
		return s.Reactor("stubborn", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
			working <- struct{}{}
			<-release
			return nil, errors.New("released")
		})
	}
	s, err := skein.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Client("acme")
	if err != nil {
		t.Fatal(err)
	}
	for range cap(working) {
		made, err := c.Send(t.Context(), "", events.CreateThread{AgentID: "stubborn"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("go")}); err != nil {
			t.Fatal(err)
		}
	}
	for range cap(working) {
		<-working
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	stopped := s.Stop(ctx)
	o.Setup = nil
	again, err := skein.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("the store is not free: %v", err)
	}
	if !errors.Is(stopped, context.DeadlineExceeded) || strings.Contains(stopped.Error(), "\n") {
		t.Errorf("Stop returned %v", stopped)
	}
	if err := again.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
