package threads

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// writerTTL is how long a ReadWriter that does not renew its hold keeps others out.
const writerTTL = events.DefaultWriterMs * time.Millisecond

// ReadWriter is the only writer of a thread until it is disposed. It is safe for concurrent
// use.
type ReadWriter struct {
	id      string
	service *Service // with the token
	token   string
	cancel  context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex // guards what follows
	thread   *Thread
	disposed bool
}

// ExclusiveReadWriter makes the caller the only writer of a thread, which is created if it does
// not exist. While another one is, it returns a *HeldError.
func (s *Service) ExclusiveReadWriter(ctx context.Context, id string) (*ReadWriter, error) {
	if _, err := s.Create(ctx, id); events.HasCode(err, events.Held) {
		return nil, &HeldError{ID: id, Cause: err}
	} else if err != nil && !events.HasCode(err, events.AlreadyExists) {
		return nil, err
	}
	reply, err := s.wrote(s.c.Send(ctx, id, events.ClaimWriter{Holder: "threads " + uuid.NewString()}))
	if events.HasCode(err, events.Held) {
		return nil, &HeldError{ID: id, Cause: err}
	}
	if err != nil {
		return nil, named(id, err)
	}
	holding, cancel := context.WithCancel(context.Background())
	w := &ReadWriter{id: id, token: reply.Result.Token, service: New(client.AsWriter(s.c, reply.Result.Token)), cancel: cancel, done: make(chan struct{})}
	go w.hold(holding)
	if w.thread, err = s.at(ctx, reply); err != nil {
		_ = w.Dispose(ctx) // else the hold ends by itself
		return nil, err
	}
	return w, nil
}

// hold renews the claim until the holder is disposed, or has lost it.
func (w *ReadWriter) hold(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(writerTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		_, err := w.service.c.Send(ctx, w.id, events.RenewWriter{Token: w.token})
		if events.HasCode(err, events.Held, events.NotFound) {
			w.mu.Lock()
			w.disposed = true
			w.mu.Unlock()
			return
		}
	}
}

// Read returns the thread as it is after the last change of this writer.
func (w *ReadWriter) Read() (*Thread, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.disposed {
		return nil, &DisposedError{ID: w.id}
	}
	return clone(w.thread), nil
}

// Update changes the thread as [Service.Update] does, and returns it.
func (w *ReadWriter) Update(ctx context.Context, recipe func(*Thread) error) (*Thread, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.disposed {
		return nil, &DisposedError{ID: w.id}
	}
	t, _, err := w.service.Update(ctx, w.id, recipe)
	if events.HasCode(err, events.Held) { // the hold has ended
		w.disposed = true
		return nil, &DisposedError{ID: w.id}
	}
	if err != nil {
		return nil, err
	}
	w.thread = t
	return clone(t), nil
}

// Write makes the thread the one that is given; see [Service.Update] for what may differ.
func (w *ReadWriter) Write(ctx context.Context, t *Thread) error {
	_, err := w.Update(ctx, func(now *Thread) error {
		v := now.V
		*now = *clone(t)
		now.V = v
		return nil
	})
	return err
}

// Dispose releases the thread. Every change is stored by then. A second call does nothing.
func (w *ReadWriter) Dispose(ctx context.Context) error {
	w.cancel()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.disposed {
		return nil
	}
	w.disposed = true
	_, err := w.service.c.Send(ctx, w.id, events.ReleaseWriter{Token: w.token})
	if events.HasCode(err, events.Held, events.NotFound) { // it has ended before
		return nil
	}
	return err
}
