package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// family is what clients did to a few threads that are related to each other.
type family struct {
	mu      sync.Mutex
	threads []string
	done    []doneCommand
	refused map[events.Code]int
	lost    int // answers that did not come
	acks    chan struct{}
	workers []worker
}

// worker is a thread that works for another.
type worker struct{ thread, main string }

// doneCommand is a command that was acknowledged.
type doneCommand struct {
	id, thread string
	data       any
	reply      *events.Reply
}

func (f *family) thread(random *rand.Rand) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.threads[random.IntN(len(f.threads))]
}

// command makes any command. One over several threads that is added needs a case here.
func (f *family) command(random *rand.Rand, deletes bool) any {
	at := new(random.Int64N(4))
	switch n := random.IntN(24); {
	case n < 7:
		return events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(`[]`)}}
	case n < 12:
		return events.ForkThread{MessageIndex: at}
	case n < 16:
		return events.MentionThread{MentionedID: f.thread(random)}
	case n < 18:
		return events.HandoffThread{Summary: "what was said", Comment: "go on"}
	case n < 20:
		return events.CreateThread{MainThreadID: f.thread(random)}
	case n < 23 || !deletes:
		return events.TruncateThread{MessageIndex: at}
	}
	return events.DeleteThread{}
}

// work sends commands, each until it is known what became of it, but for some that are sent once,
// whatever becomes of them.
func (f *family) work(ctx context.Context, c *client.Client, name string, random *rand.Rand, commands int) error {
	for n := range commands {
		d := doneCommand{id: fmt.Sprintf("%s-%d", name, n), thread: f.thread(random), data: f.command(random, n > commands/2)}
		if _, ok := d.data.(events.CreateThread); ok {
			d.thread = ""
		}
		reply, err := f.send(ctx, c, d, random.IntN(8) > 0)
		if errors.Is(err, errGivenUp) {
			f.acks <- struct{}{}
			continue
		}
		f.mu.Lock()
		var refusal *events.Error
		switch {
		case err == nil:
			d.reply = reply
			f.done = append(f.done, d)
			if reply.Result != nil && reply.Result.ChildID != "" {
				f.threads = append(f.threads, reply.Result.ChildID)
			}
			if made, ok := d.data.(events.CreateThread); ok {
				f.threads = append(f.threads, reply.ThreadID)
				f.workers = append(f.workers, worker{reply.ThreadID, made.MainThreadID})
			}
		case errors.As(err, &refusal):
			f.refused[refusal.Code]++
		}
		f.mu.Unlock()
		if err != nil && refusal == nil {
			return fmt.Errorf("%s: %w", d.id, err)
		}
		f.acks <- struct{}{}
	}
	return nil
}

var errGivenUp = errors.New("nobody asks what became of it")

// send repeats a command until it is done or refused, or no answer comes and nobody asks again.
func (f *family) send(ctx context.Context, c *client.Client, d doneCommand, again bool) (*events.Reply, error) {
	for {
		reply, err := sendAny(ctx, c, d)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if refusal := events.AsError(err); refusal.Code != events.Unavailable {
			return nil, refusal
		}
		f.mu.Lock()
		f.lost++
		f.mu.Unlock()
		if !again {
			return nil, errGivenUp
		}
		time.Sleep(20 * time.Millisecond) // the process may be starting
	}
}

func sendAny(ctx context.Context, c *client.Client, d doneCommand) (*events.Reply, error) {
	id := client.CommandID(d.id)
	switch v := d.data.(type) {
	case events.CreateItem:
		return c.Send(ctx, d.thread, v, id)
	case events.ForkThread:
		return c.Send(ctx, d.thread, v, id)
	case events.MentionThread:
		return c.Send(ctx, d.thread, v, id)
	case events.HandoffThread:
		return c.Send(ctx, d.thread, v, id)
	case events.CreateThread:
		return c.Send(ctx, d.thread, v, id)
	case events.TruncateThread:
		return c.Send(ctx, d.thread, v, id)
	case events.DeleteThread:
		return c.Send(ctx, d.thread, v, id)
	}
	panic(fmt.Sprintf("no case for %T", d.data))
}

