package directory

import (
	"time"
)

// ClaimsKept is how many threads [Directory.Claimed] returns at most.
const ClaimsKept = 512

// Claimed returns threads, by tenant, whose documents somebody began to remove after a time: those
// with which that began last, [ClaimsKept] at most.
func (d *Directory) Claimed(since time.Time) map[string][]string {
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

// claim records that somebody began to remove the documents of a thread.
type claim struct {
	tenant, id string
	at         time.Time
}

// claimed notes a claim, in place of the oldest one if there are too many. The caller holds the
// lock.
func (d *Directory) claimed(c claim) {
	if len(d.claims) < ClaimsKept {
		d.claims = append(d.claims, c)
		return
	}
	d.claims[d.nextClaim] = c
	d.nextClaim = (d.nextClaim + 1) % ClaimsKept
}
