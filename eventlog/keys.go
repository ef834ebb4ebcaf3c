package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Keys reads the documents of a bucket under exact keys or patterns, in the
// order in which they were written. What is not there is left out. ErrTooMany
// if more than 1,024 match.
func (l *Log) Keys(ctx context.Context, bucket string, keys ...string) ([]Message, error) {
	docs, _, err := l.keys(ctx, bucket, keys)
	return withoutMarkers(docs), err
}

// KeysAndMarkers does the same, and also returns the markers of documents that were
// deleted.
func (l *Log) KeysAndMarkers(ctx context.Context, bucket string, keys ...string) ([]Message, error) {
	all, _, err := l.keys(ctx, bucket, keys)
	return all, err
}

// KeysAt does the same, from a copy of the bucket that has got to a sequence of
// the bucket's own, for whoever must see what was written up to there: any other
// copy may lag. One of the keys must have a document, or no copy can tell how far
// it has got. It waits for such a copy, for 5 s or as [Config.Patience] says.
func (l *Log) KeysAt(ctx context.Context, bucket string, least uint64, keys ...string) ([]Message, error) {
	limit := max(l.cfg.Patience, directTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no copy of bucket %s showed its message %d within %v", bucket, least, limit))
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		docs, upTo, err := l.keys(ctx, bucket, keys)
		if err != nil || upTo >= least {
			return withoutMarkers(docs), err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// keys reads documents and markers, and returns how far every copy had got that it
// read from.
func (l *Log) keys(ctx context.Context, bucket string, keys []string) (docs []Message, upTo uint64, err error) {
	bucket = l.cfg.Names.Bucket(bucket)
	prefix := keyPrefix(bucket)
	q := getRequest{Seq: 1, Multi: make([]string, len(keys)), MaxBytes: threadBytes}
	for i, k := range keys {
		q.Multi[i] = prefix + k
	}
	var all []Message
	for {
		got, end, err := l.multi(ctx, "KV_"+bucket, q)
		if err != nil {
			return nil, 0, err
		}
		if all == nil || end < upTo {
			upTo = end
		}
		all = append(all, got...)
		if len(got) == 0 || got[len(got)-1].Pending == 0 {
			return named(latest(all), prefix), upTo, nil
		}
		q.Seq = got[len(got)-1].Seq + 1
	}
}

// multi makes a direct get of the last messages of several subjects, from a copy
// that is not older than the stream's floor, and gives how far it has got.
func (l *Log) multi(ctx context.Context, stream string, q getRequest) (got []Message, upTo uint64, err error) {
	several, err := l.replicated(ctx)
	if err != nil {
		return nil, 0, err
	}
	if !several {
		return l.directUpTo(ctx, stream, q)
	}
	wanted := q.Multi
	err = l.fresh(ctx, stream, func() (uint64, error) {
		var err error
		if got, upTo, err = l.directUpTo(ctx, stream, q); err != nil || len(got) > 0 || l.cfg.Floors.of(stream) == 0 {
			return upTo, err
		}
		// A copy that finds nothing does not say how old it is: it is to find
		// what the stream ends with, too.
		end, err := l.leader(ctx, stream, getRequest{Last: ">"})
		if errors.Is(err, errNoMessage) {
			return math.MaxUint64, nil
		}
		q.Multi, q.Seq = append(slices.Clone(wanted), end.Subject), min(q.Seq, end.Seq)
		return 0, err
	})
	if len(q.Multi) > len(wanted) {
		got = slices.DeleteFunc(got, func(m Message) bool {
			return !slices.ContainsFunc(wanted, func(pattern string) bool { return subjectMatches(pattern, m.Subject) })
		})
	}
	return got, upTo, err
}

// subjectMatches reports whether a subject is one of a pattern's.
func subjectMatches(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">" && i < len(have):
			return true
		case i >= len(have) || token != "*" && token != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// latest leaves out what was written again while the rest was read.
func latest(docs []Message) []Message {
	last := make(map[string]uint64, len(docs))
	for _, m := range docs {
		last[m.Subject] = m.Seq
	}
	return slices.DeleteFunc(docs, func(m Message) bool { return last[m.Subject] != m.Seq })
}

// Range reads up to limit documents of a bucket that match a pattern, from a
// sequence of the bucket's own on. Fewer mean that there are no more.
func (l *Log) Range(ctx context.Context, bucket, pattern string, from uint64, limit int) ([]Message, error) {
	bucket = l.cfg.Names.Bucket(bucket)
	prefix := keyPrefix(bucket)
	var docs []Message
	for q := (getRequest{Seq: max(from, 1), Next: l.filter("KV_"+bucket, prefix+pattern), MaxBytes: threadBytes}); len(docs) < limit; {
		q.Batch = min(max(limit-len(docs), 2), threadBatch)
		got, err := l.direct(ctx, "KV_"+bucket, q)
		if err != nil {
			return nil, err
		}
		if len(got) > 0 {
			last := got[len(got)-1]
			docs = append(docs, documents(got, prefix)...)
			q.Seq = last.Seq + 1
			if last.Pending > 0 {
				continue
			}
		}
		if len(docs) >= limit {
			break
		}
		more, err := l.more(ctx, "KV_"+bucket, prefix+pattern, q.Seq)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	return docs[:min(limit, len(docs))], nil
}

func keyPrefix(bucket string) string { return "$KV." + bucket + "." }

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
