package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/skein-threads/skein/internal/share"
)

// A tenant's pace while other tenants are active.
const (
	paceActive = 5 * time.Second        // how long a tenant counts as active after a request
	paceBurst  = 250 * time.Millisecond // what a tenant that sent nothing for so long may send at once
	paceMost   = time.Second            // a request that would have to wait longer is refused
	bodyBytes  = 8 << 10                // of a body, which are paced like another request
	sentBytes  = 16 << 10               // of answers, likewise
	pacedPiece = 64 << 10               // of a body is weighed at once
	smallRead  = 1 << 10                // a read of a body that brings less is one of slowReads, which are likewise paced
	slowReads  = 8
	followCost = 8 // requests that beginning to follow a subject is like
)

// fairRate is the default pace, in requests per second.
func fairRate() float64 { return 1000 * float64(runtime.GOMAXPROCS(0)) }

// anonymous stands for the requests that are refused before it is known who makes them.
const anonymous = ""

// pace lets the requests of each tenant begin at a steady rate while other tenants are
// active, so that none of them takes the processor from all others: further requests wait.
// Alone a tenant may do what its limits permit.
type pace struct {
	rate float64 // requests per second; 0 is any number

	// The caller holds the mutex of the meters.
	last, other turn // of two tenants, the last that were active
	due         map[string]time.Time
}

func newPace(rate float64) pace { return pace{rate: rate, due: map[string]time.Time{}} }

// turn is when a tenant made its last request.
type turn struct {
	tenant string
	at     time.Time
}

// shared notes a request, and reports whether other tenants are active, too.
func (p *pace) shared(tenant string, now time.Time) bool {
	if tenant == anonymous {
		return true
	}
	if p.last.tenant != tenant {
		p.other = p.last
	}
	p.last = turn{tenant, now}
	return p.other.tenant != anonymous && now.Sub(p.other.at) < paceActive
}

// wait counts n requests of a tenant, and returns how long the last of them must wait.
func (p *pace) wait(tenant string, n float64, now time.Time) time.Duration {
	if p.rate <= 0 {
		return 0
	}
	shared := p.shared(tenant, now)
	due, known := p.due[tenant]
	if !known {
		share.Evict(p.due, manyUses, func(at time.Time) bool { return now.Sub(at) > paceBurst })
	}
	if first := now.Add(-paceBurst); due.Before(first) {
		due = first
	}
	due = due.Add(time.Duration(n / p.rate * float64(time.Second)))
	if !shared && due.After(now) {
		due = now // what a tenant did alone is not held against it, nor may it begin with a burst
	}
	p.due[tenant] = due
	return max(0, due.Sub(now))
}

// begin waits until work of a tenant may begin that is like n requests. It is refused if that takes
// too long.
func (m *meters) begin(ctx context.Context, tenant string, n float64) error {
	now := time.Now()
	m.mu.Lock()
	behind := m.turns.due[tenant].Sub(now)
	wait := paceMost
	if behind <= paceMost {
		wait = m.turns.wait(tenant, n, now)
	}
	m.mu.Unlock()
	if err := pause(ctx, wait); err != nil || behind <= paceMost {
		return err
	}
	return busy("the tenant", "requests while other tenants are active", behind)
}

// weigh waits until a tenant may send so many bytes of bodies, and returns for how long.
func (m *meters) weigh(ctx context.Context, tenant string, bytes int) (time.Duration, error) {
	m.mu.Lock()
	wait := m.turns.wait(tenant, float64(bytes)/bodyBytes, time.Now())
	m.mu.Unlock()
	return wait, pause(ctx, wait)
}

// weighSent is weigh for bytes that are sent to a tenant, which do not delay its other requests.
func (m *meters) weighSent(ctx context.Context, tenant string, bytes int) error {
	m.mu.Lock()
	wait := m.sent.wait(tenant, float64(bytes)/sentBytes, time.Now())
	m.mu.Unlock()
	return pause(ctx, wait)
}

// pacedBody is a body that is read at its tenant's pace, so that those of many connections take
// no more of the processor and of memory than the tenant may. Small reads count for more than
// their bytes: each costs a turn of the processor.
type pacedBody struct {
	io.Reader
	ctx    context.Context //nolint:containedctx // it lives as long as the request
	meters *meters
	tenant string
	ctrl   *http.ResponseController // unless its time is no matter of the pace

	began time.Time
	held  time.Duration // for which it has waited
	owed  int           // bytes that were read and not weighed
	small int           // reads of few bytes since the last that counted
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n < min(smallRead, len(p)) && err == nil {
		b.small++
	}
	b.owed += n
	if b.small == slowReads {
		b.small, b.owed = 0, b.owed+bodyBytes
	} else if b.owed == 0 || b.owed < pacedPiece && err == nil {
		return n, err
	}
	held, ended := b.meters.weigh(b.ctx, b.tenant, b.owed)
	b.owed = 0
	if b.held += held; held > 0 && b.ctrl != nil { // what it waits for here is not the sender's time
		_ = b.ctrl.SetReadDeadline(b.began.Add(bodyTime + b.held)) // a recorder in a test has none
	}
	if ended != nil && (err == nil || errors.Is(err, io.EOF)) {
		err = ended
	}
	return n, err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
