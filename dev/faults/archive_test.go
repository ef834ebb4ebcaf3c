package faults_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Threads are archived while servers and Skeins of a cluster die and hang: their history
// stays the same, to the byte, and they take commands as before.
func TestArchiveOnACluster(t *testing.T) {
	rounds := long(t)
	w := beginWorld(t, nil)
	w.during(func(ctx context.Context) { sleep(ctx, 3*time.Second) })
	before := map[string][]events.JSON{}
	for _, c := range w.commits() {
		before[c.Thread] = nil
	}
	for id := range before {
		before[id] = w.events(id)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	tries := 0
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; tries++ {
			_, _ = w.skein(ctx, "archive", "--tenant", tenant, "--idle", "0s") // it may be refused now, or be cut short
			sleep(ctx, 50*time.Millisecond)
		}
	}()
	w.suffer(ctx, faults(), rounds)
	cancel()
	<-ended
	w.heal()
	for ctx := w.soon(); ; sleep(ctx, time.Second) {
		out, err := w.skein(ctx, "archive", "--tenant", tenant, "--idle", "0s")
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("skein archive: %v\n%s", err, out)
		}
	}
	w.agrees()
	records, whole := 0, 0
	for _, c := range w.commits() {
		if _, ok := c.Events[0].Data.(events.LifecycleArchived); ok {
			records++
		} else {
			whole++
		}
	}
	t.Logf("seed %d: %d threads, archived in %d tries; the log has %d records, and %d other commits", w.seed, len(before), tries+1, records, whole)
	if records != len(before) || whole > 0 {
		t.Errorf("of %d threads %d are archived, and %d commits are in the log", len(before), records, whole)
	}
	for id, had := range before {
		has := w.events(id)
		if len(has) < len(had) || !slices.EqualFunc(had, has[:len(had)], func(a, b events.JSON) bool { return string(a) == string(b) }) {
			t.Errorf("%s had %d events, and now it has %d others", id, len(had), len(has))
		}
	}
	w.during(func(ctx context.Context) { sleep(ctx, 2*time.Second) })
	c := &clerk{history: newHistory(""), nc: w.nc}
	for id := range before {
		a, _ := c.ask(w.soon(), "cmd", "item.create", map[string]any{
			"threadId": id, "commandId": "after-" + id, "data": map[string]any{"item": map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": "still there?"}}}},
		})
		if a.lost || a.refusal != nil {
			t.Errorf("%s takes no command any more: %v (lost: %v)", id, a.refusal, a.lost)
		}
	}
	w.agrees()
}

// events returns a thread's history.
func (w *world) events(id string) (all []events.JSON) {
	w.t.Helper()
	c := &clerk{history: newHistory(""), nc: w.nc}
	ctx := w.soon()
	for from := int64(1); ; {
		a, raw := c.ask(ctx, "query", "event.list", map[string]any{"threadId": id, "fromVersion": from, "limit": 1000})
		if a.lost || a.refusal != nil {
			if ctx.Err() != nil {
				w.t.Fatalf("the events of %s: %+v", id, a)
			}
			sleep(ctx, 100*time.Millisecond)
			continue
		}
		var page struct {
			Events []events.JSON `json:"events"`
			Next   int64         `json:"nextVersion"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			w.t.Fatal(fmt.Errorf("the events of %s: %w", id, err))
		}
		if all, from = append(all, page.Events...), page.Next; from == 0 {
			return all
		}
	}
}
