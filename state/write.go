package state

import (
	"context"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Limits of one save.
const (
	maxOperations = 10_000
	maxSave       = events.MaxMergeBytes - 4096 // of the operations; the rest is for the other fields of the command
	maxKey        = 1024                        // characters
)

// writes are unsaved operations. For each key there is at most one operation other than a push,
// and the pushes follow it. Overwritten operations are removed.
type writes struct {
	ops  []events.StateOperation
	size int64 // of their JSON
	keys map[string]share
}

// share is the part of the writes that concerns a key.
type share struct {
	ops  int
	size int64
}

// batch holds operations that were sent. They can be sent again with the same id without being
// executed twice.
type batch struct {
	id string
	writes
	merge events.MergeState // the command; a repeat must send it unchanged
}

// sizeOf returns the bytes of an operation as JSON, with separators.
func sizeOf(o events.StateOperation) int64 {
	raw, _ := json.Marshal(events.StateOperation{Op: o.Op, Key: o.Key, Max: o.Max}) // cannot fail for plain values
	return int64(len(raw)+len(o.Value)) + int64(len(`"value":,`)) + 1
}

// overwritten returns which of the writes an operation replaces.
func (w *writes) overwritten(o events.StateOperation) share {
	switch o.Op {
	case events.PushOp:
		return share{}
	case events.ClearOp:
		return share{len(w.ops), w.size}
	default:
		return w.keys[o.Key]
	}
}

// noKey is a key that is never set. Deleting it is the operation of a merge that only saves a
// listener.
const noKey = "skein.listener"

// add adds an operation.
func (w *writes) add(o events.StateOperation) {
	if void := w.overwritten(o); o.Op == events.ClearOp || w.keys == nil {
		*w = writes{keys: map[string]share{}}
	} else if void.ops > 0 {
		w.ops = slices.DeleteFunc(w.ops, func(old events.StateOperation) bool { return old.Key == o.Key })
		w.size -= void.size
		delete(w.keys, o.Key)
	}
	size := sizeOf(o)
	w.ops = append(w.ops, o)
	w.size += size
	w.keys[o.Key] = share{w.keys[o.Key].ops + 1, w.keys[o.Key].size + size}
}

// Set sets the value of a key. It returns an invalid_request error if the value is not JSON, and a
// payload_too_large error if the state, or the writes of the request, would exceed 1 MiB
// (1,048,576 bytes of JSON). An error leaves the state unchanged.
func (t *ThreadScope) Set(ctx context.Context, key string, value any) error {
	raw, err := encodeValue(key, value)
	if err != nil {
		return err
	}
	return t.write(ctx, events.StateOperation{Op: events.SetOp, Key: key, Value: raw})
}

// Push appends a value to the list of a key, which it creates if the key has no value. With max,
// only the last max values are kept. The error is that of Set, or an invalid_request if the value
// of the key is known to be no list; if it is not fetched, saving fails.
func (t *ThreadScope) Push(ctx context.Context, key string, value any, max ...int) error {
	raw, err := encodeValue(key, value)
	if err != nil {
		return err
	}
	o := events.StateOperation{Op: events.PushOp, Key: key, Value: raw}
	switch {
	case len(max) > 1:
		return events.Invalid("", "push to key %.80q: there are %d limits of its list; name one", key, len(max))
	case len(max) == 1 && (max[0] < 1 || max[0] > 1_000_000):
		return events.Invalid("", "push to key %.80q: its list cannot keep %d values; keep 1 to 1,000,000", key, max[0])
	case len(max) == 1:
		o.Max = int64(max[0])
	}
	return t.write(ctx, o)
}

// Delete removes a key, if it is there.
func (t *ThreadScope) Delete(ctx context.Context, key string) error {
	return t.write(ctx, events.StateOperation{Op: events.DeleteOp, Key: key})
}

// Clear removes all keys.
func (t *ThreadScope) Clear(ctx context.Context) error {
	return t.write(ctx, events.StateOperation{Op: events.ClearOp})
}

func encodeValue(key string, value any) (events.JSON, error) {
	raw, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("", "the value of key %.80q cannot be encoded as JSON: %w", key, err)
	}
	return raw, nil
}

// write adds an operation for the next save.
func (t *ThreadScope) write(ctx context.Context, o events.StateOperation) error {
	if err := o.Check(); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(o.Key); n > maxKey || !utf8.ValidString(o.Key) {
		return events.Invalid("", "a key of the state has %d characters; use at most %d, in UTF-8", n, maxKey)
	}
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	switch {
	case t.ended:
		return &EndedError{SessionID: t.session}
	case t.life != 0:
		return events.Errorf(events.IllegalTransition, "life %d of the state of thread %s has ended and can only be read", t.life, t.ID)
	}
	void := t.pending.overwritten(o)
	if size := t.pending.size - void.size + sizeOf(o); size > maxSave {
		return events.TooLarge("what the request has written to the state; call Save in between, or store large data elsewhere: it", size, maxSave)
	}
	if len(t.pending.ops)-void.ops >= maxOperations {
		return events.Errorf(events.PayloadTooLarge, "the request has written %d times to the state; call Save in between", maxOperations)
	}
	if t.values != nil {
		if err := t.show(o); err != nil {
			return err
		}
	}
	t.pending.add(o)
	return nil
}

