package pairs

import (
	"context"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// valuesAtOnce is how many values one read asks for: with the largest there are, it takes 16 MiB.
const valuesAtOnce = 32

// besides is what an answer has room for besides values: the rest of a message, and what stands around
// each key.
const (
	besides       = 64 << 10
	besidesOfPair = 8
)

// addValues adds keys of one bucket and their values to a page, until its answer is full. It returns
// those that the page is over with; a key that was deleted meanwhile is over, and not on the page.
func (s *Store) addValues(ctx context.Context, tenant string, page []place, out *events.KVList) ([]place, error) {
	room := int(s.conn.Wire().MaxPayload()) - besides
	for from := 0; from < len(page); from += valuesAtOnce {
		part := page[from:min(from+valuesAtOnce, len(page))]
		values, err := s.valuesOf(ctx, tenant, part)
		if err != nil {
			return nil, err
		}
		for i, p := range part {
			value, there := values[p.key]
			if !there {
				continue
			}
			// A key of control characters takes six times its bytes as JSON.
			if room -= len(value) + 6*len(p.key) + besidesOfPair; room < 0 && len(out.Keys) > 0 {
				return page[:from+i], nil
			}
			out.Keys, out.Values = append(out.Keys, p.key), append(out.Values, value)
		}
	}
	return page, nil
}

// valuesOf returns the values of keys of one bucket.
func (s *Store) valuesOf(ctx context.Context, tenant string, of []place) (map[string]events.JSON, error) {
	prefix := s.prefix(tenant)
	q := streams.GetRequest{Seq: 1, MaxBytes: streams.BatchBytes}
	for _, p := range of {
		q.Multi = append(q.Multi, subjectOf(prefix, p.bucket, p.key))
	}
	values := make(map[string]events.JSON, len(of))
	for {
		got, _, err := s.conn.Latest(ctx, assets.PairsStream(s.conn.Config().Names, tenant), q)
		if err != nil {
			return nil, unreadable(err)
		}
		for i := range got {
			_, key, _ := keyOf(prefix, got[i].Subject)
			// A key that was written or deleted again meanwhile comes again.
			if values[key] = got[i].Data; isDeleted(&got[i]) {
				delete(values, key)
			}
		}
		if len(got) == 0 || got[len(got)-1].Pending == 0 {
			return values, nil
		}
		q.Seq = got[len(got)-1].Seq + 1
	}
}
