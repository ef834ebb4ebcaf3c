package queues_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// due receives the next due message.
func due(t *testing.T, q *queues.DueReceiver) *queues.Due {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	m, err := q.Next(ctx, func() int { return 10 })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// receiver returns a receiver of due messages, which is closed when the test ends.
func receiver(t *testing.T, l *eventlog.Log, wait time.Duration) *queues.DueReceiver {
	t.Helper()
	q, err := queues.TimersOf(l).Receive(t.Context(), wait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

// A timer fires its lead before its time, once, with its data; what is due within the
// lead is delivered at once. A message that is not acknowledged is redelivered.
func TestTimersFire(t *testing.T) {
	l := logtest.Start(t)
	c := receiver(t, l, 300*time.Millisecond)
	began := time.Now()
	for id, in := range map[string]time.Duration{"soon": queues.TimerLead / 2, "later": 2 * queues.TimerLead, "past": -time.Hour} {
		if err := queues.TimersOf(l).Put(t.Context(), queues.Timer{Tenant: "acme", Thread: "T-1", ID: id, At: began.Add(in), Data: []byte("of " + id)}); err != nil {
			t.Fatal(err)
		}
	}
	names, err := queues.TimersOf(l).Names(t.Context())
	if fmt.Sprint(names) != "map[acme.T-1.later:{} acme.T-1.past:{} acme.T-1.soon:{}]" || err != nil {
		t.Errorf("timers %v, %v", names, err)
	}
	for _, want := range []map[string]bool{{"soon": true, "past": true}, {"soon": true, "past": true}, {"later": true}} {
		m := due(t, c)
		tenant, thread, id := m.Tenant, m.Thread, m.ID
		if tenant != "acme" || thread != "T-1" || !want[id] || string(m.Data) != "of "+id {
			t.Errorf("due is %s.%s.%s: %s", tenant, thread, id, m.Data)
		}
		if took := time.Since(began); id == "later" && (took < queues.TimerLead || took > 2*queues.TimerLead+30*time.Second) {
			t.Errorf("it fired after %v", took)
		}
		if waits, err := queues.TimersOf(l).Waits(t.Context(), m.Seq, tenant, thread, id); !waits || err != nil {
			t.Errorf("before it is acknowledged: %v, %v", waits, err)
		}
		if waits, err := queues.TimersOf(l).Waits(t.Context(), m.Seq, tenant, thread, "another"); waits || err != nil {
			t.Errorf("under another name: %v, %v", waits, err)
		}
		if id == "later" { // it is not acknowledged, and redelivered
			if m = due(t, c); string(m.Data) != "of later" {
				t.Errorf("then came %s", m.Data)
			}
		}
		if err := m.Done(); err != nil {
			t.Fatal(err)
		}
		natstest.Eventually(t, "it waits no more", func() bool {
			waits, err := queues.TimersOf(l).Waits(t.Context(), m.Seq, tenant, thread, id)
			return !waits && err == nil
		})
	}
	if names, err := queues.TimersOf(l).Names(t.Context()); len(names) != 0 || err != nil {
		t.Errorf("left are %v, %v", names, err)
	}
}

// A timer that is set again replaces the one before it; a dropped one does not fire.
func TestTimersAreReplacedAndDropped(t *testing.T) {
	l := logtest.Start(t)
	put := func(thread, id, data string, in time.Duration) {
		t.Helper()
		if err := queues.TimersOf(l).Put(t.Context(), queues.Timer{Tenant: "acme", Thread: thread, ID: id, At: time.Now().Add(in), Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	put("T-1", "a", "first", time.Hour)
	put("T-1", "a", "second", queues.TimerLead+300*time.Millisecond)
	put("T-1", "b", "b", queues.TimerLead+200*time.Millisecond)
	put("T-2", "a", "a of 2", queues.TimerLead+200*time.Millisecond)
	put("T-2", "b", "b of 2", queues.TimerLead+200*time.Millisecond)
	if err := errors.Join(queues.TimersOf(l).Drop(t.Context(), "acme", "T-1", "b"), queues.TimersOf(l).Drop(t.Context(), "acme", "T-2", "*")); err != nil {
		t.Fatal(err)
	}
	if m := due(t, receiver(t, l, time.Minute)); string(m.Data) != "second" {
		t.Errorf("due is %s", m.Data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	if names, err := queues.TimersOf(l).Names(ctx); len(names) != 1 || err != nil {
		t.Errorf("timers %v, %v", names, err)
	}
}
