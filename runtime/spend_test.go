package runtime

import (
	"context"
	"maps"
	"slices"
	"strings"
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

// What a reactor reports never lowers what counts: neither the limit of its run nor the tenant's
// budget, nor what its output may still have.
func TestSpend_NegativeCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fine := func(context.Context, *ToolInput) (ToolResult, error) { return Done(events.JSON(`1`)), nil }
	first, second := says("one", call("c1", "f", `{}`)), says("two", call("c2", "f", `{}`))
	first.Usage = &Usage{InputTokens: 30, OutputTokens: -5, TotalTokens: -2000, LatencyMs: -1}
	second.Usage = &Usage{InputTokens: 1 << 62, OutputTokens: 1 << 62}
	w.agent("a", script(first, second, says("three")), tool{ToolSpec{Name: "f"}, fine}).Limits.Tokens = 100
	p := &purse{}
	w.work(Config{Budget: p})
	all := w.finished(w.begin("a", "hello"))
	if status, text, _ := endOf(t, all); status != events.ExecutionFailed || !strings.Contains(text, "100 tokens") {
		t.Errorf("it ended %s (%s)", status, text)
	}
	var counts []int64
	for _, e := range all {
		if d, ok := e.Data.(events.TraceRecorded); ok && d.Usage != nil {
			u := d.Usage
			counts = append(counts, u.InputTokens, u.OutputTokens, u.TotalTokens, u.LatencyMs)
		}
	}
	if want := []int64{30, 0, 0, 0, mostTokens, mostTokens, 0, 0}; !slices.Equal(counts, want) {
		t.Errorf("recorded %v, not %v", counts, want)
	}
	if want := []int64{30, mostTokens}; !slices.Equal(slices.Sorted(maps.Values(p.spent)), want) {
		t.Errorf("spent %v, not %v", p.spent, want)
	}
}
