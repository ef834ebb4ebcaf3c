package query

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
)

// directoryWish holds the filters of a list of threads.
type directoryWish struct {
	Status    events.ThreadStatus // empty: any
	Archived  *bool
	Agent     string
	User      string
	KeyPrefix string
	After     events.Time                  // in whole milliseconds, as in documents; 0: any
	Runs      func(*events.ThreadRun) bool // only threads with an active run for which this returns true; nil: all
	Before    uint64                       // only threads that changed before this sequence
}

// pickedThread is a thread that matches a directoryWish.
type pickedThread struct {
	ID  string
	Seq uint64
	Run string // the active execution; empty if there is none
}

// scanned is how many threads are examined before the lock is released.
const scanned = 8192

// Pick returns the threads of a tenant that match, newest change first, up to most.
func (d *directory) Pick(tenant string, w directoryWish, most int) []pickedThread {
	var picked []pickedThread
	for more := true; more && len(picked) < most; {
		picked, more = d.pickSome(picked, tenant, &w, most)
	}
	return picked
}

// pickSome examines a part of the threads, and moves the wish past them. It returns false if there
// are no more.
func (d *directory) pickSome(picked []pickedThread, tenant string, w *directoryWish, most int) ([]pickedThread, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	agent, agentKnown := d.names.Find(w.Agent)
	user, userKnown := d.names.Find(w.User)
	if t == nil || !agentKnown || !userKnown {
		return picked, false
	}
	status := statusNumber(w.Status)
	end := len(t.order)
	if w.Before > 0 {
		end, _ = slices.BinarySearchFunc(t.order, w.Before, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	}
	first := max(end-scanned, 0)
	for i := end - 1; i >= first && len(picked) < most; i-- {
		m := &t.list[t.order[i].member]
		w.Before = t.order[i].seq
		switch {
		case m.seq != t.order[i].seq:
		case w.Status != "" && m.status != status, w.Archived != nil && m.archived != *w.Archived:
		case w.Agent != "" && m.agent != agent, w.User != "" && m.user != user:
		case w.After != 0 && m.changed <= w.After, !strings.HasPrefix(m.key, w.KeyPrefix):
		default:
			run := t.runs[t.order[i].member]
			if w.Runs != nil && (run == nil || !w.Runs(run)) {
				continue
			}
			p := pickedThread{ID: unpackID(m.id), Seq: m.seq}
			if run != nil {
				p.Run = run.ExecutionID
			}
			picked = append(picked, p)
		}
	}
	return picked, first > 0
}

// Unchanged returns threads of a tenant that have not changed since until and are not cold. It
// begins after a place in the list, and returns the place to continue after; 0: there are no more.
func (d *directory) Unchanged(tenant string, since events.Time, after uint64, most int) (ids []string, next uint64) {
	return d.scan(tenant, after, most, func(m *listed) bool { return !m.cold && m.changed <= since })
}

// Cold is Unchanged for threads that are cold.
func (d *directory) Cold(tenant string, after uint64, most int) (ids []string, next uint64) {
	return d.scan(tenant, after, most, func(m *listed) bool { return m.cold })
}

// Marked is Unchanged for cold threads, without those for which the removal of documents has
// begun.
func (d *directory) Marked(tenant string, after uint64, most int) (ids []string, next uint64) {
	return d.scan(tenant, after, most, func(m *listed) bool { return m.cold && !m.bare })
}

// scan returns threads of a tenant that satisfy a condition, by their last change. It begins after
// a place in the list, and returns the place to continue after; 0: there are no more.
func (d *directory) scan(tenant string, after uint64, most int, wanted func(*listed) bool) (ids []string, next uint64) {
	for more := true; more; {
		ids, next, more = d.scanSome(ids, tenant, after, most, wanted)
		after = next
	}
	return ids, next
}

// scanSome examines a part of the threads, and reports whether there are more.
func (d *directory) scanSome(ids []string, tenant string, after uint64, most int, wanted func(*listed) bool) (_ []string, next uint64, more bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return ids, 0, false
	}
	first, _ := slices.BinarySearchFunc(t.order, after+1, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	for i := first; i < len(t.order); i++ {
		m := &t.list[t.order[i].member]
		if m.seq == t.order[i].seq && wanted(m) {
			ids = append(ids, unpackID(m.id))
		}
		if len(ids) == most {
			return ids, t.order[i].seq, false
		}
		if i-first == scanned {
			return ids, t.order[i].seq, true
		}
	}
	return ids, 0, false
}
