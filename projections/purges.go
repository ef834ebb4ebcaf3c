package projections

import (
	"context"
	"time"

	"github.com/skein-threads/skein/projections/buckets"
)

// purges holds, by tenant, the deletions with documents that are not purged yet. Tenants take
// turns, so that a tenant that deletes thousands of threads does not delay others. The notes in
// the bucket of threads are authoritative: a new session reads the purges again from them. The
// zero value is empty.
type purges struct {
	turns []string                      // the tenants with deletions, the next one first
	of    map[string][]buckets.Deletion // in the order of the log
	count int
}

// add adds a deletion.
func (p *purges) add(d buckets.Deletion) {
	if p.of == nil {
		p.of = map[string][]buckets.Deletion{}
	}
	if len(p.of[d.Tenant]) == 0 {
		p.turns = append(p.turns, d.Tenant)
	}
	p.of[d.Tenant] = append(p.of[d.Tenant], d)
	p.count++
}

// take removes and returns the next deletion. There must be one.
func (p *purges) take() buckets.Deletion {
	tenant := p.turns[0]
	p.turns = p.turns[1:]
	first, rest := p.of[tenant][0], p.of[tenant][1:]
	if p.count--; len(rest) > 0 {
		p.of[tenant] = rest
		p.turns = append(p.turns, tenant)
	} else {
		delete(p.of, tenant)
	}
	return first
}

// purgeNext purges the documents of the next deleted thread, if there is one.
func (s *session) purgeNext(ctx context.Context) error {
	if s.purges.count == 0 {
		return nil
	}
	if err := s.purgeThread(ctx, s.purges.take()); err != nil {
		return err
	}
	s.cleaner.Expect(s.purges.count)
	return nil
}

// purgeFew purges the documents of at most Config.Purges deleted threads, for at most
// Config.BatchTime.
func (s *session) purgeFew(ctx context.Context) error {
	began := time.Now()
	for n := 0; n < s.cfg.Purges && s.purges.count > 0 && time.Since(began) < s.cfg.BatchTime; n++ {
		if err := s.purgeNext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// purgeRest purges documents that earlier batches have left over, thread after thread. It returns
// after a thread if waiting reports true, or the next tick is due.
func (s *session) purgeRest(ctx context.Context, waiting func() bool) error {
	for s.purges.count > 0 {
		if err := s.purgeNext(ctx); err != nil {
			return err
		}
		if waiting() || !s.cfg.Now().Before(s.nextTick) {
			return nil
		}
	}
	return nil
}
