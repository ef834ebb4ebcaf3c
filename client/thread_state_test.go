package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
)

// TestThreadState is the conformance suite of ThreadState: one test for each
// requirement, against a server in this process and against one in a process of its
// own.
func TestThreadState(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) { conform(t, start(t)) })
	t.Run("separate", func(t *testing.T) { conform(t, startProcess(t)) })
}

// requirement is one requirement: its id, and the check that shows it.
type requirement struct {
	id   string
	show func(*suite)
}

func conform(t *testing.T, url string) {
	c := connect(t, url)
	seen := map[string]bool{}
	for _, r := range slices.Concat(identityRequirements(), messageRequirements(), viewRequirements(), liveRequirements(), lifeRequirements()) {
		if seen[r.id] {
			t.Errorf("%s is here twice", r.id)
		}
		seen[r.id] = true
		t.Run(r.id, func(t *testing.T) { r.show(&suite{T: t, url: url, c: c}) })
	}
}

// suite is the environment of a check.
type suite struct {
	*testing.T
	url string
	c   *client.Client
}

// startProcess builds skein and starts it as a process.
func startProcess(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "skein")
	// The program that go run links stays in the build cache, for other packages' tests too.
	if out, err := exec.Command("go", "run", "-ldflags=-w", "-exec", "cp -f", "../cmd/skein", binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(binary, "serve", "--json", "--store", t.TempDir(), "--nats-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--log-level", "warn")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("skein serve ended with %v", err)
		}
	})
	var ready struct{ NATS string }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || json.Unmarshal([]byte(line), &ready) != nil {
		t.Fatalf("no ready line: %q, %v", line, err)
	}
	return ready.NATS
}

// thread creates a thread and returns its state.
func (s *suite) thread() *client.ThreadState {
	s.Helper()
	return s.threadWith(events.CreateThread{AgentID: "triage"})
}

func (s *suite) threadWith(d events.CreateThread) *client.ThreadState {
	s.Helper()
	reply, err := s.c.Send(s.Context(), "", d)
	if err != nil {
		s.Fatal(err)
	}
	st, err := s.c.WithMinSeq(reply.Seq).Thread(s.Context(), reply.ThreadID)
	if err != nil {
		s.Fatal(err)
	}
	return st
}

