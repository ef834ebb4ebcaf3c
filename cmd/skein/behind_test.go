package main_test

import (
	"strings"
	"testing"
)

// A query that asks for what its read model does not show is told so, whether the client waits for
// a shorter time than the query does or for a longer one.
func TestQuery_ProjectionBehind(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	defer s.stop()
	s.ok("thread", "create")
	for timeout, tries := range map[string]int{"1s": 20, "5100ms": 10, "1m": 1} { // a machine may need more than is left of the short ones
		var o outcome
		for range tries {
			o = run(t, s.env, "", "query", "thread.list", `{"minSeq":99999}`, "--timeout", timeout)
			if !strings.HasPrefix(o.err, "skein: timeout: ") {
				break
			}
		}
		if o.code != 1 || !strings.HasPrefix(o.err, "skein: projection_behind: ") || !strings.Contains(o.err, "not yet 99999") || strings.Count(o.err, "\n") != 1 {
			t.Errorf("within %s: exit %d: %q", timeout, o.code, o.err)
		}
	}
}
