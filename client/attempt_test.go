package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// slow is a service that needs a time for each answer, and begins again for each attempt.
type slow struct {
	needs time.Duration
	asked int
}

func (*slow) Serves(string) bool { return true }

func (s *slow) Request(ctx context.Context, _ ServiceRequest) (ServiceAnswer, error) {
	s.asked++
	select {
	case <-time.After(s.needs):
		return ServiceAnswer{Body: []byte(`{"lastSeq":7}`)}, nil
	case <-ctx.Done():
		return ServiceAnswer{}, ctx.Err()
	}
}

// An answer that takes longer than an attempt comes: each further attempt may take longer, up to what a
// service takes at most.
func TestRequest_AttemptsGrow(t *testing.T) {
	for _, to := range []struct {
		needs time.Duration
		asked int
	}{{attemptTimeout - 1, 1}, {2*attemptTimeout - 1, 2}, {longestAttempt - 1, 3}} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{needs: to.needs}
			c := &Client{nc: new(nats.Conn), opts: Options{Tenant: "acme", Service: s, Timeout: 2 * time.Minute}}
			if end, err := c.HistoryEnd(t.Context()); err != nil || end != 7 || s.asked != to.asked {
				t.Errorf("an answer that takes %v: %d after %d attempts, %v", to.needs, end, s.asked, err)
			}
		})
	}
	if given := moreTime(2*attemptTimeout, time.Millisecond); given != 2*attemptTimeout {
		t.Errorf("after a quick refusal an attempt may take %v", given)
	}
	copies, at := 0, time.Duration(0)
	for ; at < longestAttempt; at += repeatAfter(copies) {
		copies++
	}
	if copies > mostCopies {
		t.Errorf("an attempt may send %d copies", copies)
	}
}
