package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/documents"
)

// correction is a write that makes one key right, if the key still is as it was
// judged.
type correction struct {
	kind     documents.Kind
	bucket   string
	key      string
	expected uint64 // the sequence of the key's last message in the bucket; 0: there is none
	doc      []byte // nil: there is to be no document
	large    *stub  // doc is this stub, whose pieces come first; nil: it is the document
	seq      uint64 // in the log, for the marker
	thread   threadName
	piece    bool // it is a piece of a large document
}

func (c correction) size() int {
	if c.large != nil {
		return c.large.Bytes
	}
	return len(c.doc)
}

// repairer writes corrections in bursts. Each burst fences the runner off once;
// then the runner is given time to begin again and to catch up.
type repairer struct {
	*rebuilding

	mu      sync.Mutex // guards what follows; held during a burst, so that workers wait
	waiting []correction
	bytes   int
	alone   bool // no runner took the time that it was given
}

// Limits of a burst.
const (
	burstWrites = 1000
	burstBytes  = 8 << 20
)

// add takes a correction, and writes all that wait if they are enough.
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

// finish writes what waits. What the runner has changed meanwhile is judged
// anew, until all is right.
func (w *repairer) finish(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.burst(ctx)
}

// burst writes what waits until nothing is left of it.
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

// again judges a thread whose documents have changed since they were judged.
func (w *repairer) again(ctx context.Context, name threadName) error {
	t, err := w.tryAlone(ctx, name)
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

// markerOf gives the sequence of the marker under a key without a document, 0 if
// there is none.
func (w *repairer) markerOf(ctx context.Context, c correction) (uint64, error) {
	stream, err := w.log.JetStream().Stream(ctx, "KV_"+w.log.Config().Names.Bucket(c.bucket))
	if err != nil {
		return 0, fmt.Errorf("the bucket %s: %w", c.bucket, err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, w.subjectOf(c.bucket, c.key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading %s %s: %w", c.bucket, c.key, err)
	case m.Header.Get(headerOperation) == "":
		return 0, nil // a document came: the write is refused, and it is judged anew
	}
	return m.Sequence, nil
}

// write sends every waiting correction, and gives the threads that are to be
// judged again: some keys have changed, and were not written.
func (w *repairer) write(ctx context.Context) (map[threadName]bool, error) {
	type sent struct {
		correction
		ack jetstream.PubAckFuture
	}
	lost := map[threadName]bool{}
	var all []sent
	for _, c := range w.waiting {
		if c.expected == 0 {
			// While a document was missing, the runner may have passed over it, or
			// have ended its thread: that shows when it is judged again.
			lost[c.thread] = true
		}
		m := &nats.Msg{Subject: w.subjectOf(c.bucket, c.key), Data: c.doc, Header: nats.Header{}}
		switch {
		case c.doc == nil:
			m.Header = marker(c.seq)
		case c.large != nil:
			m.Header = c.large.header()
			for _, piece := range c.large.pieces {
				key := documents.PieceKey(c.thread.String(), piece.digest)
				ack, err := w.log.JetStream().PublishMsgAsync(&nats.Msg{
					Subject: w.subjectOf(c.bucket, key), Data: piece.data, Header: nats.Header{jetstream.MsgIDHeader: {nuid.Next()}},
				})
				if err != nil {
					return nil, fmt.Errorf("repairing %s %s: %w", c.bucket, key, err)
				}
				all = append(all, sent{correction{bucket: c.bucket, key: key, piece: true}, ack})
			}
		}
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(c.expected, 10)}
		// The id is what the runner's fence looks at: without one it would not see
		// this write before its own next one is stored.
		m.Header[jetstream.MsgIDHeader] = []string{nuid.Next()}
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
			if !isConflict(err) {
				return nil, fmt.Errorf("repairing %s %s: %w", s.bucket, s.key, err)
			}
			if s.thread.thread != "" { // a stranger that was written again is not one
				lost[s.thread] = true
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	w.count(0, 0, 0, repaired)
	return lost, nil
}

// isConflict reports whether a write was refused because its key has changed.
func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// giveWay waits until the runner has caught up with the log as it is now, if one
// runs: a repair stops it, and repairs without a pause would stop it for good.
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
		c, _, err := readCheckpoint(ctx, w.log, p)
		if err != nil {
			return err
		}
		if c != nil {
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
