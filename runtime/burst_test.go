package runtime

import (
	"context"
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/quota"
)

// A worker takes no run for which it has no place: the run would be redelivered to
// another worker meanwhile, and executed by both. Runs beyond the places of one worker
// begin immediately on the next. EK-124.
func TestWorker_TakesNoRunWithoutPlace(t *testing.T) {
	t.Parallel()
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
	arrive := func(n int) {
		t.Helper()
		for range n {
			next(t, came)
		}
	}
	w.work(Config{Places: places, Shares: quota.NewPool("runs", quota.Places{Total: places, Tenant: -1}, nil)}) // all are of one tenant
	threads := map[string]string{}
	for range runs {
		id, execution := w.begin("a", "hello")
		threads[execution] = id
	}
	arrive(places)
	w.work(Config{})
	arrive(runs - places)
	queue, err := w.log.JetStream().Consumer(t.Context(), w.log.Config().Names.Stream(assets.RunStream), "skein-workers")
	if err != nil {
		t.Fatal(err)
	}
	if info := queue.CachedInfo(); info.NumAckPending != runs || info.NumRedelivered != 0 {
		t.Errorf("%d runs are in hand, and %d of them lay with the busy worker first", info.NumAckPending, info.NumRedelivered)
	}
	close(free)
	for execution, id := range threads {
		all := w.finished(id, execution)
		if n := strings.Count(kinds(all), "run.claimed"); n != 1 {
			t.Errorf("%s was claimed %d times", execution, n)
		}
	}
}
