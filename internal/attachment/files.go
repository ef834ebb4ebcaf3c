package attachment

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Files are the files of a thread. [client.Files] and the states of threads have these methods.
type Files interface {
	StatFile(ctx context.Context, path string) (*events.FileRecord, error)
	ReadFile(ctx context.Context, path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte, mimeType string, o events.WriteFileOptions) (*events.FileRecord, error)
}

// Keep returns a function that stores contents in the files of a thread, each once.
func Keep(ctx context.Context, files Files) func(Content) error {
	return func(c Content) error {
		path := c.Path()
		there, err := files.StatFile(ctx, path)
		if err != nil || there != nil && there.Size == int64(len(c.Data)) {
			return err
		}
		_, err = files.WriteFile(ctx, path, c.Data, c.MediaType, events.WriteFileOptions{})
		return err
	}
}

// Load returns a JSON value with contents in place of its references, as the files of its thread
// have them, of at most *left bytes together, which it counts down. What is more, and what cannot
// be read, becomes a text that says so. The error is one that passes.
func Load(ctx context.Context, files Files, raw events.JSON, left *int64) (events.JSON, error) {
	var failed error
	out := Rewrite(raw, func(path string, bare bool) string {
		if failed != nil {
			return ""
		}
		record, err := files.StatFile(ctx, path)
		if err != nil || record == nil || record.Size > *left {
			failed = passing(err)
			return ""
		}
		data, err := files.ReadFile(ctx, path)
		if err != nil || data == nil {
			failed = passing(err)
			return ""
		}
		*left -= record.Size
		url := DataURL(record.MimeType, data)
		if bare {
			url = url[len(DataURL(record.MimeType, nil)):]
		}
		return url
	})
	return out, failed
}

// passing returns an error that a repeat may not have; nil for any other.
func passing(err error) error {
	if err != nil && events.AsError(err).Retry() {
		return err
	}
	return nil
}
