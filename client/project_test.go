package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// ledger is a Projector that keeps a list of events in memory, and fails now and then: in the
// middle of a transaction, before it is stored, and when it was.
type ledger struct {
	mu      sync.Mutex
	at      events.Position
	applied []string // ids of events
	roll    func() int
}

var errLedger = errors.New("the ledger fails")

func (l *ledger) Position(context.Context, string) (events.Position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at, nil
}

func (l *ledger) Update(_ context.Context, _ string, from, to events.Position, apply func(*[]string) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from != l.at {
		return client.ErrMoved
	}
	list, fails := slices.Clone(l.applied), l.roll()
	if err := apply(&list); err != nil {
		return err
	}
	if fails == 0 {
		return errLedger
	}
	l.at, l.applied = to, list
	if fails == 1 {
		return errLedger
	}
	return nil
}

// A projection has every event once and in order, whenever the place that stores it fails, its
// processes stop in the middle, and several of them run at once, while others write.
func TestProject_ExactlyOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	const threads, items, processes = 4, 40, 3
	var writers sync.WaitGroup
	for range threads {
		id := newThread(t, c)
		writers.Go(func() {
			for i := range items {
				one, err := client.Sub("item.create", message(fmt.Sprint(i)))
				if err == nil {
					_, err = c.Commit(t.Context(), id, []events.SubCommand{one, one, one}) // positions within a commit
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	rolls := rand.New(rand.NewPCG(1, 2))
	l := &ledger{roll: func() int { return rolls.IntN(6) }}
	apply := func(_ context.Context, list *[]string, e client.Event) error {
		if *list = append(*list, e.ID); len(*list)%17 == 0 && l.roll() == 0 {
			return errLedger
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range processes {
		running.Go(func() {
			for ctx.Err() == nil {
				err := client.Project(ctx, c, "ledger", l, client.SubscribeOptions{}, apply)
				if !errors.Is(err, errLedger) && !errors.Is(err, context.Canceled) {
					t.Errorf("it ends with %v", err)
					return
				}
			}
		})
	}
	writers.Wait()
	stop()
	running.Wait()

	l.roll = func() int { return 2 } // what is left, to the end
	toEnd := client.SubscribeOptions{History: true}
	if err := client.Project(t.Context(), c, "ledger", l, toEnd, apply); err != nil {
		t.Fatal(err)
	}
	line, err := c.Timeline(t.Context(), toEnd)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for e, err := range line.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e.ID)
	}
	line.Close()
	if !slices.Equal(l.applied, want) {
		t.Errorf("%d events are applied, and the log has %d, or in another order", len(l.applied), len(want))
	}

	if err := client.Reproject(t.Context(), "ledger", l, func(list *[]string) error { *list = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	toEnd.Types = []string{"thread.*"}
	if err := client.Project(t.Context(), c, "ledger", l, toEnd, apply); err != nil || len(l.applied) != threads {
		t.Errorf("again, with other types: %d events, %v", len(l.applied), err)
	}
}

// A log that was replaced ends a projection, until it begins again.
func TestProject_AnotherLog(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	newThread(t, c)
	l := &ledger{at: events.Position{Seq: 1, Log: "r0ther"}, roll: func() int { return 2 }}
	project := func() error {
		return client.Project(t.Context(), c, "ledger", l, client.SubscribeOptions{History: true}, func(_ context.Context, list *[]string, e client.Event) error {
			*list = append(*list, e.ID)
			return nil
		})
	}
	if err := project(); !events.HasCode(err, events.PositionAhead) {
		t.Fatalf("from a position of another log: %v", err)
	}
	if err := client.Reproject(t.Context(), "ledger", l, func(*[]string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := project(); err != nil || len(l.applied) == 0 {
		t.Errorf("begun again: %d events, %v", len(l.applied), err)
	}
}

// A subscription has the events of its type alone, with their data, each once, and ends with its
// context or its history.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	id := newThread(t, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	live, err := client.Subscribe[events.ItemCreated](ctx, c, client.SubscribeOptions{Thread: id, From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := c.Send(t.Context(), id, message(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	n, last := 0, error(nil)
	for e, err := range live {
		if last = err; err != nil {
			break
		}
		if want := message(fmt.Sprint(n)).Item.Content; string(e.Data.Content) != string(want) {
			t.Errorf("item %d: %s, want %s", n, e.Data.Content, want)
		}
		if n++; n == 3 {
			stop()
		}
	}
	if n != 3 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d items, and %v; want 3 and that the context ended", n, last)
	}
	past, err := client.Subscribe[events.ThreadCreated](t.Context(), c, client.SubscribeOptions{History: true})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range past {
		if err != nil || e.ThreadID != id {
			t.Errorf("of the history: %+v, %v", e, err)
		}
	}
	if _, err := client.Subscribe[events.ChunkEmitted](t.Context(), c, client.SubscribeOptions{}); !events.HasCode(err, events.InvalidRequest) {
		t.Errorf("of what is not stored: %v", err)
	}
	if _, err := client.Subscribe[int](t.Context(), c, client.SubscribeOptions{}); !events.HasCode(err, events.InvalidRequest) {
		t.Errorf("of no event: %v", err)
	}
}

// Definitions are applied from Go values, in one commit and once.
func TestApply(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t))
	agent := events.AgentDefinition{Name: "support", Type: events.AIHuman, Model: "fast"}
	made, err := c.Apply(t.Context(), agent, events.ModelDefinition{Name: "fast", Model: "gpt-5-mini"})
	if err != nil || made.Result == nil || len(made.Result.Definitions) != 2 {
		t.Fatalf("%+v, %v", made, err)
	}
	again, err := c.Apply(t.Context(), agent)
	if err != nil || again.Result != nil && len(again.Result.Definitions) != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	stored, err := client.LoadAgent[events.AgentDefinition](t.Context(), c.WithMinSeq(made.Seq), "support")
	if err != nil || stored.Model != "fast" {
		t.Errorf("%+v, %v", stored, err)
	}
	for what, bad := range map[string]any{"no definition": 7, "another model": events.AgentDefinition{Name: "lost", Type: events.AIHuman, Model: "none"}} {
		var refusal *events.Error
		if _, err := c.Apply(t.Context(), agent, bad); !errors.As(err, &refusal) || refusal.Code != events.InvalidRequest || refusal.Details == nil ||
			!strings.HasPrefix(refusal.Details.Path, "/data/definitions/1") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
