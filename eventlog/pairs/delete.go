package pairs

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Delete executes a kv.delete.
func (s *Store) Delete(ctx context.Context, tenant, commandID string, d events.DeleteKV) (*events.Reply, error) {
	if err := errors.Join(checkName("bucket", d.Bucket, events.MaxKVBucket), checkName("key", d.Key, events.MaxKVKey)); err != nil {
		return nil, events.AsError(err)
	}
	switch {
	case (d.Key == "") == (d.Prefix == nil):
		return nil, events.Invalid("", "kv.delete needs either key or prefix")
	case d.Bucket == "" && (d.Key != "" || *d.Prefix != ""):
		return nil, events.Invalid("/bucket", "a key or a prefix is of a bucket: name it")
	case d.Key != "":
		return s.remove(ctx, tenant, commandID, d.Erase, []place{{d.Bucket, d.Key}})
	}
	found, err := s.places(ctx, tenant, d.Bucket, func(key string) bool { return hasPrefix(key, *d.Prefix) }, d.Erase)
	if err != nil {
		return nil, err
	}
	return s.remove(ctx, tenant, commandID, d.Erase, found)
}

// remove deletes keys one by one. It is done again from its start if it is broken off.
func (s *Store) remove(ctx context.Context, tenant, commandID string, erase bool, found []place) (*events.Reply, error) {
	last, count := uint64(0), int64(0)
	for _, p := range found {
		if erase {
			erased, err := s.erase(ctx, tenant, p)
			if err != nil {
				return nil, events.Errorf(events.Unavailable, "key %d of %d could not be erased now; repeat the command: %w", count+1, len(found), err)
			}
			if erased > 0 {
				last, count = max(last, erased), count+1
			}
			continue
		}
		seq, wrote, err := s.write(ctx, tenant, p.bucket, p.key, commandID, func(m *streams.Message) *nats.Msg {
			if m == nil || isDeleted(m) {
				return nil
			}
			return &nats.Msg{Header: nats.Header{headerOperation: {deleted}, headerTTL: {strconv.Itoa(markerSeconds)}}}
		})
		if err != nil {
			return nil, err
		}
		if wrote {
			last, count = max(last, seq), count+1
		}
	}
	return reply(last, count), nil
}

// erase overwrites the message of a key, without a marker: a marker would replace the value,
// which then would stay on the disk. It returns the sequence of the value, 0 if there was none.
func (s *Store) erase(ctx context.Context, tenant string, p place) (seq uint64, err error) {
	m, _, err := s.newest(ctx, tenant, p.bucket, p.key)
	if err != nil || m == nil {
		return 0, err
	}
	err = s.conn.Erase(ctx, assets.PairsStream(s.conn.Config().Names, tenant), subjectOf(s.prefix(tenant), p.bucket, p.key), 0)
	if isDeleted(m) {
		return 0, err
	}
	return m.Seq, err
}

// filter returns the subjects of a bucket, or of all if it is empty.
func (s *Store) filter(tenant, bucket string) string {
	if bucket == "" {
		return s.prefix(tenant) + ">"
	}
	return s.prefix(tenant) + hex.EncodeToString([]byte(bucket)) + ".*"
}
