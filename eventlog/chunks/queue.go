package chunks

import (
	"context"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
)

// Limits of the chunks of one execution that wait to be written.
const (
	// mergeFrom is how many chunks wait before deltas are merged. Each is sent
	// on its own while the server keeps up.
	mergeFrom = 1
	// mergedBytes bounds the text of a merged delta.
	mergedBytes = 32 << 10
	// MaxWaitingBytes bounds the chunks that wait; beyond it Emit blocks.
	MaxWaitingBytes = 8 << 20
)

// chunk is a chunk that has no number yet.
type chunk struct {
	at    time.Time // when it was emitted, or the first part of it
	step  string
	kind  string
	data  events.JSON // nil if it is a delta
	delta *growing
	size  int
}

// growing is a delta that more text can be added to.
type growing struct {
	key  string
	text []byte
}

// body returns the chunk's data.
func (c *chunk) body() (events.JSON, error) {
	if c.delta == nil {
		return c.data, nil
	}
	return events.DeltaData(c.kind, events.Delta{Key: c.delta.key, Text: string(c.delta.text)})
}

// queue holds the chunks that wait to be written, in order.
type queue struct {
	mu      sync.Mutex // guards what follows
	waiting []chunk
	bytes   int
	closed  bool
	room    chan struct{} // closed when a chunk was taken; nil if no caller waits for that

	more chan struct{} // of capacity 1: there may be something to write, or an end
}

func (q *queue) init() { q.more = make(chan struct{}, 1) }

// wake lets next look again.
func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default: // it will
	}
}

// put adds a chunk. If there is no room for it, it returns a channel that is
// closed when there may be.
func (q *queue) put(c chunk) (room <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrEnded
	}
	if q.bytes > 0 && q.bytes+c.size > MaxWaitingBytes {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		return q.room, nil
	}
	q.bytes += c.size
	if !q.merge(c) {
		q.waiting = append(q.waiting, c)
	}
	q.wake()
	return nil, nil
}

// merge adds a delta to the last waiting chunk, if many wait and it continues the same
// text, which keeps the order.
func (q *queue) merge(c chunk) bool {
	if c.delta == nil || len(q.waiting) < mergeFrom {
		return false
	}
	last := &q.waiting[len(q.waiting)-1]
	if last.delta == nil || last.kind != c.kind || last.step != c.step || last.delta.key != c.delta.key ||
		len(last.delta.text)+len(c.delta.text) > mergedBytes {
		return false
	}
	last.delta.text = append(last.delta.text, c.delta.text...)
	last.size += c.size
	return true
}

// next waits for the next chunk. It returns none once the queue is closed and
// empty, or ctx has ended.
func (q *queue) next(ctx context.Context) (chunk, bool) {
	for {
		q.mu.Lock()
		switch {
		case ctx.Err() != nil:
			q.mu.Unlock()
			return chunk{}, false
		case len(q.waiting) > 0:
			c := q.waiting[0]
			q.waiting[0] = chunk{}
			if q.waiting = q.waiting[1:]; len(q.waiting) == 0 {
				q.waiting = nil
			}
			q.bytes -= c.size
			q.roomMade()
			q.mu.Unlock()
			return c, true
		case q.closed:
			q.mu.Unlock()
			return chunk{}, false
		}
		q.mu.Unlock()
		<-q.more
	}
}

func (q *queue) roomMade() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// close refuses further chunks.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}

// drop closes the queue and discards the chunks that wait.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting, q.bytes = true, nil, 0
	q.roomMade()
}
