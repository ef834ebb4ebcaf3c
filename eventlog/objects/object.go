package objects

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Object is the entry of an object in an object store, as its clients write it.
type Object struct {
	Name     string            `json:"name"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Options  Options           `json:"options"`
	Bucket   string            `json:"bucket"`
	NUID     string            `json:"nuid"`            // names the subject of the pieces
	Size     int64             `json:"size"`            // bytes
	ModTime  string            `json:"mtime"`           // clients show the entry's time instead
	Chunks   int64             `json:"chunks"`          // pieces
	Digest   string            `json:"digest,omitzero"` // SHA-256= and base64
	Deleted  bool              `json:"deleted,omitzero"`

	pieces Sequences // that a decoded entry lists; nil: it lists none
}

// Options says how an object was written.
type Options struct {
	PieceBytes int64 `json:"max_chunk_size,omitzero"`
}

// Parse parses an entry, and reports whether its object exists.
func Parse(data []byte) (*Object, bool) {
	var o Object
	err := json.Unmarshal(data, &o)
	return &o, err == nil && o.NUID != "" && !o.Deleted
}

// Entry returns the subject of the entry of an object in a bucket.
func Entry(bucket, name string) string {
	return Entries(bucket) + base64.URLEncoding.EncodeToString([]byte(name))
}

// Entries returns what the subjects of a bucket's entries begin with.
func Entries(bucket string) string { return "$O." + bucket + ".M." }

// Pieces returns the subject of the pieces of an object in a bucket.
func Pieces(bucket, nuid string) string { return "$O." + bucket + ".C." + nuid }

// Message returns an entry of a bucket as the message that takes the place of the last one.
func (o Object) Message(bucket string) (*nats.Msg, error) {
	o.Bucket = bucket
	data, err := json.Marshal(o, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encoding the entry of the object %s: %w", o.Name, err)
	}
	return &nats.Msg{Subject: Entry(bucket, o.Name), Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}, Data: data}, nil
}

// Removed returns the entry that marks an object as deleted.
func Removed(name, nuid string) Object {
	return Object{Name: name, NUID: nuid, ModTime: NoTime, Deleted: true}
}

// Stream returns the name of the stream of a bucket.
func Stream(bucket string) string { return "OBJ_" + bucket }

// DigestOf returns a SHA-256 as clients of object stores write it.
func DigestOf(sum []byte) string { return "SHA-256=" + base64.URLEncoding.EncodeToString(sum) }

// NoTime is what clients write for a time that the stream knows.
const NoTime = "0001-01-01T00:00:00Z"

// tokens returns a name as tokens of a subject.
func tokens(name string) (string, error) {
	subject := strings.ReplaceAll(name, "/", ".")
	if strings.ContainsAny(name, ".*> \t\r\n") || strings.Contains("."+subject+".", "..") {
		return "", fmt.Errorf("%.100q cannot be the name of an object: its parts, between slashes, must be tokens of a subject", name)
	}
	return subject, nil
}
