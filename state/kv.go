package state

import (
	"context"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// KVStore stores the key-value pairs of the application's tenant: JSON values by bucket and key.
// They are independent of threads, and each pair may have its own lifetime. It is safe for
// concurrent use.
type KVStore struct{ c *client.Client }

// KV returns the key-value pairs.
func KV(ctx context.Context) *KVStore { return &KVStore{scopeOf(ctx).app.opts.Client} }

// KVEntry is the value of a key, and whether it exists.
type KVEntry[T any] struct {
	Exists bool
	Data   T
}

// KVOption configures Set.
type KVOption func(*events.SetKV) error

// TTLSeconds makes a pair expire after n seconds, 1 to 315,360,000. Without it, a pair stays until
// it is deleted.
func TTLSeconds(n int64) KVOption {
	return func(d *events.SetKV) error {
		if n < 1 {
			return events.Invalid("/ttlSeconds", "the time to live of key %.80q is %d seconds; use at least 1, or no TTLSeconds to keep it", d.Key, n)
		}
		d.TTLSeconds = n
		return nil
	}
}

// GetKV returns the value of a key. The error is an invalid_request if it is not a T.
func GetKV[T any](ctx context.Context, kv *KVStore, bucket, key string) (e KVEntry[T], err error) {
	v, err := client.Read(ctx, kv.c, events.GetKV{Bucket: bucket, Key: key})
	if err != nil || !v.Exists {
		return e, err
	}
	e.Exists = true
	e.Data, err = decodeValue[T](key, v.Value)
	return e, err
}

// Set sets the value of a key. It is stored when Set returns.
func (kv *KVStore) Set(ctx context.Context, bucket, key string, value any, opts ...KVOption) error {
	raw, err := encodeValue(key, value)
	if err != nil {
		return err
	}
	d := events.SetKV{Bucket: bucket, Key: key, Value: raw}
	for _, apply := range opts {
		if err := apply(&d); err != nil {
			return err
		}
	}
	_, err = kv.c.Send(ctx, "", d)
	return err
}

// Delete deletes a key. A missing key is no error.
func (kv *KVStore) Delete(ctx context.Context, bucket, key string) error {
	_, err := kv.c.Send(ctx, "", events.DeleteKV{Bucket: bucket, Key: key})
	return err
}
