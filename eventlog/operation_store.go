package eventlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// KeptOperations is how many reports of each kind are kept.
const KeptOperations = assets.OperationsKept

// Operations keeps what operators' programs report of audits and backups. It is safe for concurrent
// use.
//
//   - A report that was acknowledged is stored, and outlives every process: in the bucket
//     operations, which holds the last [KeptOperations] of each kind. The server drops older ones.
//   - What is stored was validated, is at most [events.MaxOperationBytes] long, and says when it
//     was received: see [events.ParseOperation].
//   - A report is the claim of who sent it. That only operators can send one, and ask for them, is
//     what the server's permissions say: no tenant's account imports the subjects. The bucket is not
//     derived, and not in backups: reports on the log before a restore do not apply to the restored one.
type Operations struct {
	conn *streams.Conn
	now  func() time.Time
}

// OpenOperations returns the store of a connection's streams, and creates its bucket unless it exists. now
// is the clock, usually time.Now.
func OpenOperations(ctx context.Context, conn *streams.Conn, now func() time.Time) (*Operations, error) {
	return &Operations{conn: conn, now: now}, conn.Ensure(ctx, assets.Operations(conn))
}

// Record stores a report, as it was sent. The error is an invalid_request, a payload_too_large, or
// an unavailable.
func (s *Operations) Record(body []byte) error {
	now := s.now()
	o, err := events.ParseOperation(body, now)
	if err != nil {
		return err
	}
	o.RecordedAt = events.TimeOf(now).ISO()
	raw, err := json.Marshal(o, json.Deterministic(true))
	if err != nil {
		return err
	}
	ack, err := s.conn.Publish(&nats.Msg{Subject: s.bucket().Subject(string(o.Kind)), Data: raw})
	if streams.Classify(err, ack.Error) != streams.Stored {
		if err == nil {
			err = ack.Error
		}
		return events.Errorf(events.Unavailable, "the report could not be stored now: %w", err)
	}
	return nil
}

// List returns the reports that are kept, the latest recorded first. It leaves out what it cannot
// read.
func (s *Operations) List(ctx context.Context) (*events.OperationList, error) {
	got, err := s.bucket().Range(ctx, "*", 1, KeptOperations*len(events.OperationKind("").Enum()))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(got, func(a, b streams.Message) int { return cmp.Compare(b.Seq, a.Seq) })
	list := &events.OperationList{Operations: []events.Operation{}}
	for _, m := range got {
		var o events.Operation
		if json.Unmarshal(m.Data, &o) == nil {
			list.Operations = append(list.Operations, o)
		}
	}
	return list, nil
}

func (s *Operations) bucket() streams.Bucket { return s.conn.Bucket(assets.OperationsBucket) }
