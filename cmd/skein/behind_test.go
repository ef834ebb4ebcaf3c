package main_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// A query that asks for what its read model does not show is told so, whether the client waits for
// a shorter time than the query does or for a longer one.
func TestQuery_ProjectionBehind(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	defer s.stop()
	s.ok("thread", "create")
	began := time.Now()
	var all sync.WaitGroup
	for _, timeout := range []string{"1s", "4900ms", "5100ms", "10s", "1m"} {
		all.Go(func() {
			o := run(t, s.env, "", "query", "thread.list", `{"minSeq":99999}`, "--timeout", timeout)
			if o.code != 1 || !strings.HasPrefix(o.err, "skein: projection_behind: ") || !strings.Contains(o.err, "not yet 99999") || strings.Count(o.err, "\n") != 1 {
				t.Errorf("within %s: exit %d: %q", timeout, o.code, o.err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
