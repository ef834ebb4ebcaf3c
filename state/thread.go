package state

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// ThreadScope is the thread of a request and its state: values by key, which last until the
// thread is idle for an hour. It is safe for concurrent use.
//
// The first read fetches the state, and later ones show the same with the writes of the request.
// Writes are saved as described in the package documentation; Save saves at once.
type ThreadScope struct {
	ID string

	app     *App
	session string // the session that writes
	user    string // the owner of the thread, if it does not exist yet
	life    int64  // a life that has ended and can only be read; 0: the current one

	loaded, dirty atomic.Bool

	lock    chan struct{}       // held by the goroutine that uses the fields below
	values  *events.KeyedValues // the state as reads show it; nil: not fetched
	size    int64               // at least the bytes of values
	pending writes              // not saved
	sent    *batch              // a batch with unknown outcome
	expires time.Time           // of the state that was fetched; zero if there was none
	ended   bool                // the request has ended

	began        time.Time   // the session
	last         func() bool // reports whether this is the last work of the session
	started      bool        // the log has the session's start
	completed    bool        // and its end
	listeners    []string    // registered by the request, by their log names
	final        bool        // the save in progress is the session's last
	known        []string    // the listeners of the fetched state
	newListeners bool        // some of listeners are not saved yet
}

// newThread returns the thread of a session.
func newThread(a *App, id, user, session string) *ThreadScope {
	return &ThreadScope{ID: id, app: a, user: user, session: session, lock: make(chan struct{}, 1), began: a.opts.Now(), last: func() bool { return true }}
}

// acquire takes the lock. The caller releases it with release.
func (t *ThreadScope) acquire(ctx context.Context) error {
	select {
	case t.lock <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *ThreadScope) release() {
	t.dirty.Store(len(t.pending.ops) > 0 || t.sent != nil || t.newListeners)
	t.loaded.Store(t.values != nil)
	<-t.lock
}

// Loaded reports whether the state was fetched.
func (t *ThreadScope) Loaded() bool { return t.loaded.Load() }

// Dirty reports whether there are writes that are not saved.
func (t *ThreadScope) Dirty() bool { return t.dirty.Load() }

// read calls f with the values. The first call fetches them.
func (t *ThreadScope) read(ctx context.Context, f func(*events.KeyedValues) error) error {
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	if t.ended {
		return &EndedError{SessionID: t.session}
	}
	if t.values == nil {
		if err := t.load(ctx); err != nil {
			return err
		}
	}
	return f(t.values)
}

// load fetches the values and applies the unsaved writes.
func (t *ThreadScope) load(ctx context.Context) error {
	if err := t.resend(ctx); err != nil { // the batch may be in the values already, or be executed later
		return err
	}
	var expires time.Time
	v, err := client.Read(ctx, t.app.opts.Client, events.GetState{ThreadID: t.ID, Life: t.life})
	switch {
	case events.IsNotFound(err) && t.life == 0:
		v = &events.StateValues{}
	case err != nil:
		return err
	case v.ExpiresAt != "" && t.life == 0:
		until, err := events.ParseTime(v.ExpiresAt)
		if err != nil {
			return events.Errorf(events.Unavailable, "read the end of the state of thread %s: %w", t.ID, err)
		}
		expires = until.Go()
	}
	values, err := events.ParseKeyedValues(v.Values)
	if err != nil {
		return events.Errorf(events.Unavailable, "read the state of thread %s: %w", t.ID, err)
	}
	for _, o := range t.pending.ops {
		if err := apply(values, o); err != nil {
			return err
		}
	}
	t.known = v.Listeners
	t.values, t.size, t.expires = values, int64(len(v.Values)+2)+t.pending.size, expires
	return nil
}

// Files returns the files of the thread. A thread that does not exist yet is created, as the first
// save of its state does, so that a visitor can upload before anything else.
func (t *ThreadScope) Files(ctx context.Context) (*client.Files, error) {
	if err := t.acquire(ctx); err != nil {
		return nil, err
	}
	defer t.release()
	if t.ended {
		return nil, &EndedError{SessionID: t.session}
	}
	c := t.app.opts.Client
	_, err := client.Read(ctx, c, events.GetThread{ThreadID: t.ID})
	if events.IsNotFound(err) && t.life == 0 {
		if len(t.pending.ops) == 0 { // a merge needs an operation, and this one changes nothing
			t.pending.add(events.StateOperation{Op: events.DeleteOp, Key: noKey})
		}
		err = t.save(ctx)
	}
	if err != nil {
		return nil, err
	}
	return c.Files(t.ID), nil
}

// Get returns the value of a key, and reports whether it has one. The error is an
// invalid_request if the value is not a T.
func Get[T any](ctx context.Context, t *ThreadScope, key string) (value T, ok bool, err error) {
	err = t.read(ctx, func(v *events.KeyedValues) error {
		var raw []byte
		if raw, ok = v.Value(key); ok {
			value, err = decodeValue[T](key, raw)
		}
		return err
	})
	return value, ok && err == nil, err
}

func decodeValue[T any](key string, raw []byte) (value T, err error) {
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, events.Invalid("", "the value of key %.80q is not a %T: %w", key, value, err)
	}
	return value, nil
}

