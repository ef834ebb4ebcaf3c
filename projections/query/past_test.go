package query

import (
	"context"
	"errors"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/share"
	"github.com/skein-threads/skein/service"
)

// waits receives whenever a query begins to wait for a place.
type waits chan struct{}

func (w waits) Places(_ string, _, waiting int) {
	if waiting > 0 {
		w <- struct{}{}
	}
}

func (waits) PlaceRefused(string, string) {}

// A query of a thread as it was has the whole thread in memory: it waits for a place, and
// returns it once it is answered, or refused.
func TestPast_WaitsForAPlace(t *testing.T) {
	h := newHouse(t)
	waiting := make(waits, 8)
	places := share.New("past", share.Limit{Total: 1}, waiting)
	a := h.asker(Config{Past: places})
	id := h.Do("thread.create", "", `{}`).ThreadID
	past := []byte(`{"threadId":"` + id + `","at":{"version":1}}`)
	free := func() func() {
		t.Helper()
		leave, err := places.Try("noisy")
		if err != nil {
			t.Fatalf("the place is not free: %v", err)
		}
		return leave
	}
	leave := free()
	answered := make(chan error, 2)
	send := func(ctx context.Context) {
		_, err := a.q.Handle(ctx, acme, "thread.get", past, service.Meta{})
		answered <- err
	}
	ctx, giveUp := context.WithCancel(t.Context())
	go send(ctx)
	select {
	case <-waiting:
	case err := <-answered:
		t.Fatalf("it was answered without a place: %v", err)
	}
	giveUp()
	var refused *events.Error
	if err := <-answered; !errors.As(err, &refused) || refused.Code != events.Unavailable {
		t.Errorf("a query that gave up: %v", err)
	}
	go send(t.Context())
	<-waiting
	leave()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	free()()
	if _, err := a.q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+id+`","at":{"version":99}}`), service.Meta{}); err == nil {
		t.Error("a version that is not there was shown")
	}
	free()()
}