// whole checks that each relationship between threads that are there is on both of them.
func (f *family) whole(t *testing.T, c *client.Client) (relationships int) {
	t.Helper()
	all := map[string][]events.Relationship{}
	for _, id := range f.threads {
		list, err := client.Read(t.Context(), c, events.ListRelationships{ThreadID: id})
		if events.AsError(err) != nil && events.AsError(err).Code == events.NotFound {
			continue // it was deleted
		}
		if err != nil {
			t.Fatal(err)
		}
		all[id] = list.Relationships
	}
	for id, list := range all {
		for _, r := range list {
			relationships++
			other, there := all[r.ThreadID]
			if there && !slices.ContainsFunc(other, func(o events.Relationship) bool {
				return o.ThreadID == id && o.Type == r.Type && o.Role != r.Role && (o.MessageIndex == nil) == (r.MessageIndex == nil) &&
					(o.MessageIndex == nil || *o.MessageIndex == *r.MessageIndex)
			}) {
				t.Errorf("half a relationship: %s is %s of a %s with %s", id, r.Role, r.Type, r.ThreadID)
			}
		}
	}
	return relationships
}

// cascaded waits until the threads that work for deleted ones are deleted, and returns how many
// those are.
func (f *family) cascaded(t *testing.T, c *client.Client) (n int) {
	t.Helper()
	over := map[string]bool{}
	for _, w := range f.workers { // a main thread was created before those that work for it
		if !over[w.main] {
			_, err := client.Read(t.Context(), c, events.GetThread{ThreadID: w.main})
			if err == nil {
				continue
			}
			if events.AsError(err).Code != events.NotFound {
				t.Fatal(err)
			}
			over[w.main] = true
		}
		until(t, c, w.thread, deleted)
		over[w.thread] = true
		n++
	}
	return n
}

func deleted(e client.Event) bool { return e.Type == events.LifecycleDeletedType }

// A whole Skein is killed again and again while the threads are deleted that work for a deleted
// one: each is deleted in the end, once, and no other (AM-85, AM-88).
func TestCascadeKilled(t *testing.T) {
	cascadeKilled(t, 200, 3)
}

// The same with fewer threads and one kill, as the first one is deleted.
func TestCascade_KilledOnce(t *testing.T) {
	t.Parallel()
	cascadeKilled(t, 100, 1)
}

