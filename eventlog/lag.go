package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/assets"
)

// StoredAt returns when the first commit at or after a sequence was stored; the
// zero time if there is none.
func (l *Log) StoredAt(ctx context.Context, seq uint64) (time.Time, error) {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(assets.LogStream))
	if err != nil {
		return time.Time{}, fmt.Errorf("the log: %w", err)
	}
	m, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("commit %d of the log: %w", seq, err)
	}
	return m.Time, nil
}
