package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// logLine is a line of the log of a server.
type logLine struct {
	Level     string `json:"level"`
	Message   string `json:"message"`
	Lease     string `json:"lease"`
	Thread    string `json:"thread"`
	Agent     string `json:"agent"`
	Tenant    string `json:"tenant"`
	Execution string `json:"execution"`
}

// logLines receives the lines of a log, each of which is one write.
type logLines chan logLine

func (l logLines) Write(p []byte) (int, error) {
	var line logLine
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	l <- line
	return len(p), nil
}

// wait returns the next line with a message.
func (l logLines) wait(t *testing.T, message string) logLine {
	t.Helper()
	return l.find(t, message, func(line logLine) bool { return line.Message == message })
}

// find returns the next line that matches what is said of it.
func (l logLines) find(t *testing.T, what string, matches func(logLine) bool) logLine {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case line := <-l:
			if matches(line) {
				return line
			}
		case <-limit:
			t.Fatalf("the log never says %q", what)
		}
	}
}

// logged starts a server whose log the test reads.
func logged(t *testing.T, cfg server.Config, level zerolog.Level) (*server.Server, logLines) {
	t.Helper()
	lines := make(logLines, 10_000)
	s, err := server.Start(t.Context(), cfg, zerolog.New(lines).Level(level))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s, lines
}

// When a process ends, the log of another says of each lease for which it has waited that it has
// taken over. A process that is alone takes over from nobody.
func TestLog_Takeover(t *testing.T) {
	t.Parallel()
	const message = "this process has taken over"
	cfg := server.Config{NATS: natstest.Start(t).URL(), HTTPListen: "127.0.0.1:0"}
	first, lines := logged(t, cfg, zerolog.DebugLevel)
	held := map[string]bool{}
	for len(held) < 3 {
		held[lines.wait(t, "lease taken").Lease] = true
	}
	_, others := logged(t, cfg, zerolog.DebugLevel)
	waiting := map[string]bool{}
	for len(waiting) < 3 {
		waiting[others.wait(t, "another process has the lease; waiting for it").Lease] = true
	}
	stop(t, first)
	for len(lines) > 0 {
		if line := <-lines; line.Message == message {
			t.Errorf("it was alone: %+v", line)
		}
	}
	for len(waiting) > 0 {
		line := others.wait(t, message)
		if line.Level != "info" || line.Lease == "" {
			t.Errorf("%+v", line)
		}
		delete(waiting, line.Lease)
	}
}

// The log says that a run failed, and of which thread and agent, and nothing of what it was about.
func TestLog_FailedRun(t *testing.T) {
	t.Parallel()
	cfg := free(t)
	cfg.Register = func(r *runtime.Registry) error {
		return r.AddReactor("broken", runtime.ReactorFunc(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			return nil, errors.New("the model is away")
		}))
	}
	s, lines := logged(t, cfg, zerolog.InfoLevel)
	c := must(client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: time.Minute}))(t)
	defer c.Close()
	definition := must(events.EncodeDefinition(events.AgentDefinition{Name: "failing", Type: events.AIHuman, Reactor: "broken"}))(t)
	must(c.Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{{Kind: events.AgentKind, Definition: definition}}}))(t)
	made := must(c.Send(t.Context(), "", events.CreateThread{AgentID: "failing"}))(t)
	text := "my secret"
	reply := must(c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: &text}))(t)
	want := logLine{"info", "a run failed; its execution says why", "", made.ThreadID, "failing", "acme", reply.Result.ExecutionID}
	if line := lines.wait(t, want.Message); line != want {
		t.Errorf("%+v, not %+v", line, want)
	}
}

// A run that was stopped has not failed, and the log does not say that it has: neither if its
// reactor gives up, nor if it goes on to its end.
func TestLog_StoppedRunHasNotFailed(t *testing.T) {
	cfg := free(t)
	began := make(chan struct{}, 1)
	cfg.Register = func(r *runtime.Registry) error {
		return errors.Join(r.AddReactor("patient", runtime.ReactorFunc(func(ctx context.Context, _ *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})), r.AddReactor("broken", runtime.ReactorFunc(func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
			return nil, errors.New("the model is away")
		})))
	}
	s, lines := logged(t, cfg, zerolog.InfoLevel)
	c := must(client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: time.Minute}))(t)
	defer c.Close()
	run := func(agent string) *events.Reply {
		t.Helper()
		made := must(c.Send(t.Context(), "", events.CreateThread{AgentID: agent}))(t)
		return must(c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("hello")}))(t)
	}
	wait := func(reply *events.Reply) *events.Execution {
		t.Helper()
		return must(c.WaitRun(t.Context(), events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}}))(t)
	}
	stopped := run("patient")
	<-began
	must(c.Send(t.Context(), stopped.ThreadID, events.StopRun{Now: true}))(t)
	if x := wait(stopped); x.Status != events.ExecutionCompleted || !x.Stopped {
		t.Fatalf("%+v", x)
	}
	failed := run("broken")
	wait(failed)
	if line := lines.wait(t, "a run failed; its execution says why"); line.Execution != failed.Result.ExecutionID {
		t.Errorf("the first that failed is %+v", line)
	}
}
