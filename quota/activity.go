package quota

import (
	"sync"
	"time"
)

// Anonymous is the name of callers whose tenant is not known. They make no tenant share the
// process, and always share it themselves.
const Anonymous = ""

// Activity is the clock of a process: it records which tenants used it last. Everything that
// tenants use in a process shares one. It is safe for concurrent use.
type Activity struct {
	mu    sync.Mutex // guards what follows
	last  seen       // the tenant that was active last
	other seen       // the one before it
}

type seen struct {
	tenant string
	at     time.Time
}

// Note records that a tenant is active.
func (a *Activity) Note(tenant string, now time.Time) {
	if tenant == Anonymous {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last.tenant != tenant {
		a.other = a.last
	}
	a.last = seen{tenant, now}
}

// Others reports whether another tenant than this one was active after since.
func (a *Activity) Others(tenant string, since time.Time) bool {
	if tenant == Anonymous {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range []seen{a.last, a.other} {
		if s.tenant != Anonymous && s.tenant != tenant && s.at.After(since) {
			return true
		}
	}
	return false
}

// shared records that a tenant is active, and reports whether another one was within a time.
func (a *Activity) shared(tenant string, now time.Time, within time.Duration) bool {
	a.Note(tenant, now)
	return a.Others(tenant, now.Add(-within))
}
