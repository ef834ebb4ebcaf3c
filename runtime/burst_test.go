package runtime

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog"
)

// A worker takes no run that it has no place for: one that lay with it would
// come to another worker meanwhile, and then be run by both. Runs that are too
// many for one worker begin at once on the next. EK-124.
func TestNoRunWaitsWithABusyWorker(t *testing.T) {
	w := newWorld(t)
	came, free := make(chan string, 100), make(chan struct{})
	w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		came <- in.ExecutionID
		select {
		case <-free:
		case <-ctx.Done():
		}
		return says("fine"), nil
	}))
	const places, runs = 8, 14
	arrive := func(n int, within time.Duration) {
		t.Helper()
		late := time.After(within)
		for range n {
			select {
			case <-came:
			case <-late:
				t.Fatalf("a run was not begun within %v", within)
			}
		}
	}
	w.work(Config{Places: places})
	threads := map[string]string{}
	for range runs {
		id, execution := w.begin("a", "hello")
		threads[execution] = id
	}
	arrive(places, 30*time.Second)
	w.work(Config{})
	arrive(runs-places, eventlog.RunWait-time.Second)
	close(free)
	for execution, id := range threads {
		all := w.finished(id, execution)
		if n := strings.Count(kinds(all), "run.claimed"); n != 1 {
			t.Errorf("%s was claimed %d times", execution, n)
		}
	}
}
