package query

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
)

// directories lists the threads of each tenant by their last change, compactly:
// what filters look at, and no documents. It costs about 160 bytes a thread with a
// key of 15 letters. It is safe for concurrent use.
type directories struct {
	progress *buckets.Progress // up to which the directories show every thread

	mu      sync.RWMutex // guards what follows
	tenants map[string]*directory
	ready   chan struct{} // closed when all that was there at the beginning has been read
	names   *interned

	claims    []claim // a ring, once it is full
	nextClaim int     // the oldest one then
}

func newDirectories() *directories {
	return &directories{progress: buckets.NewProgress(), tenants: map[string]*directory{}, ready: make(chan struct{}), names: newInterned()}
}

// directory lists the threads of one tenant.
type directory struct {
	byID    map[string]uint32 // packed id to its place in members
	members []listed
	free    []uint32
	order   []change // by sequence; one is stale if its thread has changed since
	stale   int
	runs    map[uint32]*events.ThreadRun // active ones, by the place of their thread in members
}

// listed is what a directory knows of a thread.
type listed struct {
	id       string // packed
	key      string
	seq      uint64
	changed  events.Time
	agent    uint32 // interned
	user     uint32
	status   uint8
	archived bool
	cold     bool // its documents may be absent
	bare     bool // they are certainly being removed, or were
}

// change is a place in the order: a thread changed at a sequence.
type change struct {
	seq    uint64
	member uint32
}

// interned maps texts that occur again and again to small numbers.
type interned struct {
	numbers map[string]uint32
	texts   []string
}

func newInterned() *interned {
	return &interned{numbers: map[string]uint32{"": 0}, texts: []string{""}}
}

func (n *interned) number(s string) uint32 {
	i, ok := n.numbers[s]
	if !ok {
		i = uint32(len(n.texts))
		s = strings.Clone(s)
		n.numbers[s] = i
		n.texts = append(n.texts, s)
	}
	return i
}

// packID returns a thread's id in few bytes: 16 for T- and a UUID.
func packID(id string) string {
	if len(id) == 38 && strings.HasPrefix(id, "T-") {
		if u, err := uuid.Parse(id[2:]); err == nil && u.String() == id[2:] {
			return string(u[:])
		}
	}
	return strings.Clone(id)
}

func unpackID(packed string) string {
	if len(packed) != 16 {
		return packed
	}
	u, err := uuid.FromBytes([]byte(packed))
	if err != nil {
		return packed
	}
	return "T-" + u.String()
}

func statusNumber(s events.ThreadStatus) uint8 {
	return uint8(slices.Index(events.ThreadMachine().States, s))
}

// update is a change of the bucket of threads: a document, the removal of a thread if
// there is none, or, if seq is not 0, the progress of the bucket.
type update struct {
	tenant, id string
	doc        *brief
	seq        uint64
	at         time.Time // when the bucket stored it
}

// has reports whether a thread is listed.
func (d *directories) has(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	_, ok := t.byID[packID(id)]
	return ok
}

// warm reports whether a thread is listed as one whose documents are all there. They are removed
// only some minutes after it is listed as cold.
func (d *directories) warm(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	at, ok := t.byID[packID(id)]
	return ok && !t.members[at].cold
}

// in returns the threads of all tenants that are in a state.
func (d *directories) in(status events.ThreadStatus) [][2]string {
	want := statusNumber(status)
	d.mu.RLock()
	defer d.mu.RUnlock()
	var out [][2]string
	for tenant, dir := range d.tenants {
		for packed, at := range dir.byID {
			if dir.members[at].status == want {
				out = append(out, [2]string{tenant, unpackID(packed)})
			}
		}
	}
	return out
}

// apply applies changes in their order.
func (d *directories) apply(list []update) {
	seq := uint64(0)
	d.mu.Lock()
	for _, u := range list {
		switch {
		case u.seq != 0:
			seq = u.seq
		case u.doc != nil:
			d.put(u.tenant, u.doc)
			if u.doc.mark.Bare {
				d.claimed(claim{strings.Clone(u.tenant), strings.Clone(u.id), u.at})
			}
		default:
			d.remove(u.tenant, u.id)
		}
	}
	d.mu.Unlock()
	d.progress.Raise(seq)
}

