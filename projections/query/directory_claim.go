package query

import (
	"time"
)

// claimsKept is how many threads [directory.Claimed] returns at most.
const claimsKept = 512

// Claimed returns, by tenant, the threads for which the removal of documents began after since:
// the latest, at most [claimsKept].
func (d *directory) Claimed(since time.Time) map[string][]string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := map[string][]string{}
	for _, c := range d.claims {
		if c.at.After(since) {
			out[c.tenant] = append(out[c.tenant], c.id)
		}
	}
	return out
}

// claim records that the removal of a thread's documents has begun.
type claim struct {
	tenant, id string
	at         time.Time
}

// claimed records a claim. If there are too many, it replaces the oldest. The caller holds the
// lock.
func (d *directory) claimed(c claim) {
	if len(d.claims) < claimsKept {
		d.claims = append(d.claims, c)
		return
	}
	d.claims[d.nextClaim] = c
	d.nextClaim = (d.nextClaim + 1) % claimsKept
}
