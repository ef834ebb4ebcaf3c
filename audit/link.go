package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// suspect is a claim of an aggregate about another one that the other did not confirm. A
// lagging replica may have answered: the end of the check asks again.
type suspect struct {
	place   Finding
	confirm func(ctx context.Context) (bool, error)
}

// mostSuspects bounds how many are kept to be asked again; further ones are reported at once.
const mostSuspects = 1000

// suspect checks that other threads that are named exist, that the current thread holds the
// key that it claims, or that the current key is held by a thread that claimed it.
func (v *verifier) suspect(ctx context.Context) error {
	j := v.judge
	for _, t := range j.ties {
		if err := v.ask(ctx, suspect{place: t.place, confirm: func(ctx context.Context) (bool, error) { return v.there(ctx, t.place.Tenant, t.thread) }}); err != nil {
			return err
		}
	}
	if err := v.suspectTwins(ctx); err != nil {
		return err
	}
	if err := v.suspectCopies(ctx); err != nil {
		return err
	}
	if j.key == "" {
		return nil
	}
	key, holder := j.key, j.holder
	s := suspect{place: j.place(KindLink, j.keySeq, "")}
	isThread := events.IsThread(j.at.id)
	if isThread {
		s.confirm = func(ctx context.Context) (bool, error) { return v.holds(ctx, s.place.Tenant, key, holder) }
		s.place.Detail = fmt.Sprintf("it claims the key %.80q, but the key's own record does not confirm it", key)
	} else {
		s.confirm = func(ctx context.Context) (bool, error) { return v.claimed(ctx, s.place.Tenant, key, holder) }
		s.place.Detail = fmt.Sprintf("the key %.80q is held by thread %.80s, which is not in the log or does not confirm it", key, holder)
	}
	certain := j.claimed // the key's own record ends with the claim
	if isThread {
		certain = holder == j.at.id && key == j.created && !j.over
	}
	if certain && v.keys.waits(keyClaim{j.at.tenant, key, holder}, isThread, s) {
		return nil
	}
	return v.ask(ctx, s)
}

// mostKeyClaims bounds how many claims of keys wait for the other side of them.
const mostKeyClaims = 10_000

// keyClaim is a key and the thread that holds it.
type keyClaim struct{ tenant, key, thread string }

// keyClaims are claims of keys of which one side was read: the thread, or the key's own record.
// Where both say the same, nothing has to be asked.
type keyClaims struct {
	mu   sync.Mutex // guards open
	open map[keyClaim]openClaim
}

type openClaim struct {
	suspect
	thread bool // it is of the thread
}

// waits reports whether the other side of a claim confirms it, or is expected to: then the claim
// waits for it.
func (k *keyClaims) waits(c keyClaim, thread bool, s suspect) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	other, met := k.open[c]
	switch {
	case met && other.thread != thread:
		delete(k.open, c)
		return true
	case met || len(k.open) == mostKeyClaims:
		return false
	}
	k.open[c] = openClaim{s, thread}
	return true
}

// rest returns the claims whose other side was not read, in the order of the log.
func (k *keyClaims) rest() []suspect {
	if k == nil {
		return nil
	}
	var out []suspect
	for _, c := range k.open {
		out = append(out, c.suspect)
	}
	slices.SortFunc(out, func(a, b suspect) int { return cmp.Compare(a.place.Seq, b.place.Seq) })
	return out
}

// ask confirms a suspect, and otherwise keeps it to ask again.
func (v *verifier) ask(ctx context.Context, s suspect) error {
	right, err := s.confirm(ctx)
	switch {
	case err != nil:
		return v.damaged(ctx, fmt.Errorf("check references of %s/%s names: %w", s.place.Tenant, s.place.Thread, err), s.place)
	case !right:
		v.suspicious(s)
	}
	return nil
}

