package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// A worker that lost its run during a reactor's call releases it: the reactor's context
// ends, and the run's message is no longer kept alive, so that it is redelivered if its
// next worker dies too. EK-124.
func TestWorker_ReleasesLostRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const agent = "a"
	came, told := make(chan *StepInput, 10), make(chan struct{}, 10)
	free := make(chan struct{})
	w.agent(agent, ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		came <- in
		select {
		case <-ctx.Done():
			told <- struct{}{}
			return nil, ctx.Err()
		case <-free:
			return says("fine"), nil
		}
	}))
	w.work(Config{Name: "slow"})
	id, execution := w.begin(agent, "hello")
	<-came
	// Another worker takes the run over, and dies.
	w.claim(id, execution, "dead")
	select {
	case <-told:
	case <-time.After(testPatience):
		t.Fatal("the worker that lost the run works on")
	}
	begun := time.Now()
	select {
	case <-came:
	case <-time.After(testPatience):
		t.Fatal("the run is not handed over")
	}
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("it was handed over after %v", took)
	}
	close(free)
	all := w.finished(id, execution)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
}
