package documents

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/skein-threads/skein/events"
)

// files returns the read model of files: a document for each existing file and directory. Its
// last event holds all that it shows, so that no fold depends on the previous document.
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

// FileID returns the id of a path in its thread.
func FileID(path string) string { return FileIDIn(events.SplitPath(path)) }

// FileIDIn returns the id of what has a name in a directory: digests of both, as a path may have
// characters that a key may not.
func FileIDIn(dir, name string) string { return token(dir) + "." + token(name) }

func token(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func pointer[T any](v T) *T { return &v }
