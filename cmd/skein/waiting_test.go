package main_test

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/transcript"
)

// waiting is a `skein thread react --wait` that has not ended.
type waiting struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  bytes.Buffer
	says *bufio.Scanner // what it waits for, a line each
}

// startReact begins to wait for the answer to a message.
func startReact(t testing.TB, s *server, thread, message string) *waiting {
	t.Helper()
	w := &waiting{t: t, cmd: exec.Command(binary, "thread", "react", thread, message, "--wait", "--timeout", "4m")}
	w.cmd.Env = environment(s.env...)
	w.cmd.Stdout = &w.out
	says, err := w.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	w.says = bufio.NewScanner(says)
	return w
}

// until reads what it waits for up to a line with that beginning, and returns the line.
func (w *waiting) until(beginning string) string {
	w.t.Helper()
	for w.says.Scan() {
		if line := w.says.Text(); strings.HasPrefix(line, beginning) {
			return line
		}
	}
	w.t.Fatalf("%v ended without the line %q: %q", w.cmd.Args, beginning, w.out.String())
	return ""
}

// answer waits for the end, and returns what was printed.
func (w *waiting) answer() string {
	w.t.Helper()
	for w.says.Scan() {
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("%v: %v", w.cmd.Args, err)
	}
	return strings.TrimSpace(w.out.String())
}

// A client that waits for an answer is told for what it waits: for a worker, behind others, for a person's
// approval, with the command that grants it, which works as it is printed.
func TestReact_SaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("cmd", "definition.apply", `{"definitions":[
		{"kind":"tool","definition":{"name":"refund","description":"Refunds.","type":"nats","auto":false}},
		{"kind":"agent","definition":{"name":"desk","type":"ai_human","reactor":"clerk","tools":["refund"]}}]}`)
	s.ok("thread", "create", "--key", "order", "--agent", "desk")
	first := startReact(t, s, "key:order", "Refund o-1.")
	first.until("waiting for a worker of clerk")
	second := startReact(t, s, "key:order", "And o-2.")
	second.until("queued, 1 ahead")

	nc := natstest.Dial(t, s.NATS)
	tool, err := runtime.DefineTool(runtime.ToolSpec{Name: "refund", Description: "Refunds."},
		func(context.Context, *runtime.ToolInput, struct{}) (string, error) { return "refunded", nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.ServeTool(nc, events.DefaultNames(), tool); err != nil {
		t.Fatal(err)
	}
	call := transcript.Text("I look.", runtime.ToolCall{CallID: "c1", Name: "refund", Arguments: events.JSON(`{}`)})
	if _, err := remote.ServeReactor(nc, events.DefaultNames(), "clerk", transcript.Fixed(call, transcript.Text("It is done."))); err != nil {
		t.Fatal(err)
	}

	line := first.until("waiting for approval of refund {}: skein ")
	if list := s.ok("approval", "list"); !strings.Contains(list, "refund") {
		t.Errorf("the list of approvals:\n%s", list)
	}
	_, command, _ := strings.Cut(line, ": skein ")
	s.ok(strings.Fields(command)...)
	if out := first.answer(); !strings.HasSuffix(out, "It is done.") {
		t.Errorf("the first answer: %q", out)
	}

	line = second.until("waiting for approval of refund {}: skein approval grant ")
	thread := strings.Fields(line)[len(strings.Fields(line))-2]
	s.ok("approval", "deny", thread, "c1", "--comment", "twice is enough")
	if out := second.answer(); !strings.HasSuffix(out, "It is done.") {
		t.Errorf("the second answer: %q", out)
	}
	items := s.ok("query", "item.list", `{"threadId":"key:order","type":"action_result"}`)
	if !strings.Contains(items, "refunded") || !strings.Contains(items, "twice is enough") {
		t.Errorf("the results of the calls: %s", items)
	}
	if list := s.ok("approval", "list"); strings.Contains(list, "refund") {
		t.Errorf("what waits for approval after all have been answered:\n%s", list)
	}
}

// --timeout bounds all that a command waits for, not only each of its requests.
func TestReact_TimeoutBoundsTheWait(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("cmd", "definition.apply", `{"definitions":[{"kind":"agent","definition":{"name":"desk","type":"ai_human","reactor":"clerk"}}]}`)
	s.ok("thread", "create", "--key", "order", "--agent", "desk")
	for _, how := range []string{"--wait", "--follow"} {
		o := run(t, s.env, "", "thread", "react", "key:order", "hello", how, "--timeout", "3s", "--policy", "enqueue") // no process answers
		if o.code != 1 || !strings.Contains(o.err, "skein: timeout: ") || !strings.Contains(o.err, "within 3s, and goes on") {
			t.Errorf("%s: exit %d: %s", how, o.code, o.err)
		}
	}
}

// An agent that nobody defined or serves is refused when a thread is created for it.
func TestThreadCreate_UnknownAgent(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	o := run(t, s.env, "", "thread", "create", "--agent", "nobody")
	if o.code == 0 || !strings.Contains(o.err, "not_found") || !strings.Contains(o.err, "nobody") {
		t.Errorf("exit %d: %s%s", o.code, o.out, o.err)
	}
}

// A run that failed is continued on the command line.
func TestRunRetry_OnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("cmd", "definition.apply", `{"definitions":[{"kind":"agent","definition":{"name":"hasty","type":"ai_human","reactor":"clerk","limits":{"workerWaitMs":0}}}]}`)
	s.ok("thread", "create", "--key", "order", "--agent", "hasty")
	o := run(t, s.env, "", "thread", "react", "key:order", "hello", "--wait")
	if o.code == 0 || !strings.Contains(o.err, "no process answers") {
		t.Fatalf("exit %d: %s", o.code, o.err)
	}
	nc := natstest.Dial(t, s.NATS)
	if _, err := remote.ServeReactor(nc, events.DefaultNames(), "clerk", transcript.Fixed(transcript.Text("It is done."))); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	out := s.ok("run", "retry", "key:order", "--wait")
	if !strings.Contains(out, "It is done.") {
		t.Errorf("the answer: %q", out)
	}
}
