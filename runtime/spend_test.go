package runtime

import (
	"context"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// purse is a Budget that counts once for each id.
type purse struct {
	mu    sync.Mutex
	spent map[string]int64
	used  error // what Check returns
}

func (p *purse) Check(context.Context, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// use sets what Check returns.
func (p *purse) use(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = err
}

func (p *purse) Spend(_ context.Context, tenant, id string, tokens int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spent == nil {
		p.spent = map[string]int64{}
	}
	p.spent[tenant+" "+id] = tokens
	return nil
}

// The usage of every call of a model is counted, even if its answer fails and is
// requested again: each under its own id.
func TestSpend_EveryAttemptIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	said := says("fine")
	said.Usage = &Usage{InputTokens: 7, OutputTokens: 3}
	w.agent("a", script(said))
	p := &purse{}
	attempts := 0
	w.work(Config{Budget: p, Hooks: Hooks{AfterStep: func(context.Context, ThreadState, *StepInput, *Reaction) error {
		if attempts++; attempts < 3 {
			return &RetryError{Err: context.DeadlineExceeded}
		}
		return nil
	}}})
	if status, text, _ := endOf(t, w.finished(w.begin("a", "hello"))); status != events.ExecutionCompleted {
		t.Fatalf("it ended %s (%s)", status, text)
	}
	total := int64(0)
	for _, n := range p.spent {
		total += n
	}
	if len(p.spent) != 3 || total != 30 {
		t.Errorf("of 3 attempts with 10 tokens each %v was counted", p.spent)
	}
}