// suspicious keeps a suspect to ask again.
func (v *verifier) suspicious(s suspect) {
	if len(v.suspects) < mostSuspects {
		v.suspects = append(v.suspects, s)
	} else {
		v.find(s.place)
	}
}

// claims asks again about the suspects.
func (v *verifier) claims(ctx context.Context) error {
	for _, s := range append(v.suspects, v.keys.rest()...) {
		right, err := s.confirm(ctx)
		if err != nil {
			if err := v.damaged(ctx, fmt.Errorf("check references of %s/%s names: %w", s.place.Tenant, s.place.Thread, err), s.place); err != nil {
				return err
			}
			continue
		}
		if !right {
			v.find(s.place)
		}
	}
	v.suspects = nil
	return nil
}

// holds reports whether the key's own record confirms that the thread holds it, or was written
// since the check started.
func (v *verifier) holds(ctx context.Context, tenant, key, thread string) (bool, error) {
	last, err := v.log.Last(ctx, tenant, events.KeyAggregate(key))
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return true, nil // reported at its own place
	case err != nil || last == nil:
		return false, err
	}
	d, ok := last.Events[len(last.Events)-1].Data.(events.KeyClaimed)
	return ok && d.Key == key && d.ThreadID == thread || last.Seq > v.last, nil
}

// claimed reports whether a thread holds a key: it claimed it when it was created, and was not
// deleted since. A key that was released or claimed again since the check started is accepted.
func (v *verifier) claimed(ctx context.Context, tenant, key, thread string) (bool, error) {
	if !events.ValidThreadID(thread) {
		return false, nil
	}
	now, err := v.log.Last(ctx, tenant, events.KeyAggregate(key))
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken) || err == nil && now != nil && now.Seq > v.last:
		return true, nil
	case err != nil:
		return false, err
	}
	last, err := v.log.Last(ctx, tenant, thread)
	switch {
	case errors.As(err, &broken):
		return true, nil
	case err != nil || last == nil || last.Events[len(last.Events)-1].Type == events.LifecycleDeletedType:
		return false, err
	}
	for m, err := range v.log.Raw(ctx, v.log.Config().Names.Log(tenant, thread), 1) {
		var archive *eventlog.ArchiveError
		if errors.As(err, &archive) {
			return true, nil // reported where the thread is checked
		}
		if err != nil {
			return false, err
		}
		first, err := v.log.Decode(m)
		return err != nil || first.First() > 0 || keyOf(first) == key, nil
	}
	return false, nil
}

// there reports whether the log has a thread.
func (v *verifier) there(ctx context.Context, tenant, thread string) (bool, error) {
	if !events.ValidThreadID(thread) {
		return false, nil
	}
	last, err := v.log.Last(ctx, tenant, thread)
	var broken *events.BrokenError
	if errors.As(err, &broken) {
		return true, nil
	}
	return last != nil, err
}

// namedGaps bounds how many gaps are reported one by one.
const namedGaps = 100

// sequence checks that no message is missing from the log, except those of purged threads,
// where each erased commit had at least one version, and of archives.
func (v *verifier) sequence(ctx context.Context) error {
	if v.options.Tenant != "" || !v.options.Range.whole() {
		return nil
	}
	missing := int64(v.begun.LastSeq - v.begun.Msgs) // a thread that is purged meanwhile is not counted
	if missing <= v.erased+v.archived {
		return nil
	}
	if v.erased+v.archived > 0 {
		v.find(Finding{Kind: KindSequence, Detail: fmt.Sprintf(
			"%d messages are missing, and the tombstones of purged threads explain %d of them at most, and archives %d", missing, v.erased, v.archived)})
	}
	stream, err := v.log.JetStream().Stream(ctx, v.log.Config().Names.Stream(assets.LogStream))
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return fmt.Errorf("read the log's gaps: %w", err)
	}
	if info.State.FirstSeq > 1 {
		v.gap(1, info.State.FirstSeq-1)
	}
	named := 0
	for i, list := 0, info.State.Deleted; i < len(list); named++ {
		from := i
		for i++; i < len(list) && list[i] == list[i-1]+1; i++ {
		}
		if named == namedGaps {
			v.find(Finding{Kind: KindSequence, Detail: fmt.Sprintf("and %d more messages", len(list)-from)})
			break
		}
		v.gap(list[from], list[i-1])
	}
	return nil
}

