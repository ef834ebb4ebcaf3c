package openresponses

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// How the thread of a temporary response is purged by the log itself, if the process that
// serves the response does not.
const (
	purgeEvery = time.Minute      // a repeated effect purges it, once nothing runs
	renewEvery = 20 * time.Second // the effect is put off so often, as long as somebody reads
	holdEvery  = 10 * time.Minute // as purgeEvery, of a thread whose run waits for people
	holdAtMost = 24 * time.Hour   // then the run is cancelled
)

// temporary is the thread of responses that are not stored. The commit that begins it
// schedules its purge, so that its contents go whichever process dies. The process that serves
// it puts the purge off while a client reads or may continue it, and purges it afterwards.
type temporary struct {
	client *client.Client
	args   events.JSON // of the effects
	holds  bool        // a run that waits for people is not cancelled; see hold
	waited bool        // the client was told that it waits for people, and may have answered since

	mu     sync.Mutex // guards the fields below
	query  events.GetExecution
	child  string   // the thread that a handoff makes of it, if it is made to be compacted
	purges []string // the effects that may be scheduled to purge the thread
	ended  context.CancelFunc
}

// purgeOf returns the id of the effect that purges the thread of a response.
func purgeOf(response uuid.UUID) string { return uuid.NewSHA1(response, []byte("purge")).String() }

func purgeLater(id string, args events.JSON) events.ScheduleEffect {
	return events.ScheduleEffect{ID: id, Name: events.PurgeEffect, Args: args, EveryMs: new(purgeEvery.Milliseconds())}
}

// withHandoffs is the argument of the effect that purges the threads as well to which its thread
// was handed over.
func withHandoffs() events.JSON { return events.JSON(`{"handoffs":true}`) }

// keep puts the purge off until stop is called, discard is, or ctx ends.
func (t *temporary) keep(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	t.mu.Lock()
	t.ended = stop
	t.mu.Unlock()
	go func() {
		tick := time.NewTicker(renewEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.renew(ctx)
			}
		}
	}()
	return stop
}

// renew schedules the purge for later.
func (t *temporary) renew(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := uuid.Must(uuid.NewV7()).String()
	var list []events.SubCommand
	for _, id := range t.purges {
		one, err := client.Sub("effect.cancel", events.CancelEffect{EffectID: id, Reason: "the response is still read"})
		if err != nil {
			return
		}
		list = append(list, one)
	}
	one, err := client.Sub("effect.schedule", purgeLater(next, t.args))
	if err != nil {
		return
	}
	_, err = t.client.Commit(ctx, t.query.ThreadID, append(list, one))
	if err == nil {
		t.purges = nil
	}
	t.purges = append(t.purges, next) // also if nobody knows whether it was written
}

// follow notes the response that continues the thread.
func (t *temporary) follow(next *temporary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.query = next.query
}

// handsOver notes the run that writes the summary of the thread, and the thread that it makes.
func (t *temporary) handsOver(r *events.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.query.ExecutionID, t.child = r.ExecutionID, r.ChildID
}

// hold keeps the thread until people have answered, for at most a day. Effects purge it afterwards.
func (t *temporary) hold(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := purgeLater(uuid.Must(uuid.NewV7()).String(), t.args)
	later.EveryMs = new(holdEvery.Milliseconds())
	end := events.ScheduleEffect{Name: events.PurgeEffect, Args: events.JSON(`{"cancel":true}`), DelayMs: new(holdAtMost.Milliseconds())}
	list := []events.SubCommand{}
	for _, id := range t.purges {
		if one, err := client.Sub("effect.cancel", events.CancelEffect{EffectID: id, Reason: "the run waits for a person"}); err == nil {
			list = append(list, one)
		}
	}
	for _, d := range []events.ScheduleEffect{later, end} {
		if one, err := client.Sub("effect.schedule", d); err == nil {
			list = append(list, one)
		}
	}
	_, _ = t.client.Commit(ctx, t.query.ThreadID, list) // otherwise the thread keeps its earlier purge
}

// endsWaiting cancels the run once it waits for people: nobody can answer for a response that is
// not stored.
func (t *temporary) endsWaiting(ctx context.Context, query events.GetExecution) {
	if awaitPeople(ctx, t.client, query) != nil {
		_, _ = t.client.Send(ctx, query.ThreadID, events.CancelRun{ExecutionID: query.ExecutionID, Reason: "its response is not stored, and waits for a person"})
	}
}

// discard purges the thread once its last response has ended. If it cannot, because the thread
// is deleted or the connection closed, nothing is lost: the effect does.
func (t *temporary) discard(ctx context.Context) {
	t.mu.Lock()
	query, child := t.query, t.child
	if t.ended != nil {
		t.ended()
	}
	t.mu.Unlock()
	if query.ExecutionID != "" {
		if t.holds && (t.waited || awaitPeople(ctx, t.client, query) != nil) {
			t.hold(ctx)
			return
		}
		t.endsWaiting(ctx, query)
		if _, err := t.client.WaitRun(ctx, query); err != nil && !events.IsNotFound(err) { // a thread that was warmed up has no run
			return
		}
	}
	if child != "" {
		_, _ = t.client.Send(ctx, child, events.DeleteThread{Purge: true})
	}
	_, _ = t.client.Send(ctx, query.ThreadID, events.DeleteThread{Purge: true})
}
