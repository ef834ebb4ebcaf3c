package commands

import (
	"context"
	"encoding/base64"
	"strconv"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// keepContents stores the file contents of a command before it is decided, so that no event
// names content that is not stored. The collector deletes what a refused command stored.
func (d *Dispatcher) keepContents(ctx context.Context, c *thread.Command) error {
	for i, part := range c.Parts {
		write, ok := part.Data.(events.WriteFile)
		if !ok || write.Stored != nil || write.Content == nil {
			continue
		}
		err := d.keepContent(ctx, c.Tenant, &write)
		if err != nil {
			path := "/data"
			if c.Batch {
				path += "/commands/" + strconv.Itoa(i) + "/data"
			}
			return schema.Under(path, err)
		}
		c.Parts[i].Data = write
	}
	return nil
}

func (d *Dispatcher) keepContent(ctx context.Context, tenant string, write *events.WriteFile) error {
	if write.External != "" {
		return events.Invalid("/external", "give content or external, not both")
	}
	content, err := base64.StdEncoding.Strict().DecodeString(*write.Content)
	switch {
	case err != nil:
		return events.Invalid("/content", "this is not base64: %w", err)
	case len(content) > events.InlineFileBytes:
		return events.TooLarge("the content", int64(len(content)), events.InlineFileBytes)
	case d.cfg.Contents == nil:
		return events.Errorf(events.Unavailable, "this process stores no files")
	}
	// Refusing it now leaves no content behind.
	if _, err := events.FilePath(write.Path); err != nil {
		return err
	}
	stored, err := d.cfg.Contents.Keep(ctx, tenant, content)
	if err != nil {
		return err
	}
	write.Stored = &stored
	return nil
}

// FileWrite is a file.write whose content follows as an upload.
type FileWrite struct {
	d       *Dispatcher
	command *thread.Command
	write   events.WriteFile
}

// BeginWrite decodes a file.write whose content follows as an upload, and refuses now what
// would be refused after the upload: an invalid request, an invalid path, a missing thread.
func (d *Dispatcher) BeginWrite(ctx context.Context, tenant string, body []byte, meta Meta) (*FileWrite, error) {
	c, err := d.admit(tenant, "file.write", body, meta)
	if err != nil {
		return nil, err
	}
	write := c.Parts[0].Data.(events.WriteFile)
	switch {
	case write.Content != nil:
		return nil, events.Invalid("/data/content", "an upload brings the content after the command")
	case write.External != "":
		return nil, events.Invalid("/data/external", "an external file needs no upload; use file.write")
	}
	if _, err := events.FilePath(write.Path); err != nil {
		return nil, schema.Under("/data", err)
	}
	if err := d.resolveThread(ctx, c); err != nil {
		return nil, err
	}
	last, err := d.log.Newest(ctx, tenant, c.ThreadID)
	if err != nil {
		return nil, err
	}
	if last == nil || last.Events[len(last.Events)-1].Type == events.LifecycleDeletedType {
		return nil, events.Missing("thread", c.ThreadID)
	}
	return &FileWrite{d, c, write}, nil
}

// Tenant returns the tenant of the file.
func (w *FileWrite) Tenant() string { return w.command.Tenant }

// Finish runs the command with stored content. It may be called again after an unknown
// outcome.
func (w *FileWrite) Finish(ctx context.Context, content events.FileContent) (*events.Reply, error) {
	c := *w.command
	c.Time = events.TimeOf(w.d.cfg.Now())
	write := w.write
	write.Stored = &content
	c.Parts = []thread.Part{{Name: "file.write", Data: write}}
	ctx, cancel := context.WithTimeout(ctx, w.d.cfg.Timeout)
	defer cancel()
	return w.d.measured("file.write", func() (*events.Reply, error) { return w.d.queue(ctx, &c) })
}
