package edge

import (
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/share"
)

// Limits are what a credential or a tenant may use of an edge. Zero means the default, and a
// negative number no limit.
type Limits struct {
	Rate     int // requests per second, and twice that at once
	InFlight int // requests in flight, streams not counted
	Streams  int // open streams and sockets
	Uploads  int // uploads in progress
}

// Defaults of the limits of a credential and of a tenant.
func keyLimits() Limits    { return Limits{Rate: 5000, InFlight: 512, Streams: 4000, Uploads: 16} }
func tenantLimits() Limits { return Limits{Rate: 10000, InFlight: 1024, Streams: 6000, Uploads: 32} }

// or returns the limits with defaults filled in.
func (l Limits) or(d Limits) Limits {
	for _, f := range []struct{ own, other *int }{{&l.Rate, &d.Rate}, {&l.InFlight, &d.InFlight}, {&l.Streams, &d.Streams}, {&l.Uploads, &d.Uploads}} {
		if *f.own == 0 {
			*f.own = *f.other
		}
	}
	return l
}

// use is what a credential or a tenant uses now.
type use struct {
	inFlight, streams, uploads int
	bodies                     int64 // bytes
	tokens                     float64
	at                         time.Time
}

// meter holds all of one kind, credentials or tenants, to their limits.
type meter struct {
	what   string
	limits Limits
	of     map[string]*use
}

// manyUses is how many uses are kept of those that use nothing now.
const manyUses = 10_000

// admission is a request that was admitted.
type admission struct {
	meters *meters
	names  [2]string
	upload bool
	stream bool  // its place is that of a stream
	bytes  int64 // of its body that count, guarded by the meters' mutex
}

// meters hold requests to the limits of their credential and their tenant.
type meters struct {
	metrics Metrics // nil: nobody counts

	mu    sync.Mutex
	kind  [2]meter // credentials, tenants
	turns pace     // of requests and their bodies
	sent  pace     // of what is sent
}

// newMeters returns meters whose tenants have a rate while other tenants are active; 0 is the
// default, and a negative one any rate, as it is without a limit of requests.
func newMeters(key, tenant Limits, fair float64) *meters {
	if fair == 0 {
		fair = fairRate()
	}
	if tenant.Rate < 0 {
		fair = -1
	}
	return &meters{kind: [2]meter{
		{"the credential", key.or(keyLimits()), map[string]*use{}}, {"the tenant", tenant.or(tenantLimits()), map[string]*use{}},
	}, turns: newPace(fair), sent: newPace(fair)}
}

// busyError refuses a request over a limit.
type busyError struct {
	refusal *events.Error
	after   time.Duration
}

func (e *busyError) Error() string { return e.refusal.Error() }

func (e *busyError) Unwrap() error { return e.refusal }

func busy(what, limit string, after time.Duration) error {
	return &busyError{events.Errorf(events.QueueFull, "%s has reached its limit of %s; try again later", what, limit), after}
}

// admit admits a request, or returns what is exceeded. A request that may become a stream
// is refused while no stream may begin.
func (m *meters) admit(p Principal, upload, mayStream bool, now time.Time) (*admission, error) {
	a := &admission{meters: m, names: [2]string{p.Tenant + " " + p.Subject, p.Tenant}, upload: upload}
	m.mu.Lock()
	defer m.mu.Unlock()
	uses := [2]*use{}
	for i := range m.kind {
		k := &m.kind[i]
		u := k.use(a.names[i], now)
		uses[i] = u
		switch l := k.limits; {
		case l.Rate > 0 && u.tokens < 1:
			return nil, m.refuse("rate", k.what, "requests per second", time.Duration((1-u.tokens)/float64(l.Rate)*float64(time.Second)))
		case over(u.inFlight, l.InFlight):
			return nil, m.refuse("inflight", k.what, "requests in flight", time.Second)
		case upload && over(u.uploads, l.Uploads):
			return nil, m.refuse("uploads", k.what, "uploads", time.Second)
		case mayStream && over(u.streams, l.Streams):
			return nil, m.refuse("streams", k.what, "open streams", time.Second)
		}
	}
	for _, u := range uses {
		u.tokens--
		u.inFlight++
		if upload {
			u.uploads++
		}
	}
	return a, nil
}