func (s *suite) inject(st *client.ThreadState, m events.AddMessage) *events.ThreadMessage {
	s.Helper()
	got, err := st.InjectMessage(s.Context(), m)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// say injects a user's message.
func (s *suite) say(st *client.ThreadState, text string) *events.ThreadMessage {
	s.Helper()
	return s.inject(st, events.AddMessage{Role: events.FromUser, Content: &text})
}

func (s *suite) messages(st *client.ThreadState, o events.GetMessagesOptions) *events.MessageList {
	s.Helper()
	list, err := st.GetMessages(s.Context(), o)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// texts returns the texts of messages, joined.
func texts(l *events.MessageList) string {
	var all []string
	for _, m := range l.Messages {
		if m.Content == nil {
			all = append(all, "-")
			continue
		}
		all = append(all, *m.Content)
	}
	return strings.Join(all, " ")
}

// refused checks that an error is a refusal with that code.
func (s *suite) refused(err error, code events.Code) {
	s.Helper()
	if !errors.Is(err, &events.Error{Code: code}) {
		s.Errorf("%v, and not %s", err, code)
	}
}

func (s *suite) do(reply *events.Reply, err error) *events.Reply {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	return reply
}

func ptr[T any](v T) *T { return &v }

// same checks a value.
func (s *suite) same(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Errorf("%s is %#v, not %#v", what, got, want)
	}
}

// assign hands a thread over to another agent, as a runtime records it.
func (s *suite) assign(thread, agent string) {
	s.Helper()
	nc := natstest.Dial(s, s.url)
	log, err := eventlog.Open(nc, eventlog.Config{Patience: 5 * time.Minute}, zerolog.Nop(), nil)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	last, err := log.Last(s.Context(), "acme", thread)
	if err != nil {
		s.Fatal(err)
	}
	e := events.Event{
		ID: events.EventID("acme", thread, "handoff", 0), Type: events.AgentAssignedType, Time: events.TimeOf(time.Now()), Subject: thread,
		Tenant: "acme", ThreadID: thread, Version: last.Version + 1, CommandID: "handoff", Data: events.AgentAssigned{AgentID: agent, From: "triage"},
	}
	commit, err := events.NewCommit(last.Chain, []events.Event{e})
	if err != nil {
		s.Fatal(err)
	}
	if err := log.Append(s.Context(), eventlog.Write{Commit: commit, Expected: last.Seq}); err != nil {
		s.Fatal(err)
	}
}

// portable is the interface of Standard Agents, as far as a caller outside an execution
// has it. It contains nothing of storage or platform.
type portable interface {
	ThreadID() string
	AgentID() string
	UserID() *string
	CreatedAt() int64
	GetMessages(context.Context, events.GetMessagesOptions) (*events.MessageList, error)
	GetMessage(context.Context, string) (*events.ThreadMessage, error)
	InjectMessage(context.Context, events.AddMessage) (*events.ThreadMessage, error)
	UpdateMessage(context.Context, string, events.MessageUpdates) (*events.ThreadMessage, error)
	DeleteMessage(context.Context, string) (bool, error)
	GetLogs(context.Context, events.GetLogsOptions) ([]events.Log, error)
	Emit(context.Context, string, any) error
	Scratch() *sync.Map
	Execution() events.ExecutionState
}

func identityRequirements() []requirement {
	return []requirement{
		{"SA-10", func(s *suite) { // one interface for all callers
			var st portable = s.thread()
			if m, err := st.InjectMessage(s.Context(), events.AddMessage{Role: events.FromUser, Content: ptr("hi")}); err != nil || *m.Content != "hi" {
				s.Errorf("%+v, %v", m, err)
			}
		}},
		{"SA-12", func(s *suite) {
			a, b := s.thread(), s.thread()
			if a.ThreadID() == b.ThreadID() || !events.ValidThreadID(a.ThreadID()) {
				s.Errorf("%s and %s", a.ThreadID(), b.ThreadID())
			}
		}},
		{"SA-13", func(s *suite) { // C-39: the current agent after a handoff
			st := s.thread()
			s.same("the agent", st.AgentID(), "triage")
			s.assign(st.ThreadID(), "billing")
			now, err := s.c.UpToDate(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			fresh, err := now.Thread(s.Context(), st.ThreadID())
			if err != nil {
				s.Fatal(err)
			}
			s.same("the agent of a new handle", fresh.AgentID(), "billing")
			if err := st.Refresh(s.Context()); err != nil {
				s.Fatal(err)
			}
			s.same("the agent after a refresh", st.AgentID(), "billing")
		}},
		{"SA-14", func(s *suite) {
			if user := s.thread().UserID(); user != nil {
				s.Errorf("a thread without a user belongs to %s", *user)
			}
			if user := s.threadWith(events.CreateThread{UserID: "ada"}).UserID(); user == nil || *user != "ada" {
				s.Errorf("%v", user)
			}
		}},
		{"SA-15", func(s *suite) { // microseconds, not truncated to milliseconds
			before := time.Now().UnixMicro()
			odd := false
			for range 5 {
				at := s.thread().CreatedAt()
				if after := time.Now().UnixMicro(); at < before || at > after {
					s.Errorf("%d is not between %d and %d", at, before, after)
				}
				odd = odd || at%1000 != 0
			}
			if !odd {
				s.Error("five times end with a whole millisecond")
			}
		}},
		{"SA-16", func(s *suite) { // C-14: a map of this handle
			st := s.thread()
			st.Scratch().Store("user", map[string]any{"id": 123})
			if v, ok := st.Scratch().Load("user"); !ok || v.(map[string]any)["id"] != 123 {
				s.Errorf("%v", v)
			}
			again, err := s.c.Thread(s.Context(), st.ThreadID())
			if err != nil {
				s.Fatal(err)
			}
			if _, ok := again.Scratch().Load("user"); ok {
				s.Error("another handle sees it")
			}
		}},
		{"SA-17", func(s *suite) { // C-40: null for an outside caller, also during a run
			st := s.thread()
			s.do(s.c.Send(s.Context(), st.ThreadID(), events.SetThreadStatus{To: events.ThreadStreaming}))
			if st.Execution() != nil {
				s.Error("there is an execution")
			}
		}},
		{"SA-18", func(s *suite) { // C-39: off the interface, behind a type assertion
			var st portable = s.thread()
			if _, ok := reflect.TypeFor[runtime.ThreadState]().MethodByName("RuntimeContext"); ok {
				s.Error("it is in the interface that tools receive")
			}
			if raw, ok := st.(client.NotPortable); !ok || raw.RuntimeContext() == nil {
				s.Error("it cannot be asked for")
			}
		}},
	}
}
