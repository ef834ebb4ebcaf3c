package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// Check checks something outside the log that the log refers to, such as the contents of
// files.
type Check interface {
	// Thread starts the check of a thread, or of another aggregate. Several goroutines call
	// it: threads are checked several at a time.
	Thread(tenant, thread string) ThreadCheck
}

// ThreadCheck checks one thread. One goroutine uses it.
type ThreadCheck interface {
	// Commit is called with each commit of the thread that can be decoded, in order.
	Commit(c *events.Commit)
	// End returns the findings, after the thread's last commit. An error means that the check
	// could not be done.
	End(ctx context.Context) ([]Finding, error)
}

// judge checks the commits of one aggregate after the other. It needs no server.
type judge struct {
	schema  *schema.Validator
	checker *events.TimelineChecker
	find    func(Finding)
	gone    func(c *events.Commit) bool // its thread was purged, and nothing precedes it any more

	at      aggregate
	ledger  *thread.Ledger
	unsure  bool // something before is missing, so it is unknown what may follow
	ties    []tied
	twins   map[twin]Finding   // relationships that it records, with the finding if the other thread does not
	origin  string             // of a fork: its parent
	sources map[string]Finding // items of the parent that it has copied, with the finding if the parent had none such
	over    bool               // the thread is deleted
	ahead   bool               // the time of an event is after the log stored it
	buf     []byte
	chain   string // of the previous commit
	version int64  // after the previous commit; -1 if it cannot be decoded
	erased  int64  // versions that a purge has erased
	lost    bool   // what is archived before the next commit cannot be read
	key     string // held by the thread, or named by the key's claim
	holder  string // of the key, according to its claim
	keySeq  uint64 // of the commit with that claim
	claimed bool   // the last event is that claim
	created string // the key with which the thread was created
	events  int
}

func newJudge(validator *schema.Validator, find func(Finding)) *judge {
	return &judge{schema: validator, checker: events.NewTimelineChecker(), find: find, gone: func(*events.Commit) bool { return false }}
}

// begin starts another aggregate.
func (j *judge) begin(a aggregate) {
	j.checker.Forget(j.at.tenant, j.at.id)
	*j = judge{schema: j.schema, checker: j.checker, find: j.find, gone: j.gone, at: a, ledger: &thread.Ledger{}, buf: j.buf}
}

// place returns a finding at a commit.
func (j *judge) place(kind Kind, seq uint64, detail string) Finding {
	return Finding{Kind: kind, Tenant: j.at.tenant, Thread: j.at.id, Seq: seq, Detail: detail}
}

// broken handles a commit that cannot be decoded. The commits after it are checked from what
// they claim.
func (j *judge) broken(seq uint64, chain string, err error) {
	j.find(j.place(KindBroken, seq, err.Error()))
	j.chain, j.version, j.unsure = chain, -1, true
}

// commit checks the next commit.
func (j *judge) commit(c *events.Commit) {
	lost := j.lost
	j.lost = false
	switch {
	case j.follows(c):
	case lost:
		j.unread(c)
	case j.followsPurge(c):
		j.erased = c.First()
		j.checker.Erased(j.at.tenant, j.at.id)
	default:
		j.link(c)
	}
	faults := j.conditions(c)
	j.layout(c)
	for i := range c.Events {
		j.event(c, &c.Events[i], faults[&c.Events[i]])
	}
	j.chain, j.version = c.Chain, c.Version
}

// conditions checks a commit against the preconditions of its events, and returns the faults.
// If something before the commit is missing, they are unknown, and the missing commits are
// reported instead.
func (j *judge) conditions(c *events.Commit) map[*events.Event]error {
	if j.unsure = j.unsure || j.erased > 0 || c.First() != j.version; j.unsure {
		return nil
	}
	var faults map[*events.Event]error
	j.ledger.Commit(c, func(e *events.Event, err error) {
		if faults == nil {
			faults = map[*events.Event]error{}
		}
		if faults[e] == nil {
			faults[e] = err
		}
	})
	return faults
}

// layout checks that a commit is in the layout that Skein writes. No reader would see other
// bytes in it.
func (j *judge) layout(c *events.Commit) {
	size := len("[]") + len(c.Events) - 1
	for i := range c.Events {
		e := &c.Events[i]
		size += len(e.Stored())
		if row, ok := events.Lookup(e.Type); ok && row.Schema() != e.Schema() {
			continue // of an older version, in that version's layout
		}
		var err error
		if j.buf, err = e.AppendStored(j.buf[:0]); err == nil && bytes.Equal(j.buf, e.Stored()) {
			continue
		}
		place := j.place(KindLayout, c.Seq, "it is not written as Skein writes it: it holds fields that are not read, or in another order or form")
		place.Event = e.ID
		j.find(place)
	}
	if size != len(c.Body) {
		j.find(j.place(KindLayout, c.Seq, "it is not written as Skein writes it: something stands between its events"))
	}
}

