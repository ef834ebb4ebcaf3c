package commands

import (
	"errors"
	"reflect"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

const anEffect = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405168"

func cancelled(r *events.Reply) bool { return r.Result != nil && r.Result.Cancelled }

// SA-85: a cancel with nothing to cancel needs no commit, and its reply describes the thread
// as it is, after changes by any process.
func TestWhatChangesNothingIsAnswered(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	id := create(t, w.d)
	cancel := `{"effectId":"` + anEffect + `"}`
	must(t, other, "effect.cancel", on(id, cancel)) // both have the thread in their caches
	at := must(t, w.d, "effect.schedule", on(id, `{"id":"`+anEffect+`","name":"x","delayMs":60000}`))
	first := must(t, other, "effect.cancel", with("c-1", id, cancel)) // which its cache does not know of
	if !cancelled(first) || first.Version != at.Version+1 {
		t.Fatalf("cancelling what another process scheduled: %+v", first)
	}
	last := w.lastSeq()
	for _, d := range []*Dispatcher{w.d, other} {
		if got := must(t, d, "effect.cancel", with("c-2", id, cancel)); cancelled(got) || got.Version != first.Version || got.Seq != first.Seq || got.ThreadID != id || len(got.Events) != 0 {
			t.Errorf("cancelling again: %+v, want what is at %d, %d", got, first.Version, first.Seq)
		}
		if again := must(t, d, "effect.cancel", with("c-1", id, cancel)); !reflect.DeepEqual(again, first) {
			t.Errorf("repeated: %+v, first %+v", again, first)
		}
	}
	if now := w.lastSeq(); now != last {
		t.Errorf("%d commits were made for nothing", now-last)
	}
	// Among others, it shows what those before it did.
	jobs := jobsOf(t, w.d, [2]string{"effect.schedule", on(id, `{"id":"`+anEffect+`","name":"x"}`)}, [2]string{"effect.cancel", on(id, cancel)},
		[2]string{"effect.cancel", on(id, cancel)}, [2]string{"item.create", on(id, hello)}, [2]string{"effect.cancel", on(id, cancel)})
	rounds(w.d, id, jobs)
	for i, want := range []struct {
		version   int64
		cancelled bool
	}{{5, false}, {6, true}, {6, false}, {7, false}, {7, false}} {
		a := <-jobs[i].done
		if a.err != nil || a.reply.Version != want.version || cancelled(a.reply) != want.cancelled {
			t.Errorf("job %d: %+v, %v; want %+v", i, a.reply, a.err, want)
		}
	}
	// In a thread.commit with others, and alone in one.
	both := must(t, w.d, "thread.commit", on(id, `{"commands":[{"command":"effect.cancel","data":`+cancel+`},{"command":"item.create","data":`+hello+`}]}`))
	alone := must(t, w.d, "thread.commit", on(id, `{"commands":[{"command":"effect.cancel","data":`+cancel+`}]}`))
	if both.Version != 8 || both.Result.Results[0].Cancelled || both.Result.Results[1].ItemID == "" || alone.Version != 8 || len(alone.Events) > 0 {
		t.Errorf("in a commit %+v, alone in one %+v", both, alone)
	}
	refused(t, w.d, events.NotFound, "effect.cancel", on(newThread, cancel))
	w.sameAsLog(w.d, id)
}

// toldIntake keeps the commits that it receives.
type toldIntake struct {
	noIntake
	commits []*events.Commit
}

func (i *toldIntake) Stored(c *events.Commit) { i.commits = append(i.commits, c) }

// A worker's command is done once under its id, and is refused with what the
// decision says. Its name is none that NATS can ask for.
func TestInside(t *testing.T) {
	told := &toldIntake{}
	w := newWorld(t, Config{Intake: told})
	id := create(t, w.d)
	must(t, w.d, "effect.schedule", on(id, `{"id":"`+anEffect+`","name":"x"}`))
	start := thread.StartEffect{ID: anEffect, Firing: 1, Attempt: 1, Claim: 7}
	var first []events.Event
	for range 2 {
		made, err := w.d.Inside(t.Context(), tenant, id, "w-1", "effect.start", start)
		if err != nil || len(made) != 1 || made[0].Data != (events.EffectStarted{Firing: 1, Attempt: 1, Claim: 7}) {
			t.Fatalf("%+v, %v", made, err)
		}
		if first == nil {
			first = made
		} else if made[0].ID != first[0].ID {
			t.Errorf("the same command made %s and %s", first[0].ID, made[0].ID)
		}
	}
	var stands *thread.EffectError
	if _, err := w.d.Inside(t.Context(), tenant, id, "w-2", "effect.start", start); !errors.As(err, &stands) || stands.Claim != 7 {
		t.Errorf("the same attempt again: %v", err)
	}
	refused(t, w.d, events.NotFound, "effect.start", on(id, `{}`))
	if len(told.commits) != 3 || told.commits[2].Events[0].Type != events.EffectStartedType || told.commits[2].Seq != w.lastSeq() {
		t.Errorf("told of %d commits", len(told.commits))
	}
}
