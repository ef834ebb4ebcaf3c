package documents

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/skein-threads/skein/events"
)

// files is a document for each file and directory that is there. What it shows
// stands in its last event, so that no fold depends on the document before it.
func files() Projection {
	type T = events.FileRecord
	return Projection{
		Kind: Files, Name: "files", Version: 1, Bucket: "thread_file_records",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			puts(events.FileWrittenType, func(_ *change, d events.FileWritten) (string, bool) { return FileID(d.Path), true },
				func(c *change, _ *T, d events.FileWritten) *T {
					return pointer(d.Record(c.commit.Thread, c.event.Time))
				}),
			puts(events.DirectoryCreatedType, func(_ *change, d events.DirectoryCreated) (string, bool) { return FileID(d.Path), true },
				func(c *change, _ *T, d events.DirectoryCreated) *T {
					return pointer(d.Record(c.commit.Thread, c.event.Time))
				}),
			removes(events.FileDeletedType, func(_ *change, d events.FileDeleted) (string, bool) { return FileID(d.Path), true }),
			removes(events.DirectoryRemovedType, func(_ *change, d events.DirectoryRemoved) (string, bool) { return FileID(d.Path), true }),
			together(events.LifecycleDeletedType),
		},
	}
}

// FileID gives the place of a path in its thread: digests of its directory and
// of its name, since a path may hold what a key may not.
func FileID(path string) string {
	dir, name := events.SplitPath(path)
	return token(dir) + "." + token(name)
}

// FilesIn gives the pattern of the places of what a directory holds.
func FilesIn(dir string) string { return token(dir) + ".*" }

func token(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func pointer[T any](v T) *T { return &v }
