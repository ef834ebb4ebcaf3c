package edge

import (
	"fmt"
	"testing"
)

// A read of a thread waits for what was acknowledged to it, or more; never for less, however many
// threads were written to since. Reads without a thread's id wait for all of the tenant.
func TestMarks_OfThreads(t *testing.T) {
	const threads = 100
	m := &marks{most: 8}
	for i := range int64(threads) {
		m.note("acme", fmt.Sprint("T-", i), 10+i)
		m.note("other", "T-0", 1000+i)
	}
	for i := range int64(threads) {
		if got := m.ofThread("acme", fmt.Sprint("T-", i)); got < 10+i || got > 10+threads-1 {
			t.Errorf("thread %d: %d", i, got)
		}
	}
	if got := m.ofThread("acme", "T-99"); got != 109 {
		t.Errorf("the last thread: %d", got)
	}
	if floor := m.ofThread("acme", "T-nothing"); floor == 0 || floor >= 109-8 {
		t.Errorf("a thread that was not written to waits for %d", floor)
	}
	for _, ref := range []string{"", "key:support/42"} {
		if got := m.ofThread("acme", ref); got != 109 || m.of("acme") != 109 {
			t.Errorf("%q: %d", ref, got)
		}
	}
	if len(m.recent)+len(m.older) > 16 {
		t.Errorf("%d threads are kept", len(m.recent)+len(m.older))
	}
	m.note("acme", "T-99", 50) // an older reply comes late
	if got := m.ofThread("acme", "T-99"); got != 109 {
		t.Errorf("after an older reply: %d", got)
	}
}

// An upload in pieces is a write like any other.
func TestMarks_Uploads(t *testing.T) {
	m := &marks{}
	c := &Caller{Principal: Principal{Tenant: "acme"}, marks: m}
	c.Acknowledged("T-1", 7)
	if m.of("acme") != 7 || m.ofThread("acme", "T-1") != 7 || m.ofThread("acme", "T-2") != 0 {
		t.Errorf("after an upload: %d, %d", m.of("acme"), m.ofThread("acme", "T-1"))
	}
}
