package chunks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// When all chunks of a run have expired, their number is unknown. The next claim then
// begins at a number that no earlier one can have reached.
const (
	claimNumbers = 1_000_000_000          // for each claim
	maxToken     = 1 << 53 / claimNumbers // numbers stay exact in JSON
)

// store stores a chunk with the next number. It continues over a lost connection, a lost
// acknowledgement, and an outage of the server. The error means that a newer claim
// writes, that the chunk can never be stored, or that ctx ended.
func (w *Writer) store(ctx context.Context, c *chunk) error {
	var body []byte  // with the number of
	var number int64 // this chunk
	tried := false   // it may be stored
	attempts := retry.Policy{First: time.Millisecond, Max: time.Second}.Start()
	again := func() error { return w.pause(ctx, attempts) }
	for {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case w.conn.NATS().IsClosed():
			return &eventlog.UnavailableError{Cause: nats.ErrConnectionClosed}
		case !w.conn.NATS().IsConnected(): // a request would wait for it
			w.looked = false
			if err := again(); err != nil {
				return err
			}
			continue
		}
		if !w.looked {
			stored, err := w.readLast(ctx, body, tried)
			switch {
			case stored:
				return nil
			case streams.IsFenced(err):
				return err
			case err != nil:
				if err := again(); err != nil {
					return err
				}
				continue
			}
		}
		if body == nil || number != w.next {
			var err error
			if body, err = w.event(c); err != nil {
				return err
			}
			number = w.next
		}
		ack, err := w.publish(ctx, body)
		switch outcome := streams.Classify(err, ack.Error); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case outcome == streams.Stored:
			w.isStored(ack.Seq)
			return nil
		case outcome == streams.Conflict, outcome == streams.InFlight:
			w.looked, tried = false, true
		case outcome == streams.TooLarge:
			// Emit checked the server's limit, which was lowered since.
			w.log.Logger().Warn().Str("execution", w.run.Execution).Int("bytes", len(body)).Msg("a chunk is larger than the server takes, and is left out")
			return nil
		default:
			w.looked, tried = false, true
			if err := again(); err != nil {
				return err
			}
		}
	}
}

// readLast reads the execution's last chunk in the stream, and decides how to continue.
// It reports whether that is the chunk with this body, which was tried.
func (w *Writer) readLast(ctx context.Context, body []byte, tried bool) (stored bool, err error) {
	stream := w.log.Config().Names.Stream(assets.ChunkStream)
	last, err := w.conn.Leader(ctx, stream, streams.GetRequest{Last: w.subj}) // with a lagging copy the next write would be refused again
	if err != nil && !errors.Is(err, streams.ErrNoMessage) {
		return false, err
	}
	if err != nil {
		if w.next == 0 && !w.young() {
			w.next = (w.run.Token - 1) * claimNumbers
		}
		w.looked, w.expected = true, 0
		return false, nil
	}
	d, err := decodeChunk(last.Data)
	switch {
	case err != nil:
		// Only Skein writes here. A message that cannot be read has no number.
		d = events.ChunkEmitted{Index: w.next - 1}
		w.log.Metrics().Broken("chunks", last.Seq)
	case tried && bytes.Equal(last.Data, body):
		w.isStored(last.Seq)
		return true, nil
	case d.Attempt > w.run.Token, d.Attempt == w.run.Token && w.begun && d.Index >= w.next:
		return false, &streams.FencedError{Stream: stream, Cause: fmt.Errorf("claim %d of execution %s writes chunk %d", d.Attempt, w.run.Execution, d.Index)}
	}
	w.looked, w.expected = true, last.Seq
	if !w.begun { // numbers of an older claim do not count once this one has begun
		w.next = d.Index + 1
	}
	return false, nil
}

// isStored records that the chunk with the next number has that sequence.
func (w *Writer) isStored(seq uint64) {
	w.looked, w.begun, w.expected = true, true, seq
	w.next++
}

// young reports whether the run is so young that no chunk of it can have
// expired. The clocks of two machines may differ.
func (w *Writer) young() bool {
	return w.run.Token == 1 || !w.run.Since.IsZero() && time.Since(w.run.Since) < w.log.Config().ChunkAge/2
}

// event returns the chunk's event, with the next number.
func (w *Writer) event(c *chunk) ([]byte, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	r := &w.run
	e := events.Event{
		ID:   events.EventID(r.Tenant, r.Thread, r.Execution+"."+strconv.FormatInt(r.Token, 10), int(w.next)),
		Type: events.ChunkEmittedType, Time: events.TimeOf(c.at), Subject: r.Execution, Tenant: r.Tenant, ThreadID: r.Thread,
		Version: r.Version, Correlation: r.Execution,
		Data: events.ChunkEmitted{ExecutionID: r.Execution, Index: w.next, StepID: c.step, Attempt: r.Token, Type: c.kind, Data: data},
	}
	return e.Append(make([]byte, 0, 768+len(data)))
}

// publish sends a chunk and returns its acknowledgement. If the connection was lost
// meanwhile it does not wait for a reply that cannot arrive.
func (w *Writer) publish(ctx context.Context, body []byte) (ack streams.Ack, err error) {
	for len(w.back) > 0 { // signals of the past
		<-w.back
	}
	if w.answers == nil {
		w.reply, w.answers, w.release = w.conn.Expect(1)
	}
	err = w.conn.NATS().PublishMsg(&nats.Msg{
		Subject: w.subj, Reply: w.reply, Data: body,
		Header: nats.Header{events.HeaderType: {events.EventContentType}, streams.HeaderExpected: {strconv.FormatUint(w.expected, 10)}},
	})
	if err != nil {
		return ack, err
	}
	if w.late == nil {
		w.late = time.NewTimer(w.conn.Config().AckTimeout)
	} else {
		w.late.Reset(w.conn.Config().AckTimeout)
	}
	select {
	case m := <-w.answers:
		if m.Header.Get("Status") == "503" {
			return ack, nats.ErrNoResponders
		}
		return ack, json.Unmarshal(m.Data, &ack)
	case <-w.back:
		err = nats.ErrDisconnected
	case <-w.late.C:
		err = nats.ErrTimeout
	case <-ctx.Done():
		err = nats.ErrTimeout
	}
	w.dropAnswers() // a late reply is not the next chunk's
	return ack, err
}

// dropAnswers stops waiting for acknowledgements.
func (w *Writer) dropAnswers() {
	if w.answers != nil {
		w.release()
		w.reply, w.answers, w.release = "", nil, nil
	}
}

// pause waits before the next attempt, or until the connection is back.
func (w *Writer) pause(ctx context.Context, attempts *retry.Attempts) error {
	d, err := attempts.Next()
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
		return nil
	case <-w.back:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