// show applies an operation to the values that reads show. After an error they are unchanged.
func (t *ThreadScope) show(o events.StateOperation) error {
	size := t.size + sizeOf(o)
	if size <= events.MaxStateBytes {
		if err := apply(t.values, o); err != nil {
			return err
		}
		t.size = size
		return nil
	}
	before := t.values.Encode()
	if err := apply(t.values, o); err != nil {
		return err
	}
	if size = int64(len(t.values.Encode())); size <= events.MaxStateBytes {
		t.size = size
		return nil
	}
	values, err := events.ParseKeyedValues(before)
	if err != nil {
		return events.Errorf(events.Unavailable, "read the state of thread %s: %w", t.ID, err)
	}
	t.values, t.size = values, int64(len(before))
	return events.TooLarge("the thread's state", size, events.MaxStateBytes)
}

func apply(values *events.KeyedValues, o events.StateOperation) error {
	var err error
	switch o.Op {
	case events.SetOp:
		err = values.Set(o.Key, o.Value)
	case events.PushOp:
		err = values.Push(o.Key, o.Value, o.Max)
	case events.DeleteOp:
		values.Delete(o.Key)
	case events.ClearOp:
		values.Clear()
	}
	if err != nil {
		return events.Invalid("", "%w", err)
	}
	return nil
}

// Save stores the unsaved writes, in one commit or not at all. Without writes it sends nothing.
// After an error the writes are still there: correct them with Delete or Set, or call Save again,
// which never makes a push twice.
func (t *ThreadScope) Save(ctx context.Context) error {
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	return t.save(ctx)
}

// saveLast is Save at the end of the request. It also completes the session if no other work of it
// is in progress.
func (t *ThreadScope) saveLast(ctx context.Context) error {
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	t.final = t.last()
	defer func() { t.final = false }()
	return t.save(ctx)
}

func (t *ThreadScope) save(ctx context.Context) error {
	if err := t.resend(ctx); err != nil {
		return err
	}
	t.newListeners = t.newListeners && !t.registered()
	if len(t.pending.ops) == 0 && t.newListeners { // a merge needs an operation, and this one changes nothing
		t.pending.add(events.StateOperation{Op: events.DeleteOp, Key: noKey})
	}
	if len(t.pending.ops) == 0 {
		return nil
	}
	b := &batch{id: uuid.Must(uuid.NewV7()).String(), writes: t.pending, merge: t.merge(t.pending.ops)}
	err := t.send(ctx, b)
	switch {
	case err == nil:
		t.pending, t.newListeners = writes{}, false
	case unsure(err):
		t.sent, t.pending = b, writes{}
	}
	return err
}

// resend sends a batch again after its answer was lost.
func (t *ThreadScope) resend(ctx context.Context) error {
	if t.sent == nil {
		return nil
	}
	err := t.send(ctx, t.sent)
	if err != nil && unsure(err) {
		return err
	}
	if err != nil { // the batch was refused, so the caller can correct the writes
		later := t.pending.ops
		t.pending = t.sent.writes
		for _, o := range later {
			t.pending.add(o)
		}
	}
	t.sent = nil
	return err
}

// send sends operations once.
func (t *ThreadScope) send(ctx context.Context, b *batch) error {
	_, err := t.app.opts.Client.Send(ctx, t.ID, b.merge, client.CommandID(b.id))
	if err == nil {
		t.expires = time.Time{} // the end has moved
		session := b.merge.Session
		t.started, t.completed = true, t.completed || session != nil && session.Completed
	}
	return err
}

// merge returns the command that saves operations.
func (t *ThreadScope) merge(ops []events.StateOperation) events.MergeState {
	return events.MergeState{
		Operations: slices.Clone(ops), Create: true, UserID: t.user, IdleSeconds: int64(t.app.opts.Idle.Seconds()),
		Listeners: append(t.app.opts.everywhere(), t.listeners...), Session: t.ofSession(),
	}
}

// ofSession returns the session fields of a merge; nil if the writer is not a request.
func (t *ThreadScope) ofSession() *events.MergeSession {
	if t.began.IsZero() {
		return nil
	}
	return &events.MergeSession{ID: t.session, StartedAt: events.TimeOf(t.began).String(), Completed: t.final}
}

// registered reports whether the fetched state has all listeners that the request registered.
func (t *ThreadScope) registered() bool {
	for _, name := range t.listeners {
		if !slices.Contains(t.known, name) {
			return false
		}
	}
	return true
}

// Destroy ends the state: its values are cleared once the listeners to its end have run, and the
// thread starts with an empty state. The end is durable when Destroy returns. Earlier writes of
// the request are saved first, so that listeners see them.
func (t *ThreadScope) Destroy(ctx context.Context) error {
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	switch {
	case t.ended:
		return &EndedError{SessionID: t.session}
	case t.life != 0:
		return nil // the life has ended already
	}
	if err := t.save(ctx); err != nil {
		return err
	}
	_, err := t.app.opts.Client.Send(ctx, t.ID, events.DestroyState{})
	if err != nil && !events.IsNotFound(err) { // a thread without state does not exist
		return err
	}
	t.values, t.expires = nil, time.Time{}
	return nil
}

// Touch renews the life of the state, as a read or a write does. It is renewed at most once a
// minute; further calls change nothing.
func (t *ThreadScope) Touch(ctx context.Context) error {
	_, err := t.app.opts.Client.Send(ctx, t.ID, events.TouchState{})
	if events.IsNotFound(err) {
		return nil
	}
	return err
}

// sessionData returns the data of a log line on the thread.
func sessionData(id string) events.JSON {
	return events.JSON(`{"sessionId":` + strconv.Quote(id) + `}`)
}
