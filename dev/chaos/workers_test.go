package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// number returns a number from the environment.
func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// crowd is a set of workers, each of which is replaced when it is killed.
type crowd struct {
	t      testing.TB
	url    string
	folder string

	mu      sync.Mutex
	workers []*process
	made    int
	kills   int
}

// workersAtOnce is the number of running workers.
const workersAtOnce = 3

// add starts a worker in a place.
func (c *crowd) add(place int) error {
	c.mu.Lock()
	c.made++
	name := fmt.Sprintf("worker-%d", c.made)
	c.mu.Unlock()
	p, err := tryLaunch(c.t, workerMode, name, c.folder, c.url)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.workers[place] = p
	c.mu.Unlock()
	return nil
}

// kill kills the worker in a place and starts another one.
func (c *crowd) kill(place int) error {
	c.mu.Lock()
	p := c.workers[place]
	c.kills++
	c.mu.Unlock()
	p.kill()
	return c.add(place)
}

// lives reports whether a worker with that pid is running.
func (c *crowd) lives(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.workers {
		if p != nil && p.cmd.Process.Pid == pid && p.alive() {
			return true
		}
	}
	return false
}

// rampage kills workers until ctx ends: a moment after every so many events of the log.
func (c *crowd) rampage(ctx context.Context, line *client.Timeline, random *rand.Rand) error {
	for left := 50; ; left-- {
		if _, err := line.Next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if left > 0 {
			continue
		}
		left = 60 + random.IntN(300)
		select {
		case <-time.After(time.Duration(random.IntN(60)) * time.Millisecond): // amid what follows the event
		case <-ctx.Done():
			return nil
		}
		if err := c.kill(random.IntN(workersAtOnce)); err != nil {
			return err
		}
	}
}

// Workers are killed with SIGKILL all the time, and the threads do not show it: every
// turn ends as in an undisturbed run, each tool did its work once, or more than once if
// it is idempotent, and the audit finds nothing. EK-92, EK-123, EK-124.
func TestWorkersKilled(t *testing.T) {
	otherwise := uint64(200)
	if testing.Short() {
		otherwise = 40
	}
	turns := int(number(t, "SKEIN_CHAOS_TURNS", otherwise))
	seed := number(t, "SKEIN_CHAOS_SEED", rand.Uint64())
	t.Logf("SKEIN_CHAOS_SEED=%d", seed)
	all, err := readTalks()
	if err != nil {
		t.Fatal(err)
	}
	talks := all.some(turns)

	start := time.Now()
	quiet, denied := undisturbed(t, talks)
	t.Logf("%d turns on %d threads, undisturbed: %v", turns, len(talks), time.Since(start).Round(time.Millisecond))

	start = time.Now()
	wild := startStore(t)
	folder := t.TempDir()
	c := &crowd{t: t, url: wild.url, folder: folder, workers: make([]*process, workersAtOnce)}
	for place := range c.workers {
		if err := c.add(place); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line, err := wild.Timeline(ctx, client.SubscribeOptions{From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	p := &person{c: wild.Client, book: ledgerIn(folder), lives: c.lives, denied: denied}
	defer line.Close()
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	others.Go(func() {
		if err := c.rampage(ctx, line, rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Error(err)
		}
	})
	p.answersAll(ctx, t, &others)
	have(t, wild.Client, talks)
	cancel()
	others.Wait()
	t.Logf("the same, while %d workers were killed: %v", c.kills, time.Since(start).Round(time.Millisecond))
	compare(t, quiet.Client, wild.Client, talks, p.denied)
	if lost := once(t, wild.Client, talks, folder, p); lost == 0 {
		t.Error("no run was handed over: nothing was shown")
	}
	audited(t, wild.url)
}

// undisturbed has all talks with one worker that is not killed. On a slow machine its
// runs may be handed over all the same, so approvals are answered. It returns what was
// denied.
func undisturbed(t *testing.T, talks []talk) (*store, map[string]bool) {
	t.Helper()
	s, folder := startStore(t), t.TempDir()
	launch(t, workerMode, "undisturbed", folder, s.url)
	p := &person{c: s.Client, book: ledgerIn(folder), lives: func(int) bool { return false }, denied: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	p.answersAll(ctx, t, &answering)
	have(t, s.Client, talks)
	return s, p.denied
}

// have has all talks at the same time, each turn to its end.
func have(t *testing.T, c *client.Client, talks []talk) {
	t.Helper()
	ctx := patient(t, patience+time.Duration(len(talks))*3*time.Second)
	var running sync.WaitGroup
	var failed atomic.Bool
	for _, k := range talks {
		running.Go(func() {
			if err := k.have(ctx, c); err != nil {
				t.Error(err)
				failed.Store(true)
			}
		})
	}
	running.Wait()
	if failed.Load() {
		t.FailNow()
	}
}

// compare compares the threads of two runs.
func compare(t *testing.T, quiet, wild *client.Client, talks []talk, denied map[string]bool) {
	t.Helper()
	ctx := patient(t, patience)
	quiet, err := quiet.UpToDate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if wild, err = wild.UpToDate(ctx); err != nil {
		t.Fatal(err)
	}
	for _, k := range talks {
		want, err := formOf(ctx, quiet, k.thread, denied)
		if err != nil {
			t.Fatal(err)
		}
		got, err := formOf(ctx, wild, k.thread, denied)
		if err != nil {
			t.Fatal(err)
		}
		if d := differences(want, got); d != "" {
			t.Errorf("thread %d is not what it would have been:\n%s", k.n, d)
		}
		if len(got.Turns) != len(k.said) {
			t.Errorf("thread %d had %d turns, not %d", k.n, len(got.Turns), len(k.said))
		}
	}
}

// once compares the threads with the ledger, and returns how many runs were claimed
// again.
func once(t *testing.T, c *client.Client, talks []talk, folder string, p *person) (lost int) {
	t.Helper()
	book, err := ledgerIn(folder).read()
	if err != nil {
		t.Fatal(err)
	}
	calls, again, begunAgain, claims := 0, 0, 0, 0
	for _, k := range talks {
		line, err := c.Timeline(patient(t, patience), client.SubscribeOptions{Thread: k.thread, From: client.Start(), History: true})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range line.All(patient(t, patience)) {
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case events.RunClaimed:
				if claims++; d.Token > 1 {
					lost++
				}
			case events.StepStatusChanged:
				for _, call := range callsIn(t, d.ToolCalls) {
					calls++
					key := d.ExecutionID + ":" + e.Subject + ":" + call.CallID
					w := book[key]
					delete(book, key)
					switch {
					case len(w.done) == 0:
						t.Errorf("the call %s (%s) was not made", key, call.Name)
					case len(w.done) > 1 && !idempotent(call.Name):
						t.Errorf("the call %s (%s) did its work %d times", key, call.Name, len(w.done))
					case len(w.done) > 1:
						again++
					}
					if len(w.begun) > 1 {
						begunAgain++
					}
				}
			}
		}
		line.Close()
	}
	for key := range book {
		t.Errorf("a call was made that no thread knows: %s", key)
	}
	t.Logf("%d calls, %d of them begun more than once, and %d idempotent ones done more than once; %d claims, %d of them not the first; %d approvals granted, %d denied",
		calls, begunAgain, again, claims, lost, p.granted, len(p.denied))
	if calls == 0 {
		t.Error("no tool was called: nothing was shown")
	}
	return lost
}

func callsIn(t testing.TB, raw []byte) (out []callIn) {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