func cascadeKilled(t *testing.T, workers, most int) {
	t.Helper()
	folder, address := t.TempDir(), natstest.FreeAddress(t)
	p := launch(t, wholeMode, "cascade-0", folder, address)
	c := connect(t, p.url)
	ctx := patient(t, 2*patience)
	create := func(d events.CreateThread) string {
		t.Helper()
		made, err := c.Send(ctx, "", d)
		if err != nil {
			t.Fatal(err)
		}
		return made.ThreadID
	}
	main := create(events.CreateThread{})
	other := create(events.CreateThread{})
	kept := create(events.CreateThread{MainThreadID: other})
	fork, err := c.Send(ctx, main, events.ForkThread{Version: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	works := make([]string, workers)
	var creating sync.WaitGroup
	for part := range slices.Chunk(works, workers/8) {
		creating.Go(func() {
			for i := range part {
				made, err := c.Send(ctx, "", events.CreateThread{MainThreadID: main})
				if err != nil {
					t.Error(err)
					return
				}
				part[i] = made.ThreadID
			}
		})
	}
	creating.Wait()
	line, err := c.Timeline(ctx, client.SubscribeOptions{From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	if _, err := c.Send(ctx, main, events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	gone, kills := map[string]int{}, 0
	for len(gone) < workers+1 {
		e, err := line.Next(ctx)
		if err != nil {
			t.Fatalf("after %d of %d: %v", len(gone), workers+1, err)
		}
		if !deleted(e) {
			continue
		}
		if gone[e.ThreadID]++; len(gone) == 2+kills*workers/4 && kills < most { // the first time while the commands are sent
			kills++
			p.kill()
			p = launch(t, wholeMode, fmt.Sprintf("cascade-%d", kills), folder, address)
		}
	}
	for _, id := range append(works, main) {
		if gone[id] != 1 {
			t.Errorf("%s was deleted %d times", id, gone[id])
		}
	}
	now, err := c.UpToDate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{other, kept, fork.Result.ChildID} {
		if _, err := client.Read(ctx, now, events.GetThread{ThreadID: id}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := client.Read(ctx, now, events.GetThread{ThreadID: works[0]}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a deleted thread: %v", err)
	}
	audited(t, p.url)
}

// Processes are killed with SIGKILL in the middle of forks, handoffs, mentions, truncations,
// creations of threads that work for others, and deletions of several clients on the same threads,
// alone or with the store. Every acknowledged command is there, a repeat returns its first reply,
// no half relationship is left, no thread works for a deleted one, and the audit finds nothing
// (AM-41, AM-45, AM-85).
func TestFamiliesKilled(t *testing.T) {
	for mode, kills := range map[string]int{workerMode: 5, wholeMode: 3} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			familiesKilled(t, mode, 60, kills)
		})
	}
}

// The same with few commands and one kill.
func TestFamilies_KilledOnce(t *testing.T) {
	t.Parallel()
	familiesKilled(t, wholeMode, 15, 1)
}

func familiesKilled(t *testing.T, mode string, commands, kills int) {
	const clients = 4
	seed := number(t, "SKEIN_CHAOS_SEED", rand.Uint64())
	t.Logf("SKEIN_CHAOS_SEED=%d", seed)
	folder, url := t.TempDir(), ""
	var living []*process
	start := func(n int) (*process, error) {
		address := url
		if mode == wholeMode && address == "" {
			address = natstest.FreeAddress(t)
			url = address
		}
		return tryLaunch(t, mode, fmt.Sprintf("%s-%d", mode, n), folder, address)
	}
	if mode == workerMode {
		url = natstest.Start(t).URL()
	}
	for n := range map[string]int{workerMode: 2, wholeMode: 1}[mode] {
		p, err := start(n)
		if err != nil {
			t.Fatal(err)
		}
		living = append(living, p)
	}
	at := url
	if mode == wholeMode {
		at = living[0].url
	}
	f := &family{refused: map[events.Code]int{}, acks: make(chan struct{}, clients*commands)}
	connected := make([]*client.Client, clients)
	for n := range connected {
		c, err := client.Connect(at, client.Options{Tenant: tenant, Timeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		connected[n] = c
	}
	ctx := patient(t, 2*patience)
	for range 3 {
		made, err := connected[0].Send(ctx, "", events.CreateThread{})
		if err != nil {
			t.Fatal(err)
		}
		f.threads = append(f.threads, made.ThreadID)
	}
	var working sync.WaitGroup
	for n, c := range connected {
		working.Go(func() {
			if err := f.work(ctx, c, fmt.Sprintf("client-%d", n), rand.New(rand.NewPCG(seed, uint64(n))), commands); err != nil {
				t.Error(err)
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 99))
	for kill := range kills {
		for range clients * commands / (kills + 1) {
			select {
			case <-f.acks:
			case <-ctx.Done():
				t.Fatal(ctx.Err())
			}
		}
		place := random.IntN(len(living))
		living[place].kill()
		p, err := start(len(living) + kill)
		if err != nil {
			t.Fatal(err)
		}
		living[place] = p
	}
	working.Wait()
	if t.Failed() {
		return
	}
	for _, d := range f.done { // by any process
		if len(d.reply.Events) == 0 {
			continue // nothing was to do, and nothing remembers it
		}
		again, err := f.send(ctx, connected[0], d, true)
		if err != nil {
			t.Errorf("the repeat of %s (%T) was refused: %v", d.id, d.data, err)
			continue
		}
		if again.Seq != d.reply.Seq || fmt.Sprint(again.Events) != fmt.Sprint(d.reply.Events) {
			t.Errorf("the repeat of %s (%T) was answered with %+v, and before with %+v", d.id, d.data, again, d.reply)
		}
	}
	c, err := connect(t, at).UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cascaded := f.cascaded(t, c)
	relationships := f.whole(t, c)
	t.Logf("%d done, %v refused, %d answers lost, %d threads, %d records of relationships, %d deleted with their main threads", len(f.done), f.refused, f.lost, len(f.threads), relationships, cascaded)
	if relationships == 0 {
		t.Error("no relationship is there: nothing was shown")
	}
	audited(t, at)
}
