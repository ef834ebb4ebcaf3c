package attachment

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Held is what a message holds, such as the content of an item, and the path that refusals name it by:
// its place in the request that brought it. An empty path is left to the caller.
type Held struct {
	JSON *events.JSON
	Path string
}

// Large reports whether Store would store contents of a message. The error is the one that Store
// returns for one that is too large: nothing has been stored then.
func Large(message ...Held) (large bool, err error) {
	for _, h := range message {
		_, err := Extract(*h.JSON, ItemBytes, func(Content) error {
			large = true
			return nil
		})
		if err != nil {
			return false, h.refused(err)
		}
	}
	return large, nil
}

// Store stores the large contents of a message in the files of its thread, and leaves references in
// their place. The error is a payload_too_large that names the file, or that of the files.
func Store(ctx context.Context, files Files, message ...Held) error {
	for _, h := range message {
		out, err := Extract(*h.JSON, ItemBytes, Keep(ctx, files))
		if err != nil {
			return h.refused(err)
		}
		*h.JSON = out
	}
	return nil
}

// refused returns the error of contents at their place in the request: its client has never seen the
// command that stores them.
func (h Held) refused(err error) error {
	e := *events.AsError(err)
	if h.Path == "" || e.Code != events.PayloadTooLarge {
		return err
	}
	details := events.ErrorDetails{Path: h.Path}
	if e.Details != nil {
		details.Size, details.Limit = e.Details.Size, e.Details.Limit
	}
	e.Details = &details
	return &e
}
