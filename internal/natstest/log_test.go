package natstest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/internal/natstest"
)

// ended is a test that ends with a given outcome, and keeps what it logs.
type ended struct {
	testing.TB
	failed   bool
	cleanups []func()
	log      strings.Builder
}

func (e *ended) Failed() bool                 { return e.failed }
func (e *ended) Cleanup(f func())             { e.cleanups = append(e.cleanups, f) }
func (e *ended) Log(v ...any)                 { fmt.Fprintln(&e.log, v...) }
func (e *ended) Logf(format string, v ...any) { fmt.Fprintf(&e.log, format+"\n", v...) }
func (e *ended) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}

// The output of a test that fails has the server's warnings; that of another test has
// nothing.
func TestLog_IsShownWhereATestFails(t *testing.T) {
	for name, c := range map[string]struct {
		start func(testing.TB)
		want  string
	}{
		"a server":  {func(tb testing.TB) { natstest.Start(tb) }, "sync is off"},
		"a cluster": {func(tb testing.TB) { natstest.StartCluster(tb).Servers[0].Errorf("no %s", "luck") }, "n1 error: no luck"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, failed := range []bool{false, true} {
				e := &ended{TB: t, failed: failed}
				c.start(e)
				e.end()
				if got := e.log.String(); strings.Contains(got, c.want) != failed || !failed && got != "" {
					t.Errorf("failed: %v; it shows %q", failed, got)
				}
			}
		})
	}
}
