package eventlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/retry"
)

// WriterSecret is the secret that keys the tokens of exclusive writers.
const WriterSecret = "writer"

// Secret returns a secret of the store: 32 random bytes, which are the same for all processes on
// it. The first process that asks creates it; of several that do so at once, one does.
func (l *Log) Secret(ctx context.Context, name string) (secret []byte, err error) {
	if err := l.conn.Ensure(ctx, assets.Secrets(l.conn)); err != nil {
		return nil, err
	}
	err = retry.Do(ctx, retry.Policy{First: 250 * time.Millisecond, Limit: time.Minute}, func() (err error) {
		secret, err = l.secretOnce(ctx, name)
		return err
	}, func(err error) bool { return errors.Is(err, errSecretCreated) || streams.MayPass(err) })
	if err != nil {
		return nil, fmt.Errorf("the store's secret %q: %w", name, err)
	}
	return secret, nil
}

// errSecretCreated says that another process has created the secret meanwhile, or that this one
// may have.
var errSecretCreated = errors.New("it may have been created meanwhile")

// secretOnce reads a secret, or creates it if there is none.
func (l *Log) secretOnce(ctx context.Context, name string) ([]byte, error) {
	names := l.cfg.Names
	subject := assets.Secret(names, name)
	m, err := l.conn.Leader(ctx, assets.SecretsStream(names), streams.GetRequest{Last: subject})
	if err == nil || !errors.Is(err, streams.ErrNoMessage) {
		return m.Data, err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	ack, err := l.conn.Publish(&nats.Msg{Subject: subject, Header: nats.Header{streams.HeaderExpected: {"0"}}, Data: secret})
	switch outcome := streams.Classify(err, ack.Error); {
	case outcome == streams.Stored:
		return secret, nil
	case outcome == streams.Conflict, outcome == streams.Unknown:
		return nil, errSecretCreated
	case err == nil:
		err = ack.Error
	}
	return nil, err
}
