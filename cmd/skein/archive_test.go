package main_test

import (
	"strings"
	"testing"
)

// Archiving on the command line, and how other commands show the archived threads.
func TestArchive(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var old, other reply
	decode(t, s.ok("thread", "create", "--key", "old", "--json"), &old)
	decode(t, s.ok("thread", "create", "--key", "other", "--json"), &other)
	s.ok("message", "add", "key:old", strings.Repeat("where is it? ", 100))
	s.ok("thread", "list") // wait until the read models show everything
	history := s.ok("tail", "--from", "start", "--follow=false", "--json")
	type result struct {
		Outcome, Thread string
		Commits         int64
	}
	if got := decodeLines[result](t, s.ok("archive", "--idle", "0s", "--dry-run", "--json")); len(got) != 2 || got[0].Outcome != "due" {
		t.Errorf("a dry run: %+v", got)
	}
	if out := s.ok("archive"); strings.Contains(out, "T-") {
		t.Errorf("young threads: %s", out)
	}
	if got := decodeLines[result](t, s.ok("archive", "key:old", "--idle", "0s", "--json")); len(got) != 1 || got[0].Outcome != "archived" || got[0].Commits != 2 {
		t.Errorf("%+v", got)
	}
	if now := s.ok("tail", "--from", "start", "--follow=false", "--json"); !strings.HasPrefix(now, history) || !strings.Contains(now, "lifecycle.archived") {
		t.Errorf("the history was\n%s\nand is\n%s", history, now)
	}
	if out := s.ok("message", "list", "key:old"); !strings.Contains(out, "where is it?") {
		t.Errorf("messages: %s", out)
	}
	if out := s.ok("size", "key:old"); !strings.Contains(out, "ARCHIVE") {
		t.Errorf("size: %s", out)
	}
	s.ok("message", "add", "key:old", "here")
	s.ok("replay", "timeline")
	s.ok("replay", "--verify")
	s.ok("audit", "verify")
	if out := s.ok("audit", "trail", "key:old"); !strings.Contains(out, "lifecycle.archived") {
		t.Errorf("the trail: %s", out)
	}
	for args, code := range map[string]int{"archive nonsense": 1, "archive --idle -1h": 2, "archive --idle 9x": 2, "archive T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162": 1} {
		if o := run(t, s.env, "", strings.Fields(args)...); o.code != code {
			t.Errorf("%s: %+v", args, o)
		}
	}
}

// Freezing on the command line: the thread shows what it showed, and verification finds nothing.
func TestThreadFreeze(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var old, other reply
	decode(t, s.ok("thread", "create", "--key", "old", "--json"), &old)
	decode(t, s.ok("thread", "create", "--key", "other", "--json"), &other)
	s.ok("message", "add", "key:old", "where is it?")
	s.ok("thread", "list") // wait until the read models show everything
	before := s.ok("message", "list", "key:old")
	type result struct{ Outcome, Thread string }
	freeze := func(want string, args ...string) {
		t.Helper()
		got := decodeLines[result](t, s.ok(append([]string{"thread", "freeze", "--json"}, args...)...))
		var outcomes []string
		for _, one := range got {
			outcomes = append(outcomes, one.Outcome)
		}
		if strings.Join(outcomes, " ") != want {
			t.Errorf("%v: %+v", args, got)
		}
	}
	freeze("due due", "--idle", "0s", "--dry-run")
	freeze("")
	freeze("young", "key:old")
	freeze("frozen", "key:old", "--idle", "0s")
	freeze("already", "key:old", "--idle", "0s")
	freeze("frozen", "--idle", "0s")
	if now := s.ok("message", "list", "key:old"); now != before {
		t.Errorf("the messages were\n%s\nand are\n%s", before, now)
	}
	s.ok("replay", "--verify")
	s.ok("audit", "verify")
	s.ok("message", "add", "key:old", "here")
	s.ok("replay", "--verify")
	for args, code := range map[string]int{"thread freeze nonsense": 1, "thread freeze --idle -1h": 2, "thread freeze T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162": 1} {
		if o := run(t, s.env, "", strings.Fields(args)...); o.code != code {
			t.Errorf("%s: %+v", args, o)
		}
	}
}
