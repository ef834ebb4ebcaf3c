package eventlog

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// ReportOperation reports an operation to Skein. It returns when that is stored, or when ctx ends, which
// the caller sets: without permission nothing answers. [nats.ErrNoResponders] says that no Skein
// runs, or an older one.
func ReportOperation(ctx context.Context, nc *nats.Conn, n events.Names, o events.Operation) error {
	body, err := json.Marshal(o, json.Deterministic(true))
	if err != nil {
		return err
	}
	return ask(ctx, nc, n.OperationReport(), body, &struct{}{})
}

// ListOperations asks Skein for the operations that it keeps, the latest recorded first.
func ListOperations(ctx context.Context, nc *nats.Conn, n events.Names) (*events.OperationList, error) {
	var list events.OperationList
	err := ask(ctx, nc, n.OperationList(), []byte("{}"), &list)
	if errors.Is(err, nats.ErrNoResponders) {
		err = events.Errorf(events.Unavailable, "no skein serve that keeps operations answers; start one, or a newer one: %w", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = events.Errorf(events.Unavailable, "nobody answered; operations are for auditors and administrators, whose credentials permit it: %w", err)
	}
	return &list, err
}

func ask(ctx context.Context, nc *nats.Conn, subject string, body []byte, into any) error {
	m, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return err
	}
	if e := events.DecodeRefusal(m.Header.Get(events.HeaderErrorCode), m.Data); e != nil {
		return e
	}
	return json.Unmarshal(m.Data, into)
}
