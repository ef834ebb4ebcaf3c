package streams

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// Object is the entry of an object in an object store, as far as Skein needs it.
type Object struct {
	Name     string            `json:"name"`
	Metadata map[string]string `json:"metadata"`
	NUID     string            `json:"nuid"` // names the subject of the pieces
	Size     int64             `json:"size"`
	Chunks   int               `json:"chunks"`
	Digest   string            `json:"digest"`
	Deleted  bool              `json:"deleted"`
}

// ParseObject parses an entry, and reports whether its object exists.
func ParseObject(data []byte) (*Object, bool) {
	var o Object
	err := json.Unmarshal(data, &o)
	return &o, err == nil && o.NUID != "" && !o.Deleted
}

// ObjectEntry returns the subject of the entry of an object in a bucket.
func ObjectEntry(bucket, name string) string {
	return ObjectEntries(bucket) + base64.URLEncoding.EncodeToString([]byte(name))
}

// ObjectEntries returns what the subjects of a bucket's entries begin with.
func ObjectEntries(bucket string) string { return "$O." + bucket + ".M." }

// ObjectPieces returns the subject of the pieces of an object in a bucket.
func ObjectPieces(bucket, nuid string) string { return "$O." + bucket + ".C." + nuid }

// EraseObject overwrites the pieces of an object, so that nothing of it stays on the disk. It
// is no error if there is no such object. Until the object is written again or deleted, a
// read of it fails.
func (c *Conn) EraseObject(ctx context.Context, store jetstream.ObjectStore, bucket, name string) error {
	info, err := store.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.Erase(ctx, "OBJ_"+bucket, ObjectPieces(bucket, info.NUID), 0)
}
