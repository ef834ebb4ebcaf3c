package openaifiles

import (
	"context"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// How a file is named, and where it is stored.
const (
	idPrefix    = "file-"
	keyPrefix   = "file:"
	contentPath = "/content"
)

// file is a file as the protocol has it.
type file struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt int64  `json:"expires_at,omitzero"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`

	thread  string
	created int64 // microseconds
}

// description is what the metadata of a file's thread say of it.
type description struct {
	Purpose      string `json:"purpose"`
	Filename     string `json:"filename"`
	Bytes        int64  `json:"bytes"`
	Digest       string `json:"digest"`
	ExpiresAfter int64  `json:"expiresAfter,omitzero"` // seconds after its creation
}

// metadata is the metadata of a file's thread.
type metadata struct {
	File *description `json:"skein.file,omitzero"`
}

func (d description) metadata() (events.JSON, error) {
	return json.Marshal(metadata{&d}, json.Deterministic(true))
}

// idOf returns the id of the file in a thread of a number.
func idOf(number uuid.UUID) string { return idPrefix + hex.EncodeToString(number[:]) }

var ownID = regexp.MustCompile(`^file-[0-9a-f]{32}$`)

// IsID reports whether a text has the form of a file's id. Other forms are of other services.
func IsID(id string) bool { return ownID.MatchString(id) }

// threadOf returns the id of a file's thread.
func threadOf(id string) (string, bool) {
	number, err := uuid.Parse(strings.TrimPrefix(id, idPrefix))
	return "T-" + number.String(), err == nil && IsID(id)
}

// fileOf returns the file that a thread is; nil if it is none, none yet, or no longer one.
func fileOf(t *events.Thread, now time.Time) *file {
	var of metadata
	number, isUUID := strings.CutPrefix(t.ID, "T-")
	id := idPrefix + strings.ToLower(strings.ReplaceAll(number, "-", ""))
	if !isUUID || t.Key == nil || *t.Key != keyPrefix+id || json.Unmarshal(t.Metadata, &of) != nil || of.File == nil {
		return nil
	}
	f := &file{
		ID: id, Object: "file", Bytes: of.File.Bytes, CreatedAt: t.CreatedAtMicros / 1e6, Filename: of.File.Filename, Purpose: of.File.Purpose,
		Status: "processed", thread: t.ID, created: t.CreatedAtMicros,
	}
	if of.File.ExpiresAfter > 0 {
		f.ExpiresAt = f.CreatedAt + of.File.ExpiresAfter
		if now.Unix() >= f.ExpiresAt {
			return nil
		}
	}
	return f
}

// find returns the file of an id. The error is a not_found if there is none for the client.
func find(ctx context.Context, c *client.Client, id string) (*file, error) {
	thread, valid := threadOf(id)
	if !valid {
		return nil, events.Missing("file", id)
	}
	t, err := client.Read(ctx, c, events.GetThread{ThreadID: thread})
	if events.IsNotFound(err) {
		return nil, events.Missing("file", id)
	}
	if err != nil {
		return nil, err
	}
	f := fileOf(t, time.Now())
	if f == nil {
		return nil, events.Missing("file", id)
	}
	return f, nil
}

// record returns the record of a file's content, under its own name.
func (f *file) record(ctx context.Context, c *client.Client) (*events.FileRecord, error) {
	record, err := c.Files(f.thread).StatFile(ctx, contentPath)
	if err != nil {
		return nil, err
	}
	if record == nil || !record.HasContent() {
		return nil, events.Missing("file", f.ID)
	}
	record.Name = f.Filename
	return record, nil
}