// put applies a thread's document. The caller holds the lock.
func (d *directories) put(tenant string, doc *brief) {
	t := d.tenants[tenant]
	if t == nil {
		t = &directory{byID: map[string]uint32{}, runs: map[uint32]*events.ThreadRun{}}
		d.tenants[strings.Clone(tenant)] = t
	}
	m := listed{
		key: strings.Clone(doc.key()), seq: cmp.Or(doc.ListedSeq, doc.Seq), changed: doc.changed(), status: statusNumber(doc.Status), archived: doc.Archived,
		cold: doc.mark.Cold, bare: doc.mark.Bare,
		agent: d.names.number(doc.AgentID), user: d.names.number(doc.UserID),
	}
	id := packID(doc.ID)
	t.put(id, m)
	if at := t.byID[id]; doc.Run != nil {
		t.runs[at] = doc.Run
	} else {
		delete(t.runs, at)
	}
}

func (t *directory) put(id string, m listed) {
	at, known := t.byID[id]
	switch {
	case known:
		m.id = t.members[at].id
		if t.members[at].key == m.key {
			m.key = t.members[at].key
		}
		if t.members[at].seq == m.seq {
			t.members[at] = m
			return
		}
		t.stale++
	case len(t.free) > 0:
		at, t.free = t.free[len(t.free)-1], t.free[:len(t.free)-1]
	default:
		at = uint32(len(t.members))
		t.members = append(t.members, listed{})
	}
	if !known {
		m.id = id
		t.byID[id] = at
	}
	t.members[at] = m
	c := change{m.seq, at}
	i := len(t.order)
	for i > 0 && t.order[i-1].seq > m.seq && len(t.order)-i < 64 {
		i-- // nearly always the last; those of one batch arrive in any order
	}
	if i > 0 && t.order[i-1].seq > m.seq {
		i, _ = slices.BinarySearchFunc(t.order, m.seq, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	}
	t.order = slices.Insert(t.order, i, c)
	t.compact()
}

// remove removes a thread. The caller holds the lock.
func (d *directories) remove(tenant, id string) {
	t := d.tenants[tenant]
	if t == nil {
		return
	}
	packed := packID(id)
	if at, ok := t.byID[packed]; ok {
		delete(t.byID, packed)
		delete(t.runs, at)
		t.members[at] = listed{}
		t.free = append(t.free, at)
		t.stale++
		t.compact()
	}
}

// compact drops stale changes from the order when they are more than half of it.
func (t *directory) compact() {
	if t.stale < 1024 || t.stale < len(t.order)/2 {
		return
	}
	t.order = slices.Clip(slices.DeleteFunc(t.order, func(c change) bool { return t.members[c.member].seq != c.seq }))
	t.stale = 0
}

// wish holds the filters of a list of threads.
type wish struct {
	status    int // -1: any
	archived  *bool
	agent     string
	user      string
	keyPrefix string
	after     events.Time                  // in whole milliseconds, as documents have it; 0: any
	runs      func(*events.ThreadRun) bool // only those with an active run of which this holds; nil: all
	before    uint64                       // only what changed before this sequence
}

// pickedThread is a thread that a list shows.
type pickedThread struct {
	id  string
	seq uint64
	run string // the active execution; empty if there is none
}

// scanned is how many threads are examined under one lock.
const scanned = 8192

// pick returns the threads that match, newest change first, up to most.
func (d *directories) pick(tenant string, w wish, most int) []pickedThread {
	var picked []pickedThread
	for more := true; more && len(picked) < most; {
		picked, more = d.pickSome(picked, tenant, &w, most)
	}
	return picked
}

// pickSome looks at a part of the threads, and moves the wish past it. It returns
// false if there are no more.
func (d *directories) pickSome(picked []pickedThread, tenant string, w *wish, most int) ([]pickedThread, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	agent, agentKnown := d.names.numbers[w.agent]
	user, userKnown := d.names.numbers[w.user]
	if t == nil || !agentKnown || !userKnown {
		return picked, false
	}
	end := len(t.order)
	if w.before > 0 {
		end, _ = slices.BinarySearchFunc(t.order, w.before, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	}
	first := max(end-scanned, 0)
	for i := end - 1; i >= first && len(picked) < most; i-- {
		m := &t.members[t.order[i].member]
		w.before = t.order[i].seq
		switch {
		case m.seq != t.order[i].seq:
		case w.status >= 0 && int(m.status) != w.status, w.archived != nil && m.archived != *w.archived:
		case w.agent != "" && m.agent != agent, w.user != "" && m.user != user:
		case w.after != 0 && m.changed <= w.after, !strings.HasPrefix(m.key, w.keyPrefix):
		default:
			run := t.runs[t.order[i].member]
			if w.runs != nil && (run == nil || !w.runs(run)) {
				continue
			}
			p := pickedThread{id: unpackID(m.id), seq: m.seq}
			if run != nil {
				p.run = run.ExecutionID
			}
			picked = append(picked, p)
		}
	}
	return picked, first > 0
}

// scan returns threads of a tenant of which a condition holds, by their last change, those
// listed after a place, and the place after which to go on; 0: there are no more.
func (d *directories) scan(tenant string, after uint64, most int, wanted func(*listed) bool) (ids []string, next uint64) {
	for more := true; more; {
		ids, next, more = d.scanSome(ids, tenant, after, most, wanted)
		after = next
	}
	return ids, next
}

// scanSome looks at a part of the threads, and reports whether to go on after it.
func (d *directories) scanSome(ids []string, tenant string, after uint64, most int, wanted func(*listed) bool) (_ []string, next uint64, more bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return ids, 0, false
	}
	first, _ := slices.BinarySearchFunc(t.order, after+1, func(c change, seq uint64) int { return cmp.Compare(c.seq, seq) })
	for i := first; i < len(t.order); i++ {
		m := &t.members[t.order[i].member]
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

// agents returns the agents that the threads of a tenant name, in no order.
func (d *directories) agents(tenant string) []string {
	seen := map[uint32]bool{0: true}
	var names []string
	d.scan(tenant, 0, 1, func(m *listed) bool {
		if !seen[m.agent] {
			seen[m.agent] = true
			names = append(names, d.names.texts[m.agent])
		}
		return false
	})
	return names
}

// waiting counts the runs of all tenants that wait, by what they wait for. One that
// waits for several kinds counts for each of them.
func (d *directories) waiting() map[events.RunWaitKind]int {
	counts := map[events.RunWaitKind]int{}
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, t := range d.tenants {
		for _, run := range t.runs {
			for i, w := range run.WaitingFor {
				if !slices.ContainsFunc(run.WaitingFor[:i], func(before events.RunWait) bool { return before.Kind == w.Kind }) {
					counts[w.Kind]++
				}
			}
		}
	}
	return counts
}

// waitsFor reports whether a run waits for something of a kind.
func waitsFor(kind events.RunWaitKind) func(*events.ThreadRun) bool {
	return func(r *events.ThreadRun) bool {
		return slices.ContainsFunc(r.WaitingFor, func(w events.RunWait) bool { return w.Kind == kind })
	}
}

// parked returns the runs that wait for a reactor or a tool, held by no worker.
func (d *directories) parked() []ParkedRun {
	var out []ParkedRun
	d.mu.RLock()
	defer d.mu.RUnlock()
	for tenant, t := range d.tenants {
		for at, run := range t.runs {
			if !run.Parked {
				continue
			}
			p := ParkedRun{Tenant: tenant, Thread: unpackID(t.members[at].id), Execution: run.ExecutionID}
			for _, w := range run.WaitingFor {
				if w.Kind == events.RunWaitsWorker {
					p.Workers = append(p.Workers, events.WaitFor{Kind: w.Worker, Name: w.Name})
				}
			}
			if p.Until, _ = events.ParseTime(run.Until); len(p.Workers) > 0 { // without a time only a worker resumes it
				out = append(out, p)
			}
		}
	}
	return out
}
