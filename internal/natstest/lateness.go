package natstest

import (
	"sync"
	"testing"
	"time"
)

// Lateness is how late plain timers are on this machine, which may be loaded. A test subtracts it
// from a time that it measures.
type Lateness struct {
	mu   sync.Mutex
	seen []late
}

type late struct {
	at time.Time
	by time.Duration
}

// MeasureLateness measures until the test ends.
func MeasureLateness(t testing.TB) *Lateness {
	t.Helper()
	l := &Lateness{}
	const every = 5 * time.Millisecond
	go func() {
		for t.Context().Err() == nil {
			begun := time.Now()
			<-time.After(every)
			l.mu.Lock()
			l.seen = append(l.seen, late{begun, time.Since(begun) - every})
			l.mu.Unlock()
		}
	}()
	return l
}

// Most returns how late a timer was at most between two times.
func (l *Lateness) Most(from, to time.Time) (most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.seen {
		if one.at.Add(one.by).After(from) && one.at.Before(to) {
			most = max(most, one.by)
		}
	}
	return most
}
