package derived

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/retry"
)

// LeaseTTL is how long a lease outlives its holder. It is renewed three times as often,
// and given up while a third of it is left.
const LeaseTTL = 6 * time.Second

// Leases acquires leases in the name of this process.
type Leases struct {
	conn   *streams.Conn
	logger *zerolog.Logger
	ttl    time.Duration
}

// LeasesOn returns the leases of a connection's streams.
func LeasesOn(conn *streams.Conn, logger *zerolog.Logger) *Leases {
	return &Leases{conn: conn, logger: logger, ttl: LeaseTTL}
}

// Hold runs work while this process holds the lease of that name, and waits for the
// lease otherwise, until ctx ends. When the lease is lost the context of work is
// canceled; what work still writes then is refused by its [Fence]. Work that returns
// early, with or without an error, is started again after a pause.
func (l *Leases) Hold(ctx context.Context, name string, work func(context.Context) error) {
	owner := rand.Text()
	for ctx.Err() == nil {
		if err := l.holdOnce(ctx, name, owner, work); err != nil && ctx.Err() == nil {
			l.logger.Warn().Err(err).Str("lease", name).Msg("work under a lease was interrupted; it is started again")
		}
		retry.Sleep(ctx, l.ttl/6)
	}
}

func (l *Leases) holdOnce(ctx context.Context, name, owner string, work func(context.Context) error) error {
	held := &lease{conn: l.conn, name: name, owner: owner, ttl: l.ttl}
	another := false // has had it
	for err := l.acquire(ctx, held); err != nil; err = l.acquire(ctx, held) {
		switch {
		case errors.Is(err, errNoBucket):
			return err
		case errors.Is(err, ErrTaken) && !another:
			another = true
			l.logger.Debug().Str("lease", name).Msg("another process has the lease; waiting for it")
		}
		if !retry.Sleep(ctx, l.ttl/6) {
			return nil
		}
	}
	if another {
		l.logger.Info().Str("lease", name).Msg("this process has taken over")
	} else {
		l.logger.Debug().Str("lease", name).Msg("lease taken")
	}
	holding, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	done := make(chan error, 1)
	go func() { done <- work(holding) }()
	if err := l.renewUntil(ctx, held, done); err != nil {
		err = fmt.Errorf("lease %s was lost: %w", name, err)
		lose(err)
		<-done
		return err
	}
	held.release(ctx)
	return <-done
}

// renewUntil renews a lease until its work is done. It also renews it when the connection is
// re-established, because a server that was restarted has lost the lease. It returns why the
// lease is lost, or nil when a value waits in done.
func (l *Leases) renewUntil(ctx context.Context, held *lease, done chan error) error {
	connected, stop := l.conn.Connects()
	defer stop()
	renew := time.NewTicker(l.ttl / 3)
	defer renew.Stop()
	for {
		select {
		case err := <-done:
			done <- err // never blocks: it buffers one
			return nil
		case <-renew.C:
		case <-connected:
		}
		err := held.renew(ctx)
		if err == nil || ctx.Err() != nil || held.safe() && !errors.Is(err, ErrTaken) && !l.gone(ctx, err) {
			continue // or work ends by itself
		}
		return err
	}
}

// lease is a key of the bucket of leases that this process holds.
type lease struct {
	conn        *streams.Conn
	kv          jetstream.KeyValue
	name, owner string
	ttl         time.Duration
	revision    uint64
	until       time.Time // when it ends if it is not renewed; never later than the server thinks

	seen  uint64    // the revision that another holder was last seen with
	since time.Time // when it was first seen
}

// ErrTaken means that another process holds a lease.
var ErrTaken = errors.New("another process has it")