// gap reports missing messages.
func (v *verifier) gap(from, to uint64) {
	detail := "the log holds no message with this sequence"
	if to > from {
		detail = fmt.Sprintf("the log holds no messages from here to %d", to)
	}
	if v.erased+v.archived > 0 {
		detail += "; it may be of a thread that was purged or archived, or not"
	} else {
		detail += ", and no tombstone of a purged thread explains it"
	}
	v.find(Finding{Kind: KindSequence, Seq: from, Detail: detail})
}

// twin is a relationship as one of its two threads records it.
type twin struct {
	thread string // the other one
	kind   events.RelationshipKind
	role   events.RelationshipRole
}

// match returns the record that the other thread has of the relationship.
func (t twin) match(thread string) twin {
	role := events.ParentRole
	if t.role == role {
		role = events.ChildRole
	}
	return twin{thread, t.kind, role}
}

// suspectTwins checks that each relationship of the current thread is recorded by the other
// thread too. A deleted thread keeps the records that it had, and its relatives theirs.
func (v *verifier) suspectTwins(ctx context.Context) error {
	j := v.judge
	if j.over {
		return nil
	}
	for t, place := range j.twins {
		if t.thread == j.at.id { // reported as what no event may say
			continue
		}
		s := suspect{place: place, confirm: func(ctx context.Context) (bool, error) {
			return v.matched(ctx, aggregate{place.Tenant, t.thread}, t.match(place.Thread))
		}}
		if err := v.ask(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

const (
	// mostRelatives bounds the threads whose relationships are kept in memory.
	mostRelatives = 1000
	// batchSpan is how far apart two commits of one atomic batch can be in the log.
	batchSpan = 1000
)

// matched reports whether a thread records a relationship, or cannot say: it is deleted, or not
// in the log, or cannot be read, which is reported at its own place.
func (v *verifier) matched(ctx context.Context, a aggregate, t twin) (bool, error) {
	if !events.ValidThreadID(a.id) {
		return true, nil
	}
	last, err := v.log.Last(ctx, a.tenant, a.id)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return true, nil
	case err != nil:
		return false, err
	case last == nil || last.Events[len(last.Events)-1].Type == events.LifecycleDeletedType:
		return true, nil
	}
	known, err := v.relatives.of(a, func() (map[twin]bool, error) { return v.readRelations(ctx, a) })
	return err == nil && (known == nil || known[t]), err
}

// readRelations returns the relationships that a thread records at the end of the range, nil if
// that cannot be read. A range may end within an atomic batch: what changes around its end
// counts as recorded.
func (v *verifier) readRelations(ctx context.Context, a aggregate) (map[twin]bool, error) {
	found := map[twin]bool{}
	near := func(seq uint64) bool {
		return !v.options.Range.whole() && seq+batchSpan > v.last
	}
	for m, err := range v.log.Raw(ctx, v.log.Config().Names.Log(a.tenant, a.id), 1) {
		var archive *eventlog.ArchiveError
		if errors.As(err, &archive) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if m.Seq > v.last && !near(m.Seq) || m.Seq > v.last+batchSpan {
			break
		}
		commit, err := v.log.Decode(m)
		if err != nil {
			return nil, nil
		}
		for i := range commit.Events {
			switch d := commit.Events[i].Data.(type) {
			case events.RelationshipAdded:
				found[twin{d.ThreadID, d.Type, d.Role}] = true
			case events.RelationshipRemoved:
				if !near(m.Seq) {
					delete(found, twin{d.ThreadID, d.Type, d.Role})
				}
			}
		}
	}
	return found, nil
}
