package main_test

import (
	"strings"
	"testing"
)

// The queue on the command line: listed in order, moved, edited, removed, and refused when the
// message does not wait.
func TestQueue_OnTheCommandLine(t *testing.T) { // AM-79 AM-115
	s := start(t, t.TempDir())
	s.ok("cmd", "definition.apply", `{"definitions":[{"kind":"agent","definition":{"name":"away","type":"ai_human","reactor":"away"}}]}`) // no process serves it
	s.ok("thread", "create", "--key", "q", "--agent", "away")
	for _, text := range []string{"zero", "one", "two", "three", "four", "five"} {
		s.ok("thread", "react", "key:q", text)
	}
	said := func() (ids []string, texts string) {
		t.Helper()
		for _, line := range strings.Split(strings.TrimSpace(s.ok("queue", "list", "key:q")), "\n") {
			fields := strings.Fields(line)
			ids, texts = append(ids, fields[0]), texts+fields[len(fields)-1]+" "
		}
		return ids, texts
	}
	ids, texts := said()
	if texts != "one two three four five " || !strings.HasPrefix(ids[0], "queued-") {
		t.Fatalf("%s wait, as %v", texts, ids)
	}
	fails := func(args ...string) string {
		t.Helper()
		o := run(t, s.env, "", args...)
		if o.code == 0 {
			t.Errorf("skein %s succeeded: %s", strings.Join(args, " "), o.out)
		}
		return o.err
	}
	if out := fails("thread", "react", "key:q", "six"); !strings.Contains(out, "queue_full") && !strings.Contains(out, "the maximum") {
		t.Errorf("a sixth: %s", out)
	}
	s.ok("queue", "move", "key:q", ids[4], "--before", ids[0])
	s.ok("queue", "edit", "key:q", ids[1], "second")
	s.ok("queue", "rm", "key:q", ids[2])
	if _, texts := said(); texts != "five one second four " {
		t.Errorf("%s wait", texts)
	}
	s.ok("queue", "move", "key:q", ids[4])
	if _, texts := said(); texts != "one second four five " {
		t.Errorf("%s wait", texts)
	}
	for _, args := range [][]string{{"rm", "key:q", ids[2]}, {"edit", "key:q", ids[2], "x"}, {"move", "key:q", ids[2]}} {
		if out := fails(append([]string{"queue"}, args...)...); !strings.Contains(out, ids[2]) {
			t.Errorf("%v: %s", args, out)
		}
	}
}
