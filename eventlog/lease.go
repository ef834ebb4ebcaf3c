package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/skein-threads/skein/eventlog/streams"
)

// leaseTTL is how long a lease outlives its holder. It is renewed three times
// as often, and given up while a third of it is left.
const leaseTTL = 6 * time.Second

// leases gives the bucket of leases: they end by themselves.
func (l *Log) leases() streams.Asset {
	a := l.bucket(LeaseBucket)
	a.Config.Description, a.Config.MaxAge, a.Config.PersistMode = "Skein: who runs what, now.", l.leaseTTL, jetstream.DefaultPersistMode
	// In memory: who held a lease when the server went down holds nothing when it
	// is back, and whoever waits need not wait for that.
	a.Config.Storage = jetstream.MemoryStorage
	a.Config.AllowAtomicPublish = false // no fence writes it
	return a
}

// Hold runs work while this process holds the lease of that name, and waits for
// the lease otherwise, until ctx ends. When the lease is lost the context of
// work ends; what work still writes then is refused by its [Fence]. Work that
// returns early, with or without an error, is begun again after a pause.
func (l *Log) Hold(ctx context.Context, name string, work func(context.Context) error) {
	owner := nuid.Next()
	for ctx.Err() == nil {
		if err := l.holdOnce(ctx, name, owner, work); err != nil && ctx.Err() == nil {
			l.logger.Warn().Err(err).Str("lease", name).Msg("work under a lease was interrupted; it begins again")
		}
		streams.Sleep(ctx, l.leaseTTL/6)
	}
}

func (l *Log) holdOnce(ctx context.Context, name, owner string, work func(context.Context) error) error {
	looking, cancel := context.WithTimeout(ctx, l.leaseTTL/3)
	defer cancel()
	kv, err := l.conn.JetStream().KeyValue(looking, l.cfg.Names.Bucket(LeaseBucket))
	if err != nil {
		return fmt.Errorf("the bucket of leases: %w", err)
	}
	held := &lease{kv: kv, name: name, owner: owner, ttl: l.leaseTTL}
	for held.take(ctx) != nil {
		if !streams.Sleep(ctx, l.leaseTTL/6) {
			return nil
		}
	}
	l.logger.Debug().Str("lease", name).Msg("lease taken")
	holding, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	done := make(chan error, 1)
	go func() { done <- work(holding) }()
	renew := time.NewTicker(l.leaseTTL / 3)
	defer renew.Stop()
	for {
		select {
		case err := <-done:
			held.release(ctx)
			return err
		case <-renew.C:
			err := held.renew(ctx)
			if err == nil || ctx.Err() != nil || held.safe() && !errors.Is(err, errTaken) {
				continue // or work ends by itself
			}
			err = fmt.Errorf("lease %s was lost: %w", name, err)
			lose(err)
			<-done
			return err
		}
	}
}

// lease is a key of the bucket of leases that this process holds.
type lease struct {
	kv          jetstream.KeyValue
	name, owner string
	ttl         time.Duration
	revision    uint64
	until       time.Time // when it ends if it is not renewed; never later than the server thinks

	seen  uint64    // the revision that another holder was last seen with
	since time.Time // when it was first seen
}

var errTaken = errors.New("another process has it")

func (h *lease) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/6)
	defer cancel()
	began := time.Now()
	revision, err := h.kv.Create(ctx, h.name, []byte(h.owner))
	if errors.Is(err, jetstream.ErrKeyExists) {
		revision, err = h.inherit(ctx)
	}
	if err == nil {
		h.revision, h.until = revision, began.Add(h.ttl)
	}
	return err
}

// inherit takes the lease of a holder that has not renewed it for as long as it
// lasts. The server ends such a lease by the time of day, and so too late when its
// clock has been set back since it was stored.
func (h *lease) inherit(ctx context.Context) (uint64, error) {
	entry, err := h.kv.Get(ctx, h.name)
	if err != nil {
		return 0, err
	}
	if entry.Revision() != h.seen {
		h.seen, h.since = entry.Revision(), time.Now()
	}
	if time.Since(h.since) <= h.ttl {
		return 0, errTaken
	}
	return h.kv.Update(ctx, h.name, []byte(h.owner), h.seen)
}

// renew makes the lease last. It returns errTaken if somebody else has it.
func (h *lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/6)
	defer cancel()
	began := time.Now()
	revision, err := h.kv.Update(ctx, h.name, []byte(h.owner), h.revision)
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
		return errTaken
	}
	return err
}

// safe reports whether the lease lasts until the next renewal.
func (h *lease) safe() bool { return time.Now().Before(h.until.Add(-h.ttl / 3)) }

// release gives the lease back. If that fails, it ends by itself.
func (h *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.ttl/6)
	defer cancel()
	_ = h.kv.Purge(ctx, h.name, jetstream.LastRevision(h.revision))
}
