package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/skein-threads/skein/quota"
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

// newPace returns a pace: requests of each tenant begin at a steady rate while others are active, or
// wait. Alone a tenant may do what its limits permit.
func newPace(rate float64, activity *quota.Activity) *quota.Pace {
	return quota.NewPace(rate, paceBurst, paceActive, activity)
}

// begin waits until work of a tenant may begin that is like n requests. It is refused if that takes
// too long.
func (m *meters) begin(ctx context.Context, tenant string, n float64) error {
	err := m.turns.Begin(ctx, tenant, n, paceMost)
	if behind := (*quota.BehindError)(nil); errors.As(err, &behind) {
		return busy("the tenant", "requests while other tenants are active", behind.After)
	}
	return err
}

// weigh waits until a tenant may send so many bytes of bodies, and returns for how long.
func (m *meters) weigh(ctx context.Context, tenant string, bytes int) (time.Duration, error) {
	return m.turns.Wait(ctx, tenant, float64(bytes)/bodyBytes)
}

// weighSent is weigh for bytes that are sent to a tenant, which do not delay its other requests.
func (m *meters) weighSent(ctx context.Context, tenant string, bytes int) error {
	_, err := m.sent.Wait(ctx, tenant, float64(bytes)/sentBytes)
	return err
}

// pacedBody is a body that is read at its tenant's pace, so that the bodies of many connections
// take no more of the processor and of memory than the tenant may. Small reads count for more than
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
		_ = b.ctrl.SetReadDeadline(b.began.Add(BodyTime + b.held)) // a recorder in a test has none
	}
	if ended != nil && (err == nil || errors.Is(err, io.EOF)) {
		err = ended
	}
	return n, err
}
