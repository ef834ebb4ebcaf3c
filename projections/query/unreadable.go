package query

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/skein-threads/skein/projections/documents"
)

// unreadable records the keys of documents that cannot be read, for example because another
// program has overwritten them. Their contents can be rebuilt from the log.
type unreadable struct {
	mu   sync.Mutex // guards keys
	keys map[string]error
}

// unreadableAtMost bounds the number of recorded keys.
const unreadableAtMost = 100

// note records whether a document can be read. It reports whether this is a new failure.
func (u *unreadable) note(bucket, key string, err error) (first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name := bucket + " " + key
	if err == nil {
		delete(u.keys, name)
		return false
	}
	if _, known := u.keys[name]; known || len(u.keys) >= unreadableAtMost {
		return false
	}
	if u.keys == nil {
		u.keys = map[string]error{}
	}
	u.keys[name] = err
	return true
}

// Unreadable returns the documents that queries could not read, each as its bucket and its key, at
// most 100.
func (q *Queries) Unreadable() []string {
	q.unreadable.mu.Lock()
	defer q.unreadable.mu.Unlock()
	return slices.Sorted(maps.Keys(q.unreadable.keys))
}

// unreadableError says that a document cannot be read.
type unreadableError struct {
	bucket, key string
	cause       error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("the document %s of the bucket %s cannot be read, and skein replay makes it again from the log: %v", e.key, e.bucket, e.cause)
}

func (e *unreadableError) Unwrap() error { return e.cause }

// decodeDocument decodes a document, and records whether that failed.
func (q *Queries) decodeDocument(p documents.Place, raw []byte) (doc any, seq uint64, err error) {
	model := q.models.Of(p.Kind)
	doc, seq, err = model.Decode(raw)
	if q.noteDocument(model.Bucket, p.Key(), err); err != nil {
		return nil, 0, &unreadableError{model.Bucket, p.Key(), err}
	}
	return doc, seq, nil
}

// noteDocument records whether a document can be read, and logs the first failure.
func (q *Queries) noteDocument(bucket, key string, err error) {
	if q.unreadable.note(bucket, key, err) {
		q.logger.Error().Err(err).Str("bucket", bucket).Str("key", key).Msg("a document cannot be read; lists leave it out: run skein replay, which makes it again from the log")
	}
}