// Lock waits until this process has the lease of that name, for a short task that one
// process at a time may do, and returns a function that releases it. It returns ErrTaken
// if ctx ends first. If the process dies, the lease expires.
func (l *Leases) Lock(ctx context.Context, name string) (release func(), err error) {
	held := &lease{conn: l.conn, name: name, owner: rand.Text(), ttl: l.ttl}
	for attempts := (retry.Policy{First: time.Millisecond, Max: 100 * time.Millisecond, Jitter: true}).Start(); ; {
		switch err := l.acquire(ctx, held); {
		case err == nil:
			return func() { held.release(ctx) }, nil
		case errors.Is(err, errNoBucket):
			return nil, err
		}
		if attempts.Wait(ctx) != nil {
			return nil, fmt.Errorf("lease %s: %w", name, ErrTaken)
		}
	}
}

// acquire tries to acquire a lease once. The error is ErrTaken if another process has it.
func (l *Leases) acquire(ctx context.Context, h *lease) error {
	if h.kv == nil {
		kv, err := l.bucket(ctx)
		if err != nil {
			return err
		}
		h.kv = kv
	}
	err := h.acquire(ctx)
	if err != nil && !errors.Is(err, ErrTaken) {
		h.kv = nil // the bucket may be gone: it is looked up before the next attempt
	}
	return err
}

func (h *lease) acquire(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/6)
	defer cancel()
	began := time.Now()
	revision, err := h.kv.Create(ctx, h.name, []byte(h.owner))
	h.conn.Config().Writing.AnsweredAs(err) // a process that has nothing to write learns of the store so
	if errors.Is(err, jetstream.ErrKeyExists) {
		revision, err = h.inherit(ctx)
	}
	if err == nil {
		h.revision, h.until = revision, began.Add(h.ttl)
	}
	return err
}

// inherit acquires the lease of a holder that has not renewed it for its duration, as a server
// whose clock was set back expires it too late, or one that this holder has acquired without
// learning of it: its request was sent, or answered, after it was given up.
func (h *lease) inherit(ctx context.Context) (uint64, error) {
	entry, err := h.kv.Get(ctx, h.name)
	if err != nil {
		return 0, err
	}
	if string(entry.Value()) == h.owner {
		return h.kv.Update(ctx, h.name, []byte(h.owner), entry.Revision())
	}
	if entry.Revision() != h.seen {
		h.seen, h.since = entry.Revision(), time.Now()
	}
	if time.Since(h.since) <= h.ttl {
		return 0, ErrTaken
	}
	return h.kv.Update(ctx, h.name, []byte(h.owner), h.seen)
}

// renew extends the lease. It returns ErrTaken if another process has it.
func (h *lease) renew(ctx context.Context) error {
	if h.others(ctx) {
		return ErrTaken
	}
	ctx, cancel := context.WithTimeout(ctx, h.ttl/6)
	defer cancel()
	began := time.Now()
	revision, err := h.kv.Update(ctx, h.name, []byte(h.owner), h.revision)
	h.conn.Config().Writing.AnsweredAs(err)
	if err == nil {
		h.revision, h.until = revision, began.Add(h.ttl)
		return nil
	}
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return err
	}
	entry, lookErr := h.kv.Get(ctx, h.name)
	switch {
	case lookErr == nil && string(entry.Value()) == h.owner:
		h.revision = entry.Revision() // an earlier renewal was stored and its answer lost
		return err
	case lookErr == nil || errors.Is(lookErr, jetstream.ErrKeyNotFound):
		return ErrTaken
	}
	return err
}

// others reports whether the lease is another's. A bucket that was created again counts its
// revisions from 1, so that another holder's may be the one that this holder knows.
func (h *lease) others(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/12)
	defer cancel()
	entry, ok, err := h.conn.Bucket(LeaseBucket).Newest(ctx, h.name)
	return err == nil && ok && string(entry.Data) != h.owner
}

// safe reports whether the lease lasts until the next renewal.
func (h *lease) safe() bool { return time.Now().Before(h.until.Add(-h.ttl / 3)) }

// release ends the lease. If that fails, it expires.
func (h *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.ttl/6)
	defer cancel()
	if h.others(ctx) {
		return
	}
	_ = h.kv.Purge(ctx, h.name, jetstream.LastRevision(h.revision))
}
