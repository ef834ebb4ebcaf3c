package runtime

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// reactAt asks an agent through the process of a worker.
func (w *world) reactAt(worker *Worker, id, text string) (execution string) {
	w.t.Helper()
	data, err := json.Marshal(events.ReactThread{Text: &text})
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := json.Marshal(events.Request{ThreadID: id, Data: data})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := worker.commands.Do(w.t.Context(), tenant, "thread.react", body, commands.Meta{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Result.ExecutionID
}

// claims counts the claims of a run.
func claims(all []events.Event, execution string) (n int) {
	for _, e := range all {
		if e.Type == events.RunClaimedType && e.Subject == execution {
			n++
		}
	}
	return n
}

func (w *world) thread(agent string) string {
	w.t.Helper()
	return w.must("thread.create", "", events.CreateThread{AgentID: agent}).ThreadID
}

// ready waits until a worker accepts runs.
func (w *world) ready(worker *Worker) {
	w.t.Helper()
	for deadline := time.Now().Add(testPatience); worker.takePlace() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("the worker takes no runs")
		}
	}
	worker.freePlace()
}

// unqueued waits until the queue has no message of a run.
func (w *world) unqueued(id, execution string) {
	w.t.Helper()
	w.awaitQueue(id, execution, 0, false)
}

// queued waits until the queue has a message of a run that a version requested, or a
// later one.
func (w *world) queued(id, execution string, version int64) {
	w.t.Helper()
	w.awaitQueue(id, execution, version, true)
}

func (w *world) awaitQueue(id, execution string, version int64, want bool) {
	w.t.Helper()
	for deadline := time.Now().Add(testPatience); ; time.Sleep(5 * time.Millisecond) {
		there, err := queues.RunsOf(w.log).Has(w.t.Context(), tenant, id, execution, version)
		if err != nil || time.Now().After(deadline) {
			w.t.Fatalf("a message of run %s since version %d is there: %t: %v", execution, version, there, err)
		}
		if there == want {
			return
		}
	}
}

// A run that is requested in the worker's own process is claimed in the commit that
// requests it, in the order of EK 7, and its message leaves the queue when it has
// ended. EK-109, EK-111, EK-112, EK-113.
func TestBegin_ClaimsWithCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(says("x", call("c1", "t", `{}`)), says("fine")), tool{ToolSpec{Name: "t"}, func(context.Context, *ToolInput) (ToolResult, error) {
		return Done(text("y")), nil
	}})
	worker := w.work(Config{})
	w.ready(worker)
	id := w.thread("a")
	w.must("item.create", id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: []byte(`[{"type":"input_text","text":"said before"}]`)}})
	execution := w.reactAt(worker, id, "hello")
	w.must("item.create", id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: []byte(`[{"type":"input_text","text":"said during the run"}]`)}})
	all := w.finished(id, execution)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s: %s", status, text)
	}
	if n := claims(all, execution); n != 1 {
		t.Errorf("it was claimed %d times", n)
	}
	w.unqueued(id, execution)
	var first *events.Commit
	for c, err := range w.log.Thread(t.Context(), tenant, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(kinds(c.Events), "run.requested") {
			first = c
		}
	}
	const order = "context.resolved item.created thread.status.changed context.status.changed execution.created run.requested run.claimed step.created"
	if got := kinds(first.Events); got != order {
		t.Errorf("the commit holds %s", got)
	}
	for deadline := time.Now().Add(testPatience); ; time.Sleep(time.Millisecond) { // it is forgotten after the message was settled
		worker.mu.Lock()
		held := len(worker.held)
		worker.mu.Unlock()
		if held == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are still waited for", held)
		}
	}
}

// Commits of other processes are read first, and the run is begun once, with the
// command.
func TestBegin_OnceOnChangedThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(says("fine")))
	worker := w.work(Config{Shares: quota.NewPool("runs", quota.Places{Total: 256, Tenant: 1}, nil)}) // with the default, a place that is kept would be the tenant's last
	w.ready(worker)
	id := w.thread("a")
	for _, text := range []string{"one", "two", "three"} {
		execution := w.reactAt(worker, id, text)
		if n := claims(w.finished(id, execution), execution); n != 1 {
			t.Errorf("it was claimed %d times", n)
		}
		// The state in the worker's process is stale now.
		w.must("item.create", id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: []byte(`[]`)}})
		w.unqueued(id, execution)
	}
	for deadline := time.Now().Add(testPatience); len(worker.places) > 1; time.Sleep(time.Millisecond) { // one is reserved for the next delivery of the queue
		if time.Now().After(deadline) {
			t.Fatalf("%d places are in use", len(worker.places))
		}
	}
}

// A run that one process has begun is not executed by another one that receives its
// message, however long it takes, until the first process is gone. EK-124.
func TestBegin_MessageIsForwardedToItsWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	came, free := make(chan string, 100), make(chan struct{})
	var held atomic.Bool
	held.Store(true)
	w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		came <- in.ExecutionID
		if held.Load() {
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		return says("fine"), nil
	}))
	timers, since := natstest.MeasureLateness(t), time.Now()
	first := w.work(Config{})
	w.ready(first)
	w.ready(w.work(Config{})) // it receives about half of the messages
	const runs = 12
	threads := map[string]string{}
	for range runs {
		id := w.thread("a")
		execution := w.reactAt(first, id, "hello")
		threads[execution] = id
	}
	for range runs {
		<-came
	}
	kept := func() bool { return timers.Most(since, time.Now()) < queues.RunWait/5 } // no worker was kept from saying a word
	select {
	case execution := <-came:
		if kept() {
			t.Errorf("%s was run by another worker too", execution)
		}
	case <-time.After(queues.RunWait + 2*time.Second): // it would have been redelivered by then
	}
	close(free)
	for execution, id := range threads {
		if n := claims(w.finished(id, execution), execution); n != 1 && kept() {
			t.Errorf("%s was claimed %d times", execution, n)
		}
		w.unqueued(id, execution)
	}

	free = make(chan struct{})
	defer close(free)
	id := w.thread("a")
	execution := w.reactAt(first, id, "hello")
	<-came
	held.Store(false)
	first.log.Conn().Close() // for other processes it is gone
	begun := time.Now()
	if n := claims(w.finished(id, execution), execution); n != 2 {
		t.Errorf("it was claimed %d times", n)
	}
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("it was run again after %v", took)
	}
}
