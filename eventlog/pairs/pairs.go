package pairs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Config bounds what one tenant stores. The zero value of a field means its default.
type Config struct {
	MaxBytes int64            // of all values, keys and headers of a tenant; default 1 GiB; negative: no limit
	Now      func() time.Time // default time.Now
}

// DefaultMaxBytes is how much a tenant may store.
const DefaultMaxBytes = 1 << 30

// Store stores pairs. It is safe for concurrent use.
type Store struct {
	conn *streams.Conn
	cfg  Config
	used *usages
}

// On returns the store of a connection's streams.
func On(conn *streams.Conn, cfg Config) *Store {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Store{conn: conn, cfg: cfg, used: newUsages()}
}

const (
	headerTTL       = "Nats-TTL"
	headerOperation = "KV-Operation"
	deleted         = "DEL"

	// markerSeconds is how long a deleted key is remembered, with the commands that wrote it.
	markerSeconds = 24 * 3600
)

// Set executes a kv.set.
func (s *Store) Set(ctx context.Context, tenant, commandID string, d events.SetKV) (*events.Reply, error) {
	if err := errors.Join(checkName("bucket", d.Bucket, events.MaxKVBucket), checkName("key", d.Key, events.MaxKVKey)); err != nil {
		return nil, events.AsError(err)
	}
	if n := int64(len(d.Value)); n > events.MaxKVValue {
		return nil, events.TooLarge("the value", n, events.MaxKVValue)
	}
	seq, _, err := s.write(ctx, tenant, d.Bucket, d.Key, commandID, func(*streams.Message) *nats.Msg {
		m := &nats.Msg{Data: d.Value, Header: nats.Header{}}
		if d.TTLSeconds > 0 {
			m.Header[headerTTL] = []string{strconv.FormatInt(d.TTLSeconds, 10)}
		}
		return m
	})
	return reply(seq, 0), err
}

// reply returns the answer to a command, nil for an unknown outcome. The version of a pair is
// its sequence in the tenant's bucket.
func reply(seq uint64, deleted int64) *events.Reply {
	r := &events.Reply{Version: int64(seq), Events: []events.EventRef{}}
	if deleted > 0 {
		r.Result = &events.Result{Deleted: deleted}
	}
	return r
}

// Get answers a kv.get.
func (s *Store) Get(ctx context.Context, tenant string, d events.GetKV) (*events.KVEntry, error) {
	if err := errors.Join(checkName("bucket", d.Bucket, events.MaxKVBucket), checkName("key", d.Key, events.MaxKVKey)); err != nil {
		return nil, events.AsError(err)
	}
	m, _, err := s.newest(ctx, tenant, d.Bucket, d.Key)
	if err != nil || m == nil || isDeleted(m) {
		return &events.KVEntry{}, err
	}
	return &events.KVEntry{Exists: true, Value: m.Data}, nil
}

func isDeleted(m *streams.Message) bool { return m.Header.Get(headerOperation) == deleted }

// newest returns the message of a key, nil if there is none, and whether the tenant has a
// bucket.
func (s *Store) newest(ctx context.Context, tenant, bucket, key string) (m *streams.Message, there bool, err error) {
	name := assets.PairsStream(s.conn.Config().Names, tenant)
	got, err := s.conn.Leader(ctx, name, streams.GetRequest{Last: subjectOf(s.prefix(tenant), bucket, key)})
	switch {
	case errors.Is(err, streams.ErrNoMessage):
		return nil, true, nil
	case streams.IsNoStream(err):
		return nil, false, nil
	case errors.Is(err, nats.ErrNoResponders): // on a cluster: ask whether it is there
		_, there, err = s.conn.Ends(ctx, name)
		if err == nil && there {
			err = events.Errorf(events.Unavailable, "the tenant's key-value pairs have no leader now; try again")
		}
		return nil, there, err
	case err != nil:
		return nil, false, err
	}
	return &got, true, nil
}

func (s *Store) prefix(tenant string) string {
	return streams.KeyPrefix(assets.PairsBucket(s.conn.Config().Names, tenant))
}

// write replaces the message of a key with what next returns for it, unless that is nil or the
// command did so before. It returns the sequence of the command's message, and whether there is
// one.
func (s *Store) write(ctx context.Context, tenant, bucket, key, commandID string, next func(*streams.Message) *nats.Msg) (seq uint64, wrote bool, err error) {
	lost := false // the acknowledgement of an attempt
	for attempts := (retry.Policy{First: 2 * time.Millisecond, Max: 500 * time.Millisecond}).Start(); ; {
		seq, wrote, outcome, err := s.attempt(ctx, tenant, bucket, key, commandID, next)
		var refusal *events.Error
		switch {
		case outcome == streams.Stored:
			return seq, wrote, nil
		case errors.As(err, &refusal) && !refusal.Retry():
			return 0, false, refusal
		}
		lost = lost || outcome == streams.Unknown
		if attempts.Wait(ctx) == nil {
			continue
		}
		e := events.Errorf(events.Unavailable, "the key-value pairs could not be written now; try again: %w", err)
		if lost {
			e.Message = "the outcome of the command is unknown; repeat it with the same commandId"
			e.Details = &events.ErrorDetails{Outcome: "unknown", ID: commandID}
		}
		return 0, false, e
	}
}

// attempt does what write does, once. An outcome other than Stored may be tried again, unless
// the error is a refusal.
func (s *Store) attempt(ctx context.Context, tenant, bucket, key, commandID string, next func(*streams.Message) *nats.Msg) (seq uint64, wrote bool, outcome streams.Outcome, err error) {
	m, there, err := s.newest(ctx, tenant, bucket, key)
	if err != nil {
		return 0, false, streams.Unavailable, err
	}
	if seq, ok := executed(m, commandID); ok {
		return seq, true, streams.Stored, nil
	}
	msg := next(m)
	if msg == nil {
		return 0, false, streams.Stored, nil
	}
	if err := s.admit(ctx, tenant, m, msg); err != nil {
		return 0, false, streams.Unavailable, err
	}
	if !there {
		if err := s.conn.Ensure(ctx, assets.Pairs(s.conn, tenant)); err != nil {
			return 0, false, streams.Unavailable, err
		}
	}
	expected := uint64(0)
	if m != nil {
		expected = m.Seq
	}
	msg.Subject = subjectOf(s.prefix(tenant), bucket, key)
	msg.Header[streams.HeaderExpected] = []string{strconv.FormatUint(expected, 10)}
	msg.Header[headerCommands] = []string{remembering(m, commandID)}
	ack, err := s.conn.Publish(msg)
	outcome = streams.Classify(err, ack.Error)
	switch {
	case outcome == streams.Stored:
		s.used.add(tenant, int64(len(msg.Data)))
		return ack.Seq, true, outcome, nil
	case outcome == streams.TooLarge:
		return 0, false, outcome, events.TooLarge("the pair", int64(len(msg.Data)), events.MaxKVValue)
	case err == nil:
		err = ack.Error
	}
	return 0, false, outcome, err
}
