package commands

import (
	"context"
	"encoding/base64"
	"strconv"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// keepContents stores what a command brings as the content of files, before it
// is decided: no event names content that is not there. What a refused command
// brought is left to the collector.
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
		return events.Errorf(events.Unavailable, "this service keeps no files")
	}
	// Refused now, it leaves nothing behind.
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

// FileWrite is a file.write whose content comes after it.
type FileWrite struct {
	d       *Dispatcher
	command *thread.Command
	write   events.WriteFile
}

// BeginWrite takes the body of a file.write whose content comes by an upload,
// and refuses now what would be refused when it is there: a request that is
// wrong, a path that cannot be, a thread that is not there.
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

// Tenant tells whose file it is.
func (w *FileWrite) Tenant() string { return w.command.Tenant }

// Finish does the command with content that is stored. It may be called again
// after an unknown outcome.
func (w *FileWrite) Finish(ctx context.Context, content events.FileContent) (*events.Reply, error) {
	c := *w.command
	c.Time = events.TimeOf(w.d.cfg.Now())
	write := w.write
	write.Stored = &content
	c.Parts = []thread.Part{{Name: "file.write", Data: write}}
	ctx, cancel := context.WithTimeout(ctx, w.d.cfg.Timeout)
	defer cancel()
	return w.d.counted("file.write", func() (*events.Reply, error) { return w.d.queue(ctx, &c) })
}
