package streams_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/quota"
)

// reads counts the reads of a connection.
type reads struct {
	*nats.Conn
	began atomic.Int32
}

func (r *reads) PublishRequest(subject, reply string, body []byte) error {
	if strings.Contains(subject, ".DIRECT.GET.") {
		r.began.Add(1)
	}
	return r.Conn.PublishRequest(subject, reply, body)
}

// waiting is told of the requests that wait for a place.
type waiting chan struct{}

func (w waiting) Places(_ string, _, waits int) {
	if waits > 0 {
		w <- struct{}{}
	}
}

func (waiting) PlaceRefused(string, string) {}

// A long read that waits for a place does not keep what it has read meanwhile: it reads again.
func TestMessages_WaitForAPlaceHoldsNoBatch(t *testing.T) {
	t.Parallel()
	l, a := logtest.Start(t), logtest.NewAuthor(1)
	const commits = 400
	a.Write(t, l, commits, 1)
	r := &reads{Conn: l.Conn()}
	conn, err := streams.OpenOn(r, l.Streams().JetStream(), l.Streams().Config())
	logtest.Must(t, err)
	defer conn.Close()
	read := func(ctx context.Context) (n int, err error) {
		for _, err := range conn.Messages(ctx, l.Config().Names.Stream(assets.LogStream), l.Config().Names.Log(logtest.Tenant, a.Thread), 1) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	n, err := read(t.Context())
	logtest.Must(t, err)
	alone := r.began.Load()
	waits := make(waiting, 1)
	places := quota.NewPool("reads", quota.Places{Total: 1}, waits)
	leave, err := places.Try("globex")
	logtest.Must(t, err)
	work := quota.NewWork("acme", places, func(string, float64, time.Time) time.Duration { return 0 })
	defer work.End()
	done := make(chan int)
	go func() {
		n, err := read(work.In(t.Context()))
		if err != nil {
			t.Error(err)
		}
		done <- n
	}()
	<-waits
	leave()
	if got := <-done; n != commits || got != n {
		t.Errorf("%d messages alone, and %d where a place was waited for, of %d", n, got, commits)
	}
	if again := r.began.Load() - alone; again != alone+1 {
		t.Errorf("%d reads began, and %d where a place was waited for: the batch was kept", alone, again)
	}
}