// Has reports whether a key has a value.
func (t *ThreadScope) Has(ctx context.Context, key string) (has bool, err error) {
	err = t.read(ctx, func(v *events.KeyedValues) error {
		_, has = v.Value(key)
		return nil
	})
	return has, err
}

// Keys returns the keys, in the order in which they were set first.
func (t *ThreadScope) Keys(ctx context.Context) (keys []string, err error) {
	err = t.read(ctx, func(v *events.KeyedValues) error {
		keys = v.Keys()
		return nil
	})
	return keys, err
}

// Size returns the number of keys.
func (t *ThreadScope) Size(ctx context.Context) (n int, err error) {
	err = t.read(ctx, func(v *events.KeyedValues) error {
		n = v.Len()
		return nil
	})
	return n, err
}

// Entry is a key and its value.
type Entry[T any] struct {
	Key   string
	Value T
}

// Entries returns the keys and their values, in the order of Keys. The error is an
// invalid_request if a value is not a T.
func Entries[T any](ctx context.Context, t *ThreadScope) (entries []Entry[T], err error) {
	err = t.read(ctx, func(v *events.KeyedValues) error {
		entries = make([]Entry[T], 0, v.Len())
		for _, key := range v.Keys() {
			raw, _ := v.Value(key)
			value, err := decodeValue[T](key, raw)
			if err != nil {
				return err
			}
			entries = append(entries, Entry[T]{key, value})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Values returns the values, in the order of Keys. The error is an invalid_request if a value
// is not a T.
func Values[T any](ctx context.Context, t *ThreadScope) ([]T, error) {
	entries, err := Entries[T](ctx, t)
	if err != nil {
		return nil, err
	}
	values := make([]T, len(entries))
	for i, e := range entries {
		values[i] = e.Value
	}
	return values, nil
}

// end drops unsaved writes, and refuses all further use. renew reports whether the life of the
// state must be renewed because the request has read it. completed reports whether the log needs
// no end of the session, because it has the end already or not even the start.
func (t *ThreadScope) end() (renew, completed bool) {
	t.lock <- struct{}{}
	defer t.release()
	if !t.expires.IsZero() && !t.began.IsZero() { // reads of a listener are no activity
		idle := t.app.opts.idle()
		renew = t.app.opts.Now().Add(idle).Sub(t.expires) >= events.RenewEvery(idle)
	}
	t.ended, t.values, t.pending, t.sent, t.newListeners = true, nil, writes{}, nil, false
	return renew, !t.started || t.completed
}

// drop drops unsaved writes, and returns some of their keys.
func (t *ThreadScope) drop() []string {
	t.lock <- struct{}{}
	defer t.release()
	ops := t.pending.ops
	if t.sent != nil {
		ops = slices.Concat(t.sent.ops, ops)
	}
	var keys []string
	for _, o := range ops[:min(len(ops), 10)] {
		keys = append(keys, excerpt.Head(o.Key, 100))
	}
	t.values, t.pending, t.sent, t.newListeners = nil, writes{}, nil, false
	return keys
}
