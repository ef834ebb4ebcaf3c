package openresponses

import (
	"context"
	"slices"
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
	shared bool        // other requests may read it, each of which schedules its purge
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

// share schedules a purge for this request alone: another one that is answered by the same run leaves the
// thread until that is cancelled. The purge of all that began it comes no more.
func (t *temporary) share(ctx context.Context, began ...string) error {
	own := uuid.Must(uuid.NewV7()).String()
	reply, err := t.put(ctx, append(t.cancels(began, "the response has several readers"), purgeLater(own, t.args))...)
	if err != nil {
		return err
	}
	t.client, t.purges = t.client.WithMinSeq(reply.Seq), []string{own}
	return nil
}

// leaves cancels the purge of this request if other requests read the thread, and reports whether they
// do.
func (t *temporary) leaves(ctx context.Context, seq int64) (bool, error) {
	others := func() (bool, error) {
		list, err := t.client.WithMinSeq(seq).ScheduledEffects(ctx, t.query.ThreadID, events.PurgeEffect)
		return slices.ContainsFunc(list, func(e events.ScheduledEffect) bool { return !slices.Contains(t.purges, e.ID) }), err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if read, err := others(); !read || err != nil {
		return false, err
	}
	reply, err := t.put(ctx, t.cancels(t.purges, "the response is read by others")...)
	if err != nil {
		return false, err
	}
	seq = max(seq, reply.Seq) // of two that leave at once, the last sees that it is alone
	return others()
}

// cancels returns the commands that cancel purges.
func (t *temporary) cancels(ids []string, reason string) (list []any) {
	for _, id := range ids {
		list = append(list, events.CancelEffect{EffectID: id, Reason: reason})
	}
	return list
}

// put executes commands on the thread, in one commit.
func (t *temporary) put(ctx context.Context, list ...any) (*events.Reply, error) {
	var commands []events.SubCommand
	for _, d := range list {
		name := "effect.schedule"
		if _, cancels := d.(events.CancelEffect); cancels {
			name = "effect.cancel"
		}
		one, err := client.Sub(name, d)
		if err != nil {
			return nil, err
		}
		commands = append(commands, one)
	}
	return t.client.Commit(ctx, t.query.ThreadID, commands)
}

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
	_, err := t.put(ctx, append(t.cancels(t.purges, "the response is still read"), purgeLater(next, t.args))...)
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
	_, _ = t.put(ctx, append(t.cancels(t.purges, "the run waits for a person"), later, end)...) // otherwise the thread keeps its earlier purge
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
		x, err := t.client.WaitRun(ctx, query)
		if err != nil && !events.IsNotFound(err) { // a thread that was warmed up has no run
			return
		}
		if err == nil && t.shared {
			if left, err := t.leaves(ctx, x.Seq); left || err != nil {
				return
			}
		}
	}
	if child != "" {
		_, _ = t.client.Send(ctx, child, events.DeleteThread{Purge: true})
	}
	_, _ = t.client.Send(ctx, query.ThreadID, events.DeleteThread{Purge: true})
}
