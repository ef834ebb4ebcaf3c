package main_test

import (
	"strings"
	"testing"
)

// Sessions on the command line: one starts, and its end is recorded with what went wrong.
func TestSession_CommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	const id, session = "thrd_abc123def456789012345678901", "sess_0a1b"
	s.ok("state", "set", id, "name", "Ada", "--create")
	s.ok("session", "start", id, session, "--started-at", "2026-02-20T12:00:00Z")
	s.ok("session", "complete", id, session, "--error", "the model did not answer")
	shown := s.ok("tail", id, "--from", "start", "--follow=false", "--type", "session.*")
	for _, want := range []string{"session.started", "session.completed", "failed the model did not answer"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
}