// unread handles a record whose archive cannot be read. Only the chain that it names can link
// it to its archive.
func (j *judge) unread(c *events.Commit) {
	d, ok := eventlog.Record(c)
	j.checker.Unread(j.at.tenant, j.at.id, c.First())
	j.erased, j.unsure = max(j.erased, c.First()), true
	if ok && events.Chain(d.Chain, c.Body) == c.Chain {
		j.chain, j.version = d.Chain, c.First()
		return
	}
	j.link(c)
}

// tombstone reports whether a commit is all that a purge leaves of a thread.
func tombstone(c *events.Commit) bool {
	d, ok := c.Events[len(c.Events)-1].Data.(events.LifecycleDeleted)
	return ok && d.Purge && c.First() > 0
}

// followsPurge reports whether a purge has erased what was before a commit.
func (j *judge) followsPurge(c *events.Commit) bool {
	return j.chain == "" && tombstone(c) || j.gone(c)
}

// follows reports whether a commit directly follows the previous one.
func (j *judge) follows(c *events.Commit) bool {
	return events.Chain(j.chain, c.Body) == c.Chain && (j.version < 0 || c.First() == j.version)
}

// link reports a commit that does not directly follow the previous one.
func (j *judge) link(c *events.Commit) {
	if events.Chain(j.chain, c.Body) != c.Chain {
		j.find(j.place(KindChain, c.Seq, "its chain is not that of its bytes and of the commit before it: one of them was altered, dropped or moved"))
	}
	if j.version >= 0 && c.First() != j.version {
		j.find(j.place(KindVersion, c.Seq, fmt.Sprintf("it starts after version %d, but the previous commit ends at %d", c.First(), j.version)))
	}
}

// event checks an event by itself, and against the ones before it.
func (j *judge) event(c *events.Commit, e *events.Event, fault error) {
	j.events++
	found := j.find
	defer func() { j.find = found }()
	j.find = func(f Finding) { // one fault is reported once
		fault = nil
		found(f)
	}
	place := j.place("", c.Seq, "")
	place.Event = e.ID
	if u, ok := e.Data.(events.Unknown); ok {
		place.Kind, place.Detail = KindUnknown, fmt.Sprintf("%s: %s %s", u.Reason, e.Type, u.Schema)
		j.find(place)
	} else if err := j.schema.Event(e); err != nil {
		place.Kind, place.Detail = KindSchema, err.Error()
		j.find(place)
	}
	if err := j.checker.Check(e); err != nil {
		place.Kind, place.Detail = kindOf(err), err.Error()
		j.find(place)
	}
	j.claimed = false
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		if d.Key != nil && j.events == 1 {
			j.created = *d.Key
		}
		j.origin = d.OriginThreadID
	case events.ItemCreated:
		if d.SourceItemID != "" {
			j.copies(place, d.SourceItemID)
		}
	case events.LifecycleArchived:
		if d.Chain != j.chain && j.erased == 0 { // else what it names is erased
			place.Kind, place.Detail = KindArchive, "the record names another chain than that of the commit before it"
			j.find(place)
		}
	case events.KeyClaimed:
		j.key, j.holder, j.keySeq, j.claimed = d.Key, d.ThreadID, c.Seq, true
		if !events.IsThread(j.at.id) && events.KeyAggregate(d.Key) != j.at.id {
			place.Kind, place.Detail = KindLink, "the key that it claims belongs to another subject"
			j.find(place)
		}
	case events.KeyReleased:
		j.key, j.holder = "", ""
	case events.SubthreadAdded:
		j.tie(c, e, d.ThreadID, "for it works")
	case events.RelationshipAdded:
		j.tie(c, e, d.ThreadID, "it is tied to")
		if len(j.twins) < mostTies {
			if j.twins == nil {
				j.twins = map[twin]Finding{}
			}
			place.Kind, place.Detail = KindLink, fmt.Sprintf("it records a relationship (%.40s, as %.40s) to thread %.80s, which records no match", d.Type, d.Role, d.ThreadID)
			j.twins[twin{d.ThreadID, d.Type, d.Role}] = place
		}
	case events.RelationshipRemoved:
		delete(j.twins, twin{d.ThreadID, d.Type, d.Role})
	case events.LifecycleDeleted:
		j.over = true
	case events.RunRequested:
		if d.Parent != nil {
			j.tie(c, e, d.Parent.ThreadID, "it runs for a call of")
		}
	}
	if fault != nil {
		place.Kind, place.Detail = KindCondition, fault.Error()
		j.find(place)
	}
}

// tied is another thread that an event names.
type tied struct {
	place  Finding
	thread string
}

// mostTies bounds how many other threads of one thread are looked up.
const mostTies = 10_000

// tie records a thread that must exist.
func (j *judge) tie(c *events.Commit, e *events.Event, thread, how string) {
	if len(j.ties) >= mostTies {
		return
	}
	place := j.place(KindLink, c.Seq, fmt.Sprintf("%s thread %.80s, which is not in the log", how, thread))
	place.Event = e.ID
	j.ties = append(j.ties, tied{place, thread})
}

// kindOf returns the kind of a fault of the checker.
func kindOf(err error) Kind {
	var move *events.TransitionError
	if errors.As(err, &move) {
		return KindTransition
	}
	return KindLink
}
