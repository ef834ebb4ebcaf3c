package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// until waits until a thread shows an event.
func until(t testing.TB, c *client.Client, thread string, is func(client.Event) bool) client.Event {
	t.Helper()
	ctx := patient(t, patience)
	line, err := c.Timeline(ctx, client.SubscribeOptions{Thread: thread, From: client.Start()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	for {
		e, err := line.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for an event of %s: %v", thread, err)
		}
		if is(e) {
			return e
		}
	}
}

func ofType(kind events.Type) func(client.Event) bool {
	return func(e client.Event) bool { return e.Type == kind }
}

// begin creates a thread and asks an agent.
func begin(t testing.TB, c *client.Client, agent string) (thread, execution string) {
	t.Helper()
	made, err := c.Send(t.Context(), "", events.CreateThread{AgentID: agent})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("hello")})
	if err != nil {
		t.Fatal(err)
	}
	return made.ThreadID, reply.Result.ExecutionID
}

// ended waits for the end of a run.
func ended(t testing.TB, c *client.Client, thread, execution string) *events.Execution {
	t.Helper()
	c, err := c.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.WaitRun(patient(t, patience), events.GetExecution{ThreadID: thread, ExecutionID: execution})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A run that waits for an approval still waits after the whole Skein was stopped or
// killed, and continues there: the call is made once, with the arguments of the request.
// EK-124, EK-92.
func TestApprovalOverARestart(t *testing.T) {
	t.Parallel()
	folder, address := t.TempDir(), natstest.FreeAddress(t)
	p := launch(t, wholeMode, "first", folder, address)
	c := connect(t, p.url)
	stopped, stoppedRun := begin(t, c, careful)
	killed, killedRun := begin(t, c, careful)
	until(t, c, stopped, ofType(events.RunParkedType))
	until(t, c, killed, ofType(events.RunParkedType))
	p.stop()
	p = launch(t, wholeMode, "second", folder, address)
	if _, err := c.Send(t.Context(), stopped, events.GrantApproval{CallID: "c1"}); err != nil {
		t.Fatal(err)
	}
	if x := ended(t, c, stopped, stoppedRun); x.Status != events.ExecutionCompleted || x.StepCount != 2 {
		t.Errorf("after a stop: %+v", x)
	}
	p.kill()
	launch(t, wholeMode, "third", folder, address)
	if _, err := c.Send(t.Context(), killed, events.GrantApproval{CallID: "c1"}); err != nil {
		t.Fatal(err)
	}
	if x := ended(t, c, killed, killedRun); x.Status != events.ExecutionCompleted || x.StepCount != 2 {
		t.Errorf("after a kill: %+v", x)
	}
	book, err := ledgerIn(folder).read()
	if err != nil || len(book) != 2 {
		t.Fatalf("the ledger: %v, %v", book, err)
	}
	for key, w := range book {
		if len(w.begun) != 1 || len(w.done) != 1 {
			t.Errorf("%s was begun %d times and done %d times", key, len(w.begun), len(w.done))
		}
	}
	audited(t, p.url)
}

// A whole Skein, with its store, is killed with SIGKILL again and again during the turns
// of many threads. Every turn ends as in an undisturbed run. EK-92, EK-124.
func TestWholeSkeinKilled(t *testing.T) {
	t.Parallel()
	turns, kills := 40, 3
	if testing.Short() || raced {
		turns, kills = 24, 2
	}
	seed := number(t, "SKEIN_CHAOS_SEED", rand.Uint64())
	t.Logf("SKEIN_CHAOS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	all, err := readTalks()
	if err != nil {
		t.Fatal(err)
	}
	talks := all.some(turns)
	quiet, denied := undisturbed(t, talks)

	folder, address := t.TempDir(), natstest.FreeAddress(t)
	p := launch(t, wholeMode, "whole-0", folder, address)
	url := p.url
	c := connect(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex // guards p
	someone := &person{c: c, book: ledgerIn(folder), denied: denied, lives: func(pid int) bool {
		mu.Lock()
		defer mu.Unlock()
		return p.cmd.Process.Pid == pid && p.alive()
	}}
	line, err := c.Timeline(ctx, client.SubscribeOptions{From: client.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	someone.answersAll(ctx, t, &others)
	killed := 0
	others.Go(func() {
		for left := 100; killed < kills; left-- {
			if _, err := line.Next(ctx); err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			if left > 0 {
				continue
			}
			left = 100 + random.IntN(200)
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // amid what follows the event
			killed++
			mu.Lock()
			before := p
			mu.Unlock()
			before.kill()
			after, err := tryLaunch(t, wholeMode, fmt.Sprintf("whole-%d", killed), folder, address)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			p = after
			mu.Unlock()
		}
	})
	have(t, c, talks)
	cancel()
	others.Wait()
	compare(t, quiet.Client, c, talks, someone.denied)
	if lost := once(t, c, talks, folder, someone); killed == 0 || lost == 0 {
		t.Errorf("it was killed %d times, and %d runs went on: nothing was shown", killed, lost)
	}
	audited(t, url)
}
