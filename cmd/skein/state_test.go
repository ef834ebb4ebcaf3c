package main_test

import (
	"strings"
	"testing"
)

// The state of a thread on the command line: set, push, get, rm, destroy.
func TestState_CommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	const id = "thrd_abc123def456789012345678901"
	s.ok("state", "set", id, "name", "Ada", "--create")
	s.ok("state", "set", id, "cart", `{"items":2}`)
	for _, text := range []string{"one", "two", "three"} {
		s.ok("state", "push", id, "messages", text, "--max", "2")
	}
	if got := strings.TrimSpace(s.ok("state", "get", id)); got != `{"name":"Ada","cart":{"items":2},"messages":["two","three"]}` {
		t.Errorf("the state is %s", got)
	}
	s.ok("state", "rm", id, "cart")
	if got := strings.TrimSpace(s.ok("state", "get", id, "cart", "name")); got != `{"name":"Ada"}` {
		t.Errorf("two keys are %s", got)
	}
	s.ok("state", "destroy", id)
	var shown struct {
		Values map[string]any
		Life   int64
	}
	decode(t, s.ok("state", "get", id, "--json"), &shown)
	if len(shown.Values) != 0 || shown.Life != 0 {
		t.Errorf("after the end it is %+v", shown)
	}
}