// refuse returns the refusal of a request over a limit, and counts it.
func (m *meters) refuse(name, what, limit string, after time.Duration) error {
	if m.metrics != nil {
		m.metrics.Limited("http", name)
	}
	return busy(what, limit, after)
}

func over(n, limit int) bool { return limit > 0 && n >= limit }

// use returns what a name uses now. The caller holds mu.
func (k *meter) use(name string, now time.Time) *use {
	u, known := k.of[name]
	if !known {
		share.Evict(k.of, manyUses, func(u *use) bool { return k.idle(u, now) })
		u = &use{tokens: k.burst(), at: now}
		k.of[name] = u
	}
	k.fill(u, now)
	return u
}

// burst returns how many requests may be made at once.
func (k *meter) burst() float64 { return 2 * float64(k.limits.Rate) }

// fill adds the tokens for the time since the last count.
func (k *meter) fill(u *use, now time.Time) {
	u.tokens = math.Min(k.burst(), u.tokens+now.Sub(u.at).Seconds()*float64(k.limits.Rate))
	u.at = now
}

// idle reports whether a name uses nothing and may do what one may that was never there: what it has
// spent must not be forgotten.
func (k *meter) idle(u *use, now time.Time) bool {
	k.fill(u, now)
	return u.inFlight+u.streams+u.uploads == 0 && u.bodies == 0 && u.tokens >= k.burst()
}

// streams exchanges the place of a request for that of a stream.
func (a *admission) streams() error {
	m := a.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.kind {
		if k := &m.kind[i]; over(k.of[a.names[i]].streams, k.limits.Streams) {
			return m.refuse("streams", k.what, "open streams", time.Second)
		}
	}
	for i := range m.kind {
		u := m.kind[i].of[a.names[i]]
		u.inFlight--
		u.streams++
	}
	a.stream = true
	return nil
}

// Bodies that are no files are in memory as a whole.
const (
	smallBody  = 64 << 10 // so much of each body does not count
	mostBodies = 64 << 20 // bytes of all bodies of a tenant that are being read or decoded
)

// hold counts bytes of a body, or returns that the tenant's bodies are too many.
func (a *admission) hold(bytes int64) error {
	m := a.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.kind[1].of[a.names[1]]
	more := max(0, bytes-smallBody) - a.bytes
	if more <= 0 {
		return nil
	}
	if u.bodies+more > mostBodies {
		return busy(m.kind[1].what, "bytes of bodies in flight", time.Second)
	}
	u.bodies += more
	a.bytes += more
	return nil
}

// drop counts the body no longer: what it says has been done, or waits for something else.
func (a *admission) drop() {
	m := a.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.bytes == 0 { // after release, too
		return
	}
	m.kind[1].of[a.names[1]].bodies -= a.bytes
	a.bytes = 0
}

// release frees the place.
func (a *admission) release() {
	a.drop()
	m := a.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.kind {
		u := m.kind[i].of[a.names[i]]
		if a.stream {
			u.streams--
		} else {
			u.inFlight--
		}
		if a.upload {
			u.uploads--
		}
	}
}

// retryAfter returns the header Retry-After of a refusal: whole seconds, at least one.
func retryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// isUpload reports whether a request's body is the content of a file.
func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/api/threads/") && strings.Contains(r.URL.Path, "/files/")
}

// mayStream reports whether a request asks for a stream or a socket.
func mayStream(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	if r.Header.Get("Upgrade") != "" || strings.Contains(accept, "text/event-stream") {
		return true
	}
	if r.Method != http.MethodGet || strings.Contains(accept, "json") {
		return false
	}
	return slices.Contains([]string{"stream", "events", "chunks"}, path.Base(r.URL.Path))
}
