package service

import (
	"time"

	"github.com/nats-io/nats.go"
)

// keptRequests are those that were forwarded lately, by their numbers, which follow each
// other from 1 on.
type keptRequests struct {
	first   uint64 // the number of the first, less 1
	list    []kept
	total   use
	tenants map[string]use
}

// kept is a request that was forwarded lately.
type kept struct {
	msg    *nats.Msg // nil: it was removed
	tenant string
	to     string
	at     time.Time
	bytes  int
}

// use is how much of the room is taken.
type use struct{ requests, bytes int }

func (u use) plus(requests, bytes int) use { return use{u.requests + requests, u.bytes + bytes} }

// within reports whether a request of so many bytes fits into a part of the room.
func (u use) within(part, bytes int) bool {
	return u.requests < mostKept/part && u.bytes+bytes <= mostKeptBytes/part
}

// room reports whether a tenant's request may be added.
func (k *keptRequests) room(tenant string, bytes int) bool {
	return k.total.within(1, bytes) && k.tenants[tenant].within(tenantsPart, bytes)
}

// next returns the number of the next request.
func (k *keptRequests) next() uint64 { return k.first + uint64(len(k.list)) + 1 }

// add adds the next request.
func (k *keptRequests) add(r kept) {
	k.list = append(k.list, r)
	k.total = k.total.plus(1, r.bytes)
	k.tenants[r.tenant] = k.tenants[r.tenant].plus(1, r.bytes)
}

// remove returns a request, whose message is nil if there is none with that number any more.
func (k *keptRequests) remove(number uint64) kept {
	i := number - k.first - 1
	if i >= uint64(len(k.list)) {
		return kept{}
	}
	r := k.list[i]
	k.list[i].msg = nil
	return r
}

// forget drops what was forwarded too long ago to be returned.
func (k *keptRequests) forget(now time.Time) {
	for len(k.list) > 0 && now.Sub(k.list[0].at) >= returnedWithin {
		r := k.list[0]
		k.list[0] = kept{}
		k.list, k.first = k.list[1:], k.first+1
		k.total = k.total.plus(-1, -r.bytes)
		if of := k.tenants[r.tenant].plus(-1, -r.bytes); of.requests == 0 {
			delete(k.tenants, r.tenant)
		} else {
			k.tenants[r.tenant] = of
		}
	}
}
