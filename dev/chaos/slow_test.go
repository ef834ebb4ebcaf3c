package chaos

import (
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// lostIt is what a worker logs that finds its run claimed by another one.
const lostIt = "a run was lost to another worker"

func openLine(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc := natstest.Dial(t, url)
	return nc
}

func open(t testing.TB, m *nats.Msg) {
	t.Helper()
	if err := m.Respond(nil); err != nil {
		t.Fatal(err)
	}
}

// historyOf returns all events of a thread.
func historyOf(t testing.TB, c *client.Client, thread string) (out []client.Event) {
	t.Helper()
	line, err := c.Timeline(patient(t, patience), client.SubscribeOptions{Thread: thread, From: client.Start(), History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	for e, err := range line.All(patient(t, patience)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func count(list []client.Event, kind events.Type) (n int) {
	for i := range list {
		if list[i].Type == kind {
			n++
		}
	}
	return n
}

// A worker that stands still in a reactor for longer than its claim lasts is replaced.
// Its reactor's answer is refused afterwards: the thread has one answer, and the tool is
// called once. EK-92, EK-94, EK-124.
func TestWorkerStandsStillInAReactor(t *testing.T) {
	t.Parallel()
	s := startStore(t)
	g, folder := openGates(t, openLine(t, s.url)), t.TempDir()
	slow := launch(t, workerMode, "slow", folder, s.url)
	thread, execution := begin(t, s.Client, gated)
	held := g.arrival("slow", "reactor")
	slow.signal(syscall.SIGSTOP)
	launch(t, workerMode, "other", folder, s.url)
	open(t, g.arrival("other", "reactor"))
	open(t, g.arrival("other", pay))
	x := ended(t, s.Client, thread, execution)
	before := historyOf(t, s.Client, thread)
	open(t, held)
	slow.signal(syscall.SIGCONT)
	slow.says(lostIt)
	after := historyOf(t, s.Client, thread)
	if x.Status != events.ExecutionCompleted || x.Worker != "other" || x.Token != 2 || len(after) != len(before) {
		t.Errorf("%+v; %d events, and then %d", x, len(before), len(after))
	}
	book, err := ledgerIn(folder).read()
	if err != nil || len(book) != 1 || count(after, events.StepCreatedType) != 2 {
		t.Errorf("the ledger: %v, %v; %d steps", book, err, count(after, events.StepCreatedType))
	}
	audited(t, s.url)
}

// A worker that stands still in a tool that is not idempotent is replaced, and the call,
// which may have been made, waits for a person. The tool's result is refused when the
// worker continues. EK-124.
func TestWorkerStandsStillInATool(t *testing.T) {
	t.Parallel()
	s := startStore(t)
	g, folder := openGates(t, openLine(t, s.url)), t.TempDir()
	slow := launch(t, workerMode, "slow", folder, s.url)
	thread, execution := begin(t, s.Client, gated)
	open(t, g.arrival("slow", "reactor"))
	held := g.arrival("slow", pay)
	slow.signal(syscall.SIGSTOP)
	launch(t, workerMode, "other", folder, s.url)
	asked := until(t, s.Client, thread, ofType(events.ApprovalRequestedType))
	if d, ok := asked.Data.(events.ApprovalRequested); !ok || d.CallID != "c1" || string(d.Arguments) != `{"eur":5}` {
		t.Errorf("it was asked about %+v", asked.Data)
	}
	if _, err := s.Send(t.Context(), thread, events.DenyApproval{CallID: "c1", Comment: "nobody knows"}); err != nil {
		t.Fatal(err)
	}
	x := ended(t, s.Client, thread, execution)
	before := historyOf(t, s.Client, thread)
	open(t, held)
	slow.signal(syscall.SIGCONT)
	slow.says(lostIt)
	after := historyOf(t, s.Client, thread)
	if x.Status != events.ExecutionCompleted || x.Worker != "other" || len(after) != len(before) || count(after, events.PartUpdatedType) != 1 {
		t.Errorf("%+v; %d events, and then %d", x, len(before), len(after))
	}
	for i := range after {
		if d, ok := after[i].Data.(events.PartUpdated); ok && !strings.Contains(string(d.Part), "nobody knows") {
			t.Errorf("the call came to %s", d.Part)
		}
	}
	audited(t, s.url)
}

// A worker that has taken over a run is replaced when it dies, even if the worker before
// it is running again and still in its reactor.
func TestWorkerDiesAfterATakeover(t *testing.T) {
	t.Parallel()
	s := startStore(t)
	g, folder := openGates(t, openLine(t, s.url)), t.TempDir()
	slow := launch(t, workerMode, "slow", folder, s.url)
	thread, execution := begin(t, s.Client, gated)
	g.arrival("slow", "reactor") // it never gets through
	slow.signal(syscall.SIGSTOP)
	second := launch(t, workerMode, "second", folder, s.url)
	g.arrival("second", "reactor")
	slow.signal(syscall.SIGCONT)
	slow.says(lostIt)
	slow.signal(syscall.SIGSTOP) // so that it cannot be the one that takes the run
	second.kill()
	launch(t, workerMode, "third", folder, s.url)
	open(t, g.arrival("third", "reactor"))
	open(t, g.arrival("third", pay))
	if x := ended(t, s.Client, thread, execution); x.Status != events.ExecutionCompleted || x.Token != 3 {
		t.Errorf("%+v", x)
	}
}
