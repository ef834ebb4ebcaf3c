package chunks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Run identifies the run whose chunks are written. All fields but Since are required.
type Run struct {
	Tenant, Thread, Execution string

	Token   int64     // of the worker's claim, from 1
	Version int64     // of the thread with that claim, from 1
	Since   time.Time // when the execution was made; unknown if zero
}

// Validate returns an invalid_request if a field is missing or invalid.
func (r Run) Validate() error {
	switch {
	case !events.ValidTenant(r.Tenant):
		return events.Invalid("/tenant", "%q is no tenant", r.Tenant)
	case !events.ValidThreadID(r.Thread):
		return events.Invalid("/threadId", "%q is no thread's id", r.Thread)
	case !events.ValidID(r.Execution):
		return events.Invalid("/executionId", "%q is no execution's id", r.Execution)
	case r.Token < 1 || r.Token > maxToken:
		return events.Invalid("/token", "%d is no claim's token; the first is 1", r.Token)
	case r.Version < 1:
		return events.Invalid("/version", "%d is no thread's version", r.Version)
	}
	return nil
}

// Writer writes the chunks of one execution for one claim. It is
// safe for concurrent use. End it with Finish or Close.
//
// The chunks of an execution are numbered from 0, across all claims. A chunk is stored only
// directly after the one before it, so that no stored number is missing, repeated or out of
// order, and the chunks of an older claim end where those of a newer one begin.
type Writer struct {
	log  *eventlog.Log
	conn *streams.Conn
	run  Run
	subj string

	queue   queue
	stop    context.CancelCauseFunc // abandons waiting chunks
	stopped chan struct{}           // closed when nothing is written any more
	back    chan nats.Status        // the connection is back

	// Only the goroutine that writes uses these.
	begun    bool   // a chunk of its own is stored
	looked   bool   // the stream has been asked where it ends
	expected uint64 // the sequence of the last chunk there, 0 if there is none
	next     int64  // the number of the next chunk
	reply    string // where acknowledgements go
	answers  <-chan *nats.Msg
	release  func()      // ends that
	late     *time.Timer // when one is waited for no longer

	mu  sync.Mutex // guards what follows
	err error      // why it ended before its time
}

// ErrEnded means that the caller has ended a writer of chunks.
var ErrEnded = errors.New("the chunks of this claim have been ended")

// NewWriter returns a writer of an execution's chunks for a claim. It continues with the
// number after the last stored one; nothing is read or written before the first chunk.
func NewWriter(log *eventlog.Log, run Run) (*Writer, error) {
	if err := run.Validate(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	w := &Writer{
		log: log, conn: log.Streams(), run: run, subj: log.Config().Names.Chunk(run.Tenant, run.Thread, run.Execution),
		stop: stop, stopped: make(chan struct{}), back: log.Conn().StatusChanged(nats.CONNECTED),
	}
	// The first claim finds nothing there, and need not look. If there are chunks after
	// all, its first one is refused, and it looks.
	w.looked = run.Token == 1
	w.queue.init()
	go w.writeQueued(ctx)
	return w, nil
}

// Emit writes a chunk of a step, or of none. It does not wait for the server: chunks are
// queued. Where more than a few wait, deltas of one text are merged. Only when
// MaxWaitingBytes wait, because the server is away, does it block until there is room or
// ctx ends.
//
// The error is an invalid_request or payload_too_large for an invalid chunk (nothing is
// written, and others can follow), ErrEnded, a *streams.FencedError if a newer claim
// writes, or the context's.
func (w *Writer) Emit(ctx context.Context, stepID, kind string, data events.JSON) error {
	if kind == events.ChunkFinish {
		return events.Invalid("/type", "a run is finished when it is over, and not by a chunk of its reactor")
	}
	if stepID != "" && !events.ValidID(stepID) {
		return events.Invalid("/stepId", "%q is no step's id", stepID)
	}
	delta, err := events.CheckChunk(kind, data)
	if err != nil {
		return err
	}
	if limit := w.maxBytes(); int64(len(data)) > limit {
		return events.TooLarge("the chunk's data", int64(len(data)), limit)
	}
	c := chunk{at: time.Now(), step: stepID, kind: kind, data: append(events.JSON(nil), data...), size: len(data)}
	if delta != nil {
		c.data, c.delta = nil, &growing{key: delta.Key, text: []byte(delta.Text)}
	}
	return w.put(ctx, c)
}

// maxBytes returns the greatest size of a chunk's data: what the contract says, or less if
// this server accepts less.
func (w *Writer) maxBytes() int64 {
	const envelope = 4 << 10
	if limit := w.conn.NATS().MaxPayload(); limit > envelope {
		return min(limit-envelope, events.MaxEventBytes)
	}
	return events.MaxEventBytes
}

func (w *Writer) put(ctx context.Context, c chunk) error {
	for {
		room, err := w.queue.put(c)
		switch {
		case err != nil:
			return w.endReason(err)
		case room == nil:
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.stopped:
			return w.endReason(ErrEnded)
		}
	}
}

// Finish writes the chunk that ends the run, and waits until all chunks are stored. Call
// it after the commit that ends the execution, so that a reader who sees the end can read
// the outcome. If ctx ends first, unstored chunks are discarded; readers learn of the end
// from the execution.
func (w *Writer) Finish(ctx context.Context, end events.Finish) error {
	data, err := json.Marshal(end, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := w.put(ctx, chunk{at: time.Now(), kind: events.ChunkFinish, data: data, size: len(data)}); err != nil {
		w.stop(ErrEnded)
		<-w.stopped
		return err
	}
	return w.Close(ctx)
}

// Close ends the writer without ending the run, which waits or continues in another
// worker, and waits until all chunks are stored. If ctx ends first, the rest is
// discarded. It may be called twice.
func (w *Writer) Close(ctx context.Context) error {
	w.queue.close()
	select {
	case <-w.stopped:
	case <-ctx.Done():
		w.stop(fmt.Errorf("the last chunks were given up: %w", context.Cause(ctx)))
		<-w.stopped
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// endReason returns why a writer ended, if the caller did not end it.
func (w *Writer) endReason(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return err
}

// writeQueued writes queued chunks until the writer is ended, is fenced, or the log is
// closed.
func (w *Writer) writeQueued(ctx context.Context) {
	defer close(w.stopped)
	defer w.conn.NATS().RemoveStatusListener(w.back)
	defer w.dropAnswers()
	defer w.stop(nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, w.queue.wake)()
	go func() {
		select {
		case <-w.log.Closing():
			cancel(&eventlog.UnavailableError{Cause: errors.New("this process stops")})
		case <-ctx.Done():
		}
	}()
	for {
		c, ok := w.queue.next(ctx)
		if !ok {
			break
		}
		if err := w.store(ctx, &c); err != nil {
			w.fail(err)
			break
		}
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrEnded) {
		w.fail(context.Cause(ctx))
	}
	w.queue.drop()
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}
