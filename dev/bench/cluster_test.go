package bench

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// What clients were told is compared with the log: an acknowledgement that the log does not
// confirm is a loss.
func TestElsewhere(t *testing.T) {
	b, strike, err := stage(t.Context(), Options{Dir: t.TempDir()}.withDefaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer strike()
	e, err := Connect(b.url, Options{Seconds: 0.3, Threads: 10, Clients: []int{1, 4}, LoadArgs: []string{"load"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	cases, err := e.Commits(t.Context())
	if err != nil || len(cases) != 2 || cases[0].Commits == 0 || cases[1].Clients != 4 || cases[1].Commits == 0 {
		t.Fatalf("%+v, %v", cases, err)
	}
	if leader, err := e.Leader(t.Context()); err != nil || leader == "" {
		t.Errorf("the leader is %q, %v", leader, err)
	}
	failed := 0
	s, err := e.Survive(t.Context(), 4, func() error {
		failed++
		return nil
	})
	if err != nil || failed != 1 || s.Commits == 0 || s.Lost != 0 || s.Twice != 0 || s.PauseSeconds <= 0 {
		t.Errorf("%+v, %v; failed %d times", s, err, failed)
	}
	broken := errors.New("broken")
	if _, err := e.Survive(t.Context(), 1, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the failure that failed: %v", err)
	}
	threads, err := b.create(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	forged := &Survival{}
	if err := e.compare(t.Context(), forged, []acknowledged{{thread: threads[0], command: "never", version: 13}}); err != nil || forged.Lost != 1 ||
		!slices.Equal(forged.Missing, []Loss{{Thread: threads[0], Command: "never", Version: 13, Last: 2}}) {
		t.Errorf("%+v, %v", forged, err)
	}
}

// The longest pause counts from the beginning to the end.
func TestSurvival_Count(t *testing.T) {
	begun := time.Now()
	at := func(seconds float64) acknowledged {
		return acknowledged{at: begun.Add(time.Duration(seconds * float64(time.Second)))}
	}
	for _, c := range []struct {
		name  string
		acks  []acknowledged
		pause float64
	}{
		{"between", []acknowledged{at(0.5), at(8.5), at(1)}, 7.5},
		{"at the beginning", []acknowledged{at(4), at(6), at(8)}, 4},
		{"at the end", []acknowledged{at(1), at(2)}, 7},
		{"none", nil, 9},
	} {
		s := &Survival{}
		s.count(c.acks, begun, 3*time.Second)
		if s.PauseSeconds < c.pause-0.001 || s.PauseSeconds > c.pause+0.001 || s.Commits != len(c.acks) {
			t.Errorf("%s: %+v, want a pause of %v", c.name, s, c.pause)
		}
	}
}

// Commands that share a commit are each found, at the version that each one's client was told.
func TestSurvival_SharedCommit(t *testing.T) {
	var state thread.State
	draft := thread.NewDraft(&state)
	shared := &events.Commit{}
	told := map[string]int64{}
	for i, part := range []thread.Part{
		{Name: "thread.create", Data: events.CreateThread{}},
		{Name: "thread.update", Data: events.UpdateThread{Title: new("one")}},
		{Name: "thread.update", Data: events.UpdateThread{Title: new("two")}},
	} {
		id := fmt.Sprintf("command-%d", i)
		made, err := draft.Do(&thread.Command{ID: id, Tenant: tenant, ThreadID: "T-00000000-0000-7000-8000-000000000001", Time: 1, Parts: []thread.Part{part}})
		if err != nil {
			t.Fatal(err)
		}
		shared.Events = append(shared.Events, made...)
		told[id] = events.ReplyOf(shared, id).Version
	}
	found := map[string]int64{}
	if again := note(found, shared); again != 0 || !maps.Equal(found, told) || len(told) != 3 {
		t.Errorf("found %v of %v, %d again", found, told, again)
	}
	if again := note(found, shared); again != 3 {
		t.Errorf("%d of 3 commands are found again", again)
	}
}
