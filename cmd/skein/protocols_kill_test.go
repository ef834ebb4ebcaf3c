package main_test

import (
	"fmt"
	"testing"

	"github.com/skein-threads/skein/internal/protocoltest"
)

// A stream whose server was killed in the middle of it is resumed over its protocol after a restart,
// and the request that began it is answered by the same run: the text of the worker that took over is
// there to its end.
func TestServe_ProtocolsAfterKill(t *testing.T) {
	store := t.TempDir()
	s, running, released := triage(t, store)
	const text = "think aloud, and wait for me"
	first := map[string]*protocoltest.Stream{}
	for n, p := range protocoltest.All() {
		id := fmt.Sprint("order-", n)
		if p.Made {
			s.ok("thread", "create", "--key", id)
		}
		run := protocoltest.Open(t, protocoltest.Server{URL: s.HTTP}, p.Begin(id, "triage", text))
		if !p.Whole {
			run.ReadTo(p, "Hel")
		}
		<-running
		first[p.Name] = run
	}
	untilWritten(t, store, `"Hel"`, len(first))
	s.kill()
	close(released)
	again := start(t, store, "--tenant", "acme")
	for n, p := range protocoltest.All() {
		t.Run(p.Name, func(t *testing.T) {
			id := fmt.Sprint("order-", n)
			run := first[p.Name].ReadAll()
			if run.Contains(p.Completed) {
				t.Errorf("the stream that was cut off ended as a run that has completed:\n%s", run)
			}
			repeated := protocoltest.Open(t, protocoltest.Server{URL: again.HTTP}, p.Begin(id, "triage", text)).ReadAll()
			if said := p.Text(repeated.Frames); said != want(p) || !p.Whole && repeated.Execution() != run.Execution() || !repeated.Contains(p.Completed) {
				t.Errorf("repeated: %d, %q of %s, and not of %s, in\n%s", repeated.Status, said, repeated.Execution(), run.Execution(), repeated)
			}
			if !p.Replays { // its stream exists while the run does
				return
			}
			resumed := protocoltest.Open(t, protocoltest.Server{URL: again.HTTP}, p.Resume(id, "triage", text, run)).ReadAll()
			said := p.Text(resumed.Frames)
			if p.Continues {
				said = p.Text(run.Frames) + said
			}
			if said != want(p) || !resumed.Contains(p.Completed) {
				t.Errorf("resumed: %d, %q in\n%s", resumed.Status, said, resumed)
			}
		})
	}
	again.stop()
}

// want is the text that is streamed of an answer whose first worker was killed after "Hel". Some clients
// are shown what each worker wrote.
func want(p protocoltest.Protocol) string {
	if p.Attempts {
		return "HelHello."
	}
	return "Hello."
}
