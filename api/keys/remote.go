package keys

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

const (
	askWithin  = 2 * time.Second // an answer about keys
	mostAsking = 64              // requests at once for keys that are not known yet
)

// Remote authenticates by the keys of another process, which answers for its folder as
// [Store.Answer] does. It knows the keys that were used here, and nothing of others. It is safe
// for concurrent use.
type Remote struct {
	set
	nc      *nats.Conn
	names   events.Names
	tenants []string // whose keys it may ask for; empty: all
	asking  chan struct{}
	times   times

	confirmed atomic.Int64 // when all keys were last confirmed, in Unix milliseconds
	checking  sync.Mutex   // guards revisions
	revisions []string     // as the keys are known here, by tenant

	stop func()
	done sync.WaitGroup
}

// Follow returns a Remote that follows changes of the keys until Close.
func Follow(nc *nats.Conn, n events.Names, tenants []string) *Remote {
	return follow(nc, n, tenants, usual())
}

func follow(nc *nats.Conn, n events.Names, tenants []string, t times) *Remote {
	if len(tenants) == 0 {
		tenants = []string{""}
	}
	watching, stop := context.WithCancel(context.Background())
	r := &Remote{set: newSet(), nc: nc, names: n, tenants: tenants, asking: make(chan struct{}, mostAsking), times: t, revisions: make([]string, len(tenants)), stop: stop}
	r.done.Go(func() { r.watch(watching) })
	return r
}

// Close ends the following.
func (r *Remote) Close() {
	r.stop()
	r.done.Wait()
}

// Ready reports whether somebody answers for the keys.
func (r *Remote) Ready(now time.Time) bool {
	return now.Sub(time.UnixMilli(r.confirmed.Load())) < r.times.trusted
}

// Authenticate returns the principal of a request with a key. The error is an unavailable while
// nobody answers for the keys.
func (r *Remote) Authenticate(req *http.Request) (edge.Principal, error) {
	id, secret, err := sent(req)
	if err == nil {
		err = r.know(req.Context(), id)
	}
	if err != nil {
		return edge.Principal{}, err
	}
	return r.principal(id, secret, time.Now())
}

// Resume returns the principal of a key that another edge authenticated.
func (r *Remote) Resume(ctx context.Context, p edge.Principal) (edge.Principal, error) {
	id, ok := idOf(p)
	if !ok {
		return edge.Principal{}, refused()
	}
	if err := r.know(ctx, id); err != nil {
		return edge.Principal{}, err
	}
	return r.resume(id, time.Now())
}

// know asks for a key that is not known here.
func (r *Remote) know(ctx context.Context, id string) error {
	unavailable := events.Errorf(events.Unavailable, "API keys cannot be checked now: no skein serve with --access answers; try again later")
	if !r.Ready(time.Now()) {
		return unavailable
	}
	if _, known := r.find(id, time.Now()); known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	case <-ctx.Done():
		return unavailable
	}
	for i, tenant := range r.tenants {
		got, err := r.ask(ctx, tenant, request{IDs: []string{id}})
		if err != nil {
			return unavailable
		}
		r.learn(i, got)
	}
	return nil
}

// learn adds keys of a tenant that are not known. If other keys have changed meanwhile, these
// may have, too: then all are asked for again.
func (r *Remote) learn(tenant int, got reply) {
	r.checking.Lock()
	defer r.checking.Unlock()
	if r.revisions[tenant] != got.Revision {
		r.revisions[tenant] = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range got.Keys {
		if _, known := r.keys[k.ID]; !known {
			r.add(k)
		}
	}
}

func (r *Remote) ask(ctx context.Context, tenant string, asked request) (reply, error) {
	var got reply
	body, err := json.Marshal(asked)
	if err != nil {
		return got, err
	}
	m, err := r.nc.RequestWithContext(ctx, r.names.GatewayKeys(tenant), body)
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(m.Data, &got)
}

// watch follows changes until ctx ends.
func (r *Remote) watch(ctx context.Context) {
	tick := time.NewTicker(r.times.poll)
	defer tick.Stop()
	for {
		if now := time.Now(); r.check(ctx) == nil {
			r.confirmed.Store(now.UnixMilli())
		}
		r.endExpired(time.Now())
		if r.await(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// await blocks until keys of a tenant have changed, and reports whether they have: not if nobody
// says so for the time that requests are held.
func (r *Remote) await(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, r.times.hold+askWithin)
	defer cancel()
	r.checking.Lock()
	known := slices.Clone(r.revisions)
	r.checking.Unlock()
	told := make(chan bool, len(known))
	for i, tenant := range r.tenants {
		go func() {
			got, err := r.ask(ctx, tenant, request{Known: known[i]})
			told <- err == nil && got.Revision != known[i]
		}()
	}
	for range known {
		if <-told {
			return true
		}
	}
	return false
}

// check asks whether keys have changed, and for those that are known here if they have.
func (r *Remote) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	used := r.takeUses()
	now := make([]string, len(r.tenants))
	for i, tenant := range r.tenants {
		got, err := r.ask(ctx, tenant, request{Used: used})
		if err != nil {
			for id, at := range used { // the next request tells of them
				r.note(id, at)
			}
			return err
		}
		now[i] = got.Revision
	}
	r.checking.Lock()
	defer r.checking.Unlock()
	if slices.Equal(now, r.revisions) {
		return nil
	}
	if err := r.reload(ctx); err != nil {
		return err
	}
	r.revisions = now
	return nil
}

// reload asks for all keys that are known here. The caller holds checking.
func (r *Remote) reload(ctx context.Context) error {
	r.mu.Lock()
	ids := slices.Sorted(maps.Keys(r.keys))
	r.mu.Unlock()
	var list []Key
	for some := range slices.Chunk(ids, mostAsked) {
		for _, tenant := range r.tenants {
			got, err := r.ask(ctx, tenant, request{IDs: some})
			if err != nil {
				return err
			}
			list = append(list, got.Keys...)
		}
	}
	r.replace(list)
	return nil
}
