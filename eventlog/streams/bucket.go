package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bucket reads the documents of a read model's bucket. A read is never older than the
// floor of the bucket, see [Floors].
type Bucket struct {
	conn   *Conn
	name   string // of the key-value bucket
	stream string
	prefix string // of the subjects
}

// Bucket returns the bucket with a name, without its prefix.
func (c *Conn) Bucket(name string) Bucket {
	name = c.cfg.Names.Bucket(name)
	return Bucket{conn: c, name: name, stream: BucketStream(name), prefix: KeyPrefix(name)}
}

// BucketStream returns the name of the stream of a key-value bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// Stream returns the name of the bucket's stream.
func (b Bucket) Stream() string { return b.stream }

// Subject returns the subject of a document.
func (b Bucket) Subject(key string) string { return b.prefix + key }

// Key returns the key of the document with a subject.
func (b Bucket) Key(subject string) string { return strings.TrimPrefix(subject, b.prefix) }

// Get returns the documents under exact keys or patterns, in the order in which they were
// written. Keys without a document are left out. It returns ErrTooMany if more than 1,024
// match.
func (b Bucket) Get(ctx context.Context, keys ...string) ([]Message, error) {
	docs, _, err := b.read(ctx, keys)
	return withoutMarkers(docs), err
}

// GetWithMarkers does the same, and also returns the markers of documents that were
// deleted.
func (b Bucket) GetWithMarkers(ctx context.Context, keys ...string) ([]Message, error) {
	all, _, err := b.read(ctx, keys)
	return all, err
}

// GetAt does what Get does, from a replica that has stored the bucket's own sequence least, for
// a reader that must see everything up to it. It waits for such a replica for 5 s, or for
// [Config.Patience] if that is longer. One of the keys must have a document: without one no
// replica can tell how far it is.
func (b Bucket) GetAt(ctx context.Context, least uint64, keys ...string) ([]Message, error) {
	limit := max(b.conn.cfg.Patience, ReadTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no copy of bucket %s showed its message %d within %v", b.name, least, limit))
	defer cancel()
	for attempts := lagging(0).Start(); ; {
		docs, upTo, err := b.read(ctx, keys)
		if err != nil || upTo >= least {
			return withoutMarkers(docs), err
		}
		if err := attempts.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// All does what Get does for any number of documents: page by page if they are too many for
// one read. Of a document that is written again meanwhile it returns the version read last.
func (b Bucket) All(ctx context.Context, patterns ...string) ([]Message, error) {
	docs, err := b.Get(ctx, patterns...)
	if !errors.Is(err, ErrTooMany) {
		return docs, err
	}
	docs = nil
	for _, pattern := range patterns {
		const page = 1000
		last := map[string]int{}
		for from, more := uint64(1), true; more; {
			got, err := b.Range(ctx, pattern, from, page)
			if err != nil {
				return nil, err
			}
			for _, m := range got {
				from = m.Seq + 1
				if i, ok := last[m.Subject]; ok {
					docs[i] = m
					continue
				}
				last[m.Subject] = len(docs)
				docs = append(docs, m)
			}
			more = len(got) == page
		}
	}
	return docs, nil
}

// Newest returns the document under a key from the leader of the bucket's stream. ok is false
// if there is none.
func (b Bucket) Newest(ctx context.Context, key string) (doc Message, ok bool, err error) {
	m, err := b.conn.Leader(ctx, b.stream, GetRequest{Last: b.prefix + key})
	if errors.Is(err, ErrNoMessage) {
		return Message{}, false, nil
	}
	if err != nil {
		return Message{}, false, err
	}
	got := documents([]Message{m}, b.prefix)
	if len(got) == 0 {
		return Message{}, false, nil
	}
	return got[0], true, nil
}

// Has reports whether the bucket holds a message from a sequence on, according to the leader of
// a replicated stream: a consumer may not have delivered it yet.
func (b Bucket) Has(ctx context.Context, from uint64) (bool, error) {
	return b.conn.More(ctx, b.stream, ">", from)
}

// Shows records that the bucket is written up to a sequence of its own: later reads of it show
// at least that.
func (b Bucket) Shows(seq uint64) { b.conn.cfg.Floors.Raise(b.stream, seq) }

// ShowsAll records the same for everything that the bucket holds now.
func (b Bucket) ShowsAll(ctx context.Context) error {
	_, err := b.conn.LastSeq(ctx, b.stream)
	return err
}

// read returns documents and markers, and the sequence that every replica it read from has
// stored.
func (b Bucket) read(ctx context.Context, keys []string) (docs []Message, upTo uint64, err error) {
	q := GetRequest{Seq: 1, Multi: make([]string, len(keys)), MaxBytes: BatchBytes}
	for i, k := range keys {
		q.Multi[i] = b.prefix + k
	}
	var all []Message
	for {
		got, end, err := b.conn.Latest(ctx, b.stream, q)
		if err != nil {
			return nil, 0, err
		}
		if all == nil || end < upTo {
			upTo = end
		}
		all = append(all, got...)
		if len(got) == 0 || got[len(got)-1].Pending == 0 {
			return named(latest(all), b.prefix), upTo, nil
		}
		q.Seq = got[len(got)-1].Seq + 1
	}
}

// latest leaves out the earlier versions of documents that were written again while the rest
// was read.
func latest(docs []Message) []Message {
	last := make(map[string]uint64, len(docs))
	for _, m := range docs {
		last[m.Subject] = m.Seq
	}
	return slices.DeleteFunc(docs, func(m Message) bool { return last[m.Subject] != m.Seq })
}

// Range returns up to limit documents that match a pattern, from a sequence of the bucket's own
// on. It returns fewer only if there are no more.
func (b Bucket) Range(ctx context.Context, pattern string, from uint64, limit int) ([]Message, error) {
	c := b.conn
	var docs []Message
	for q := (GetRequest{Seq: max(from, 1), Next: c.filter(b.stream, b.prefix+pattern), MaxBytes: BatchBytes}); len(docs) < limit; {
		q.Batch = min(max(limit-len(docs), 2), BatchMessages)
		got, err := c.Direct(ctx, b.stream, q)
		if err != nil {
			return nil, err
		}
		if len(got) > 0 {
			last := got[len(got)-1]
			docs = append(docs, documents(got, b.prefix)...)
			q.Seq = last.Seq + 1
			if last.Pending > 0 {
				continue
			}
		}
		if len(docs) >= limit {
			break
		}
		more, err := c.More(ctx, b.stream, b.prefix+pattern, q.Seq)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	return docs[:min(limit, len(docs))], nil
}

// KeyPrefix returns the prefix of the subjects of a key-value bucket.
func KeyPrefix(bucket string) string { return "$KV." + bucket + "." }

// documents names messages of a bucket by their keys, and leaves the markers of
// deletions out.
func documents(got []Message, prefix string) []Message { return withoutMarkers(named(got, prefix)) }

// named names messages of a bucket by their keys.
func named(got []Message, prefix string) []Message {
	for i := range got {
		got[i].Subject = strings.TrimPrefix(got[i].Subject, prefix)
	}
	return got
}

// withoutMarkers leaves the markers of deletions out.
func withoutMarkers(got []Message) []Message {
	return slices.DeleteFunc(got, func(m Message) bool { return m.Header.Get("KV-Operation") != "" })
}
