package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// The work that waits for workers, and that they have, is what a scrape shows: one place is taken
// by a run and by an effect, another of each waits, and a call is repeated.
func TestMetrics_Work(t *testing.T) {
	busy, free := make(chan string, 10), make(chan struct{})
	s := newStage(t, func(c *server.Config) {
		c.Workers, c.Places = 1, map[string]int{"effects": 1}
		addEffect(c, "hold", runtime.EffectFunc(func(ctx context.Context, _ *runtime.EffectInput) error {
			busy <- "effect"
			select {
			case <-free:
			case <-ctx.Done():
			}
			return nil
		}))
	})
	s.on("hold", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		if _, err := in.State.ScheduleEffect(ctx, "hold", nil, 0); err != nil {
			return nil, err
		}
		busy <- "tool"
		select {
		case <-free:
		case <-ctx.Done():
		}
		return 1, nil
	})
	tries := 0
	s.on("twice", func(context.Context, *runtime.ToolInput) (any, error) {
		if tries++; tries < 3 {
			return nil, &runtime.RetryError{Err: errors.New("not now")}
		}
		return 1, nil
	})
	shows := func(want ...string) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			text, missing := scrape(t, s.server.Addresses().HTTP), ""
			for _, line := range want {
				if !strings.Contains(text, "\nskein_"+line+"\n") {
					missing = line
				}
			}
			if missing == "" {
				return
			}
			if time.Since(begin) > 5*time.Minute {
				t.Fatalf("no %q in\n%s", missing, text)
			}
		}
	}
	shows("runs_places 1", "runs_queued 0", "runs_taken 0", "effects_due 0", "tool_retries_total 0")
	first := s.begin(s.thread("script"), []one{probe("hold")}, []one{probe("twice")})
	for range 2 {
		<-busy
	}
	shows("runs_queued 0", "runs_taken 1", "effects_due 1")
	second := s.begin(s.thread("script"), []one{probe("hold")})
	third := s.begin(s.thread("script"))
	shows("runs_queued 2", "runs_taken 1", "effects_due 1")
	close(free)
	for _, r := range []*events.Reply{first, second, third} {
		s.end(r)
	}
	shows("runs_queued 0", "runs_taken 0", "effects_due 0", "tool_retries_total 2")
}
