package edge

import (
	"math"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
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

// quota returns the limits as a gate has them.
func (l Limits) quota() quota.Limits {
	return quota.Limits{Rate: float64(max(0, l.Rate)), InFlight: max(0, l.InFlight), Streams: max(0, l.Streams), Uploads: max(0, l.Uploads)}
}

// meters hold requests to the limits of their credential and their tenant.
type meters struct {
	metrics Metrics   // nil: nobody counts
	what    [2]string // how refusals name the levels of the gate
	gate    *quota.Gate
	turns   *quota.Pace // of requests and their bodies
	sent    *quota.Pace // of what is sent
}

// newMeters returns meters whose tenants have a rate while other tenants are active; 0 is the
// default, and a negative one any rate, as it is without a limit of requests.
func newMeters(key, tenant Limits, fair float64, activity *quota.Activity) *meters {
	if fair == 0 {
		fair = fairRate()
	}
	if tenant.Rate < 0 {
		fair = -1
	}
	if activity == nil {
		activity = &quota.Activity{}
	}
	all := tenant.or(tenantLimits()).quota()
	all.BodyBytes = mostBodies
	return &meters{
		what: [2]string{"the credential", "the tenant"}, gate: quota.NewGate(key.or(keyLimits()).quota(), all),
		turns: newPace(fair, activity), sent: newPace(fair, activity),
	}
}

// admission is a request that was admitted.
type admission struct {
	meters *meters
	place  *quota.Hold
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
	r := quota.Request{Names: []string{p.Tenant + " " + p.Subject, p.Tenant}, Takes: []quota.Kind{quota.Rate, quota.InFlight}}
	if upload {
		r.Takes = append(r.Takes, quota.Uploads)
	}
	if mayStream {
		r.Fits = []quota.Kind{quota.Streams}
	}
	place, over := m.gate.Enter(r, now)
	if over != nil {
		return nil, m.refuse(over)
	}
	return &admission{m, place}, nil
}

// refuse returns the refusal of a request over a limit, and counts it.
func (m *meters) refuse(over *quota.Excess) error {
	if m.metrics != nil {
		m.metrics.Limited("http", over.Kind.String())
	}
	after := time.Second
	if over.Kind == quota.Rate {
		after = over.After
	}
	return busy(m.what[over.Level], limitOf(over.Kind), after)
}

// limitOf returns how a refusal names a limit.
func limitOf(kind quota.Kind) string {
	switch kind {
	case quota.Rate:
		return "requests per second"
	case quota.InFlight:
		return "requests in flight"
	case quota.Streams:
		return "open streams"
	default:
		return kind.String()
	}
}

// streams exchanges the place of a request for that of a stream.
func (a *admission) streams() error {
	if over := a.place.Exchange(quota.InFlight, quota.Streams); over != nil {
		return a.meters.refuse(over)
	}
	return nil
}

// Bodies that are no files are in memory as a whole.
const (
	smallBody  = 64 << 10 // so much of each body does not count
	mostBodies = 64 << 20 // bytes of all bodies of a tenant that are being read or decoded
)

// largeBody is from how many bytes on a body takes long to decode, and needs a place for that.
const largeBody = 256 << 10

// DefaultBodies is how many large bodies are decoded at once: half of the processors do nothing
// else then, and the others are left for everything that is small.
func DefaultBodies() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// hold counts bytes of a body, or returns that the tenant's bodies are too many.
func (a *admission) hold(bytes int64) error {
	if over := a.place.Raise(quota.BodyBytes, bytes-smallBody); over != nil {
		return busy(a.meters.what[over.Level], "bytes of bodies in flight", time.Second)
	}
	return nil
}

// drop counts the body no longer: what it says has been done, or waits for something else.
func (a *admission) drop() { a.place.Drop(quota.BodyBytes) }

// release frees the place.
func (a *admission) release() { a.place.Leave() }

// retryAfter returns the header Retry-After of a refusal: whole seconds, at least one.
func retryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// FilesPath is where the files of OpenAI's clients are uploaded.
const FilesPath = "/v1/files"

// isUpload reports whether a request's body is the content of a file.
func isUpload(r *http.Request) bool {
	if r.Method == http.MethodPost {
		return r.URL.Path == FilesPath
	}
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
