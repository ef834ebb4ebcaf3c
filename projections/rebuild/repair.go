package rebuild

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// correction is a write that corrects one key, if the key has not changed since the
// comparison.
type correction struct {
	kind     documents.Kind
	bucket   string
	key      string
	expected uint64        // the sequence of the key's last message in the bucket; 0: there is none
	doc      []byte        // nil: there must be no document
	large    *buckets.Stub // doc is this stub, whose pieces come first; nil: it is the document
	seq      uint64        // in the log, for the marker
	thread   threadName
	mark     buckets.Mark // of a thread's own document
	piece    bool         // it is a piece of a large document
}

func (c correction) size() int {
	if c.large != nil {
		return c.large.Bytes
	}
	return len(c.doc)
}

// repairer writes corrections in bursts. Each burst fences the runner off once; after it
// the repairer waits until the runner has started again and caught up.
type repairer struct {
	*rebuilding

	mu      sync.Mutex // guards what follows; held during a burst, so that workers wait
	waiting []correction
	bytes   int
	alone   bool // no runner runs
}

// Limits of a burst.
const (
	burstWrites = 1000
	burstBytes  = 8 << 20
)

// add adds a correction, and writes all that wait if they are enough.
func (w *repairer) add(ctx context.Context, c correction) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, c)
	w.bytes += c.size()
	if len(w.waiting) < burstWrites && w.bytes < burstBytes {
		return nil
	}
	return w.burst(ctx)
}

// finish writes what waits. Documents that the runner has changed meanwhile are compared
// again, until all are right.
func (w *repairer) finish(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.burst(ctx)
}

// burst writes what waits, until none is left.
func (w *repairer) burst(ctx context.Context) error {
	const tries = 200
	for try := 0; len(w.waiting) > 0; try++ {
		lost, err := w.write(ctx)
		if err != nil {
			return err
		}
		clear(w.waiting)
		w.waiting, w.bytes = w.waiting[:0], 0
		if err := w.giveWay(ctx); err != nil {
			return err
		}
		if err := w.position(ctx, false); err != nil {
			return err
		}
		if try == tries {
			return fmt.Errorf("%d threads change faster than their documents can be repaired; begin again", len(lost))
		}
		for name := range lost {
			if err := w.again(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// again compares a thread whose documents have changed since they were compared.
func (w *repairer) again(ctx context.Context, name threadName) error {
	t, err := w.compareAlone(ctx, name)
	if err != nil {
		return err
	}
	list, err := t.corrections()
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.expected == 0 {
			if c.expected, err = w.markerOf(ctx, c); err != nil {
				return err
			}
		}
		w.waiting = append(w.waiting, c)
		w.bytes += c.size()
	}
	return nil
}

// markerOf returns the sequence of the marker under a key without a document, 0 if
// there is none.
func (w *repairer) markerOf(ctx context.Context, c correction) (uint64, error) {
	bucket := w.log.Bucket(c.bucket)
	stream, err := w.log.Streams().Stream(ctx, bucket.Stream())
	if err != nil {
		return 0, fmt.Errorf("the bucket %s: %w", c.bucket, err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, bucket.Subject(c.key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading %s %s: %w", c.bucket, c.key, err)
	case m.Header.Get(buckets.HeaderOperation) == "":
		return 0, nil // there is a document by now: the write is refused, and it is compared again
	}
	return m.Sequence, nil
}

// write sends every waiting correction, and returns the threads that are to be
// compared again: some keys have changed, and were not written.
func (w *repairer) write(ctx context.Context) (map[threadName]bool, error) {
	type sent struct {
		correction
		ack jetstream.PubAckFuture
	}
	lost := map[threadName]bool{}
	var all []sent
	for _, c := range w.waiting {
		if c.expected == 0 {
			// While a document was missing, the runner may have skipped it, or have
			// deleted its thread: that shows when it is compared again.
			lost[c.thread] = true
		}
		m := &nats.Msg{Subject: w.log.Bucket(c.bucket).Subject(c.key), Data: c.doc, Header: nats.Header{}}
		switch {
		case c.doc == nil:
			m.Header = buckets.Marker(c.seq)
		case c.large != nil:
			m.Header = c.large.Header()
			for _, piece := range c.large.Pieces() {
				key := documents.PieceKey(c.thread.String(), piece.Digest)
				ack, err := w.log.JetStream().PublishMsgAsync(&nats.Msg{
					Subject: w.log.Bucket(c.bucket).Subject(key), Data: piece.Data, Header: nats.Header{jetstream.MsgIDHeader: {rand.Text()}},
				})
				if err != nil {
					return nil, fmt.Errorf("repairing %s %s: %w", c.bucket, key, err)
				}
				all = append(all, sent{correction{bucket: c.bucket, key: key, piece: true}, ack})
			}
		}
		if c.doc != nil {
			for name, values := range c.mark.Header() {
				m.Header[name] = values
			}
		}
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(c.expected, 10)}
		// The runner's fence looks at the id: without one it would not see this write
		// before its own next one is stored.
		m.Header[jetstream.MsgIDHeader] = []string{rand.Text()}
		ack, err := w.log.JetStream().PublishMsgAsync(m)
		if err != nil {
			return nil, fmt.Errorf("repairing %s %s: %w", c.bucket, c.key, err)
		}
		all = append(all, sent{c, ack})
	}
	repaired := int64(0)
	for _, s := range all {
		select {
		case <-s.ack.Ok():
			if !s.piece {
				repaired++
			}
		case err := <-s.ack.Err():
			if !buckets.IsConflict(err) {
				return nil, fmt.Errorf("repairing %s %s: %w", s.bucket, s.key, err)
			}
			if s.thread.thread != "" { // a document of no thread that was written again has one
				lost[s.thread] = true
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	w.count(0, 0, 0, repaired)
	return lost, nil
}

// giveWay blocks until the runner, if one runs, has caught up with the present log: a
// repair interrupts it, and repairs without a pause would keep it from running.
func (w *repairer) giveWay(ctx context.Context) error {
	if w.alone {
		return nil
	}
	end, err := w.log.LastSeq(ctx)
	if err != nil {
		return err
	}
	p := w.models.Of(documents.Threads)
	first, last := uint64(0), uint64(0)
	for start := time.Now(); time.Since(start) < 2*time.Second; {
		c, err := buckets.ReadCheckpoint(ctx, w.log, p)
		if err != nil {
			return err
		}
		if c.Checkpoint != nil {
			if c.Seq >= end {
				return nil
			}
			if first == 0 {
				first = c.Seq
			}
			last = c.Seq
		}
		if !retry.Sleep(ctx, 10*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	w.alone = first == last
	return nil
}
