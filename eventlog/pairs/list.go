package pairs

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// place names a pair.
type place struct{ bucket, key string }

func hasPrefix(key, prefix string) bool { return strings.HasPrefix(key, prefix) }

// usualKeys is how many keys a page has if the query does not say.
const usualKeys = 100

// List answers a kv.list.
func (s *Store) List(ctx context.Context, tenant string, d events.ListKV) (*events.KVList, error) {
	if err := checkName("bucket", d.Bucket, events.MaxKVBucket); err != nil {
		return nil, err
	}
	cursor, err := cursorKey(d)
	if err != nil {
		return nil, err
	}
	backwards := d.Order == "desc"
	found, err := s.places(ctx, tenant, d.Bucket, func(key string) bool {
		return hasPrefix(key, d.Prefix) && (d.Cursor == "" || key != cursor && (key < cursor) == backwards)
	}, false)
	if err != nil {
		return nil, err
	}
	if backwards {
		slices.Reverse(found)
	}
	limit := usualKeys
	if d.Limit != nil {
		limit = int(*d.Limit)
	}
	page := found[:min(len(found), limit)]
	out := &events.KVList{Keys: make([]string, 0, len(page))}
	if !d.Values {
		for _, p := range page {
			out.Keys = append(out.Keys, p.key)
		}
	} else if page, err = s.addValues(ctx, tenant, page, out); err != nil {
		return nil, err
	}
	if len(page) < len(found) {
		out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(page[len(page)-1].key))
	}
	return out, nil
}

// cursorKey returns the key after which the page begins, in the order of the page.
func cursorKey(d events.ListKV) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(d.Cursor)
	if err != nil || d.Cursor != "" && !hasPrefix(string(raw), d.Prefix) {
		return "", events.Invalid("/cursor", "this is not a cursor of this query; use nextCursor as it came")
	}
	return string(raw), nil
}

// places returns the pairs of a bucket, or of all if it is empty, whose keys are wanted, in the
// order of their bytes. Only keys are read, and no values.
func (s *Store) places(ctx context.Context, tenant, bucket string, wanted func(key string) bool, withDeleted bool) ([]place, error) {
	prefix := s.prefix(tenant)
	consumer, err := s.conn.JetStream().OrderedConsumer(ctx, assets.PairsStream(s.conn.Config().Names, tenant), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.filter(tenant, bucket)}, DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: true,
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	last := consumer.CachedInfo().Name
	defer func() { s.forget(ctx, tenant, last) }()
	if consumer.CachedInfo().NumPending == 0 {
		return nil, nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, unreadable(err)
	}
	defer messages.Stop()
	found := map[place]bool{}
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, unreadable(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, unreadable(err)
		}
		last = meta.Consumer
		if b, key, ok := keyOf(prefix, m.Subject()); ok && wanted(key) {
			// A key that was written again meanwhile comes again.
			if found[place{b, key}] = true; !withDeleted && m.Headers().Get(headerOperation) == deleted {
				delete(found, place{b, key})
			}
		}
		if meta.NumPending == 0 {
			break
		}
	}
	out := make([]place, 0, len(found))
	for p := range found {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(strings.Compare(a.bucket, b.bucket), strings.Compare(a.key, b.key))
	})
	return out, nil
}

// forget deletes the consumer of a list. The server drops one by itself after five minutes, and has
// at most a thousand of a stream.
func (s *Store) forget(ctx context.Context, tenant, consumer string) {
	if !s.conn.Wire().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.conn.JetStream().DeleteConsumer(ctx, assets.PairsStream(s.conn.Config().Names, tenant), consumer) // else the server drops it in its own time
}

func unreadable(err error) error {
	return events.Errorf(events.Unavailable, "the tenant's keys could not be listed now; try again: %w", err)
}
