package eventlog

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
)

// docFence writes the documents of a bucket.
type docFence struct {
	derived.Fence
	bucket streams.Bucket
}

// fenceOf begins to write a bucket.
func fenceOf(t testing.TB, l *Log, bucket string) docFence {
	t.Helper()
	b := l.Bucket(bucket)
	f, err := derived.NewFence(t.Context(), l.conn, b.Stream())
	must(t, err)
	return docFence{f, b}
}

func (f docFence) put(t testing.TB, key string, data []byte) error {
	return f.Send(t.Context(), f.bucket.Subject(key), nil, data)
}

func (f docFence) finalPut(t testing.TB, key string, data []byte) error {
	return f.Final(t.Context(), f.bucket.Subject(key), nil, data)
}

func (f docFence) remove(t testing.TB, key string) error {
	return f.Send(t.Context(), f.bucket.Subject(key), nats.Header{"KV-Operation": {"DEL"}}, nil)
}
