package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// files returns the files of the thread; nil if the worker has no Config.State.
func (t *turn) files() Files {
	if t.w.cfg.State == nil {
		return nil
	}
	return stateFiles{t.state()}
}

// stateFiles implements Files with a ThreadState.
type stateFiles struct{ ThreadState }

// StatFile returns the record of a file, nil if there is none.
func (f stateFiles) StatFile(ctx context.Context, path string) (*events.FileRecord, error) {
	return recordOf(f.ThreadState.StatFile(ctx, path))
}

// WriteFile writes a file.
func (f stateFiles) WriteFile(ctx context.Context, path string, data []byte, mimeType string, o events.WriteFileOptions) (*events.FileRecord, error) {
	return recordOf(f.ThreadState.WriteFile(ctx, path, data, mimeType, o))
}

func recordOf(file *events.ThreadFile, err error) (*events.FileRecord, error) {
	if file == nil || err != nil {
		return nil, err
	}
	return &events.FileRecord{ThreadFile: *file}, nil
}

// storeTime bounds the storing of one content.
const storeTime = time.Minute

// keep stores large contents of a result or a part in the files of the thread, and returns raw
// with references to them.
func (t *turn) keep(raw events.JSON, most int) (events.JSON, error) {
	files := t.files()
	if files == nil || len(raw) <= most {
		return raw, nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, storeTime)
	defer cancel()
	return attachment.Extract(raw, most, attachment.Keep(ctx, files))
}

// keepResult stores the large contents of a result. If that fails, it returns a failed result,
// because the call was made.
func (t stepCalls) keepResult(r ToolResult) ToolResult {
	if r.Status != Success {
		return r
	}
	kept, err := t.keep(r.Result, maxResultBytes)
	if err != nil {
		return Failed("the call was made, and its result cannot be stored: " + events.AsError(err).Message)
	}
	r.Result = kept
	return r
}

// keepParts stores the large contents of a reaction.
func (t reactorCall) keepParts(r *Reaction) error {
	if r == nil {
		return nil
	}
	size := 0
	for _, part := range r.AssistantEvent.Content {
		size += len(part)
	}
	if size <= attachment.ItemBytes {
		return nil
	}
	for i, part := range r.AssistantEvent.Content {
		kept, err := t.keep(part, 0)
		if err != nil {
			return errors.New("the answer cannot be stored: " + events.AsError(err).Message)
		}
		r.AssistantEvent.Content[i] = kept
	}
	return nil
}
