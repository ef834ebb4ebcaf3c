package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"sync/atomic"

	"github.com/skein-threads/skein/events"
)

// Files is the file system of one thread. What it wrote itself it reads:
// its queries wait for its own writes. It is safe for concurrent use.
type Files struct {
	c      *Client
	thread string
	seen   *atomic.Int64 // the sequence of the last own write
	floor  func() int64  // the commit that reads show at least, where somebody knows; see Known
}

// Files gives the file system of a thread, named by its id or by key: and its
// key. Nothing is asked of the server.
func (c *Client) Files(thread string) *Files {
	return &Files{c: c, thread: thread, seen: &atomic.Int64{}}
}

// WriteFileOptions says more of a file that is written. The zero value
// says nothing.
type WriteFileOptions = events.WriteFileOptions

// WriteFile puts content at a path, in place of what it held, and makes the
// directories on the way. When it returns, the content is durable. Without a
// mimeType the content's first bytes tell.
func (f *Files) WriteFile(ctx context.Context, path string, data []byte, mimeType string, o WriteFileOptions) (*events.FileRecord, error) {
	w := write(path, mimeType, o)
	if len(data) > events.InlineFileBytes {
		return f.upload(ctx, w, o, bytes.NewReader(data))
	}
	content := base64.StdEncoding.EncodeToString(data)
	w.Content = &content
	return f.do(ctx, "file.write", w, o)
}

// WriteFileFrom does the same with content of any size that is read piece by
// piece: it is never held at once. If the reader fails, or ctx ends, nothing is
// written.
func (f *Files) WriteFileFrom(ctx context.Context, path string, from io.Reader, mimeType string, o WriteFileOptions) (*events.FileRecord, error) {
	return f.upload(ctx, write(path, mimeType, o), o, from)
}

// WriteExternalFile records a file whose content lies elsewhere: at a
// URL, or under a key of S3 or R2. Skein keeps and fetches no content of it; its
// record's storage is the location.
func (f *Files) WriteExternalFile(ctx context.Context, path, location string, size int64, mimeType string, o WriteFileOptions) (*events.FileRecord, error) {
	w := write(path, mimeType, o)
	w.External, w.Size = location, &size
	return f.do(ctx, "file.write", w, o)
}

func write(path, mimeType string, o WriteFileOptions) events.WriteFile {
	w := events.WriteFile{Path: path, MimeType: mimeType, Metadata: o.Metadata, ExpectedDigest: o.ExpectedDigest}
	if o.Width > 0 {
		w.Width = &o.Width
	}
	if o.Height > 0 {
		w.Height = &o.Height
	}
	return w
}

// do does a command, and gives the record of what it made, or nil.
func (f *Files) do(ctx context.Context, name string, data any, o WriteFileOptions) (*events.FileRecord, error) {
	reply, err := f.c.Do(ctx, name, Request{ThreadID: f.thread, Data: data, CommandID: o.CommandID, Actor: o.Actor})
	if err != nil {
		return nil, err
	}
	return f.made(reply), nil
}

// made notes an own write.
func (f *Files) made(reply *events.Reply) *events.FileRecord {
	for {
		before := f.seen.Load()
		if reply.Seq <= before || f.seen.CompareAndSwap(before, reply.Seq) {
			break
		}
	}
	if reply.Result == nil {
		return nil
	}
	return reply.Result.File
}

// fresh asks for what was written by these files at least, or, if they wrote
// nothing, that the thread is there.
func (f *Files) fresh() (fresh events.Fresh) {
	seen := f.seen.Load()
	if f.floor != nil {
		seen = max(seen, f.floor())
	}
	f.c.WithMinSeq(seen).fresh(&fresh)
	if seen == 0 {
		fresh.MinVersion = new(int64(1))
	}
	return fresh
}

// at says which version of the thread is meant: 0 is now.
func at(version int64) *events.At {
	if version == 0 {
		return nil
	}
	return &events.At{Version: &version}
}

// absent turns the refusal that says that a file is not there into nothing.
func absent(err error) error {
	var e *events.Error
	if errors.As(err, &e) && e.Code == events.NotFound && e.Details != nil && (e.Details.Entity == "file" || e.Details.Entity == "thumbnail") {
		return nil
	}
	return err
}

// StatFile gives the record of a file or directory, nil if there is none.
func (f *Files) StatFile(ctx context.Context, path string) (*events.FileRecord, error) {
	return f.StatFileAt(ctx, path, 0)
}

// StatFileAt does the same as it was at a version of the thread.
func (f *Files) StatFileAt(ctx context.Context, path string, version int64) (*events.FileRecord, error) {
	record, err := ask[events.FileRecord](ctx, f.c, "file.stat", events.StatFile{ThreadID: f.thread, Path: path, At: at(version), Fresh: f.fresh()})
	if err != nil {
		return nil, absent(err)
	}
	return record, nil
}

// ReaddirFile gives what a directory holds, by name; "/" is the root.
func (f *Files) ReaddirFile(ctx context.Context, path string) (*events.FileList, error) {
	return ask[events.FileList](ctx, f.c, "file.list", events.ListFiles{ThreadID: f.thread, Path: path, Fresh: f.fresh()})
}

// UnlinkFile takes a file away. One that is not there is not an error; a
// directory is illegal_transition.
func (f *Files) UnlinkFile(ctx context.Context, path string) error {
	_, err := f.do(ctx, "file.delete", events.DeleteFile{Path: path}, WriteFileOptions{})
	return err
}

// MkdirFile makes a directory, and those on the way, and gives its record; also
// of one that is there.
func (f *Files) MkdirFile(ctx context.Context, path string) (*events.FileRecord, error) {
	record, err := f.do(ctx, "directory.create", events.CreateDirectory{Path: path}, WriteFileOptions{})
	if record != nil || err != nil {
		return record, err
	}
	return f.StatFile(ctx, path)
}

// RmdirFile takes an empty directory away. One that is not there is not an
// error; one that holds something, or a file, is illegal_transition.
func (f *Files) RmdirFile(ctx context.Context, path string) error {
	_, err := f.do(ctx, "directory.remove", events.RemoveDirectory{Path: path}, WriteFileOptions{})
	return err
}

// GetFileStats counts the thread's files.
func (f *Files) GetFileStats(ctx context.Context) (*events.FileStats, error) {
	return ask[events.FileStats](ctx, f.c, "file.stats", events.CountFiles{ThreadID: f.thread, Fresh: f.fresh()})
}

// FindFiles gives the paths of the files that match a glob: * and ?
// within a name, ** over directories, [a-z] and {a,b}. With a slash at its end
// the pattern finds directories.
func (f *Files) FindFiles(ctx context.Context, pattern string) (*events.FindList, error) {
	return ask[events.FindList](ctx, f.c, "file.find", events.FindFiles{ThreadID: f.thread, Pattern: pattern, Fresh: f.fresh()})
}

// GrepFiles gives the lines of the thread's files that match a regular
// expression, RE2. Binary and external files are left out.
func (f *Files) GrepFiles(ctx context.Context, pattern string) (*events.GrepList, error) {
	return f.Grep(ctx, events.GrepFiles{Pattern: pattern})
}

// Grep does the same with all that the query takes.
func (f *Files) Grep(ctx context.Context, q events.GrepFiles) (*events.GrepList, error) {
	q.ThreadID, q.Fresh = f.thread, f.fresh()
	return ask[events.GrepList](ctx, f.c, "file.grep", q)
}

// GetFileThumbnail gives a small picture of a PNG, JPEG, GIF or WebP, itself a
// JPEG or PNG; nil if the file is none of these, is too large for it, is external
// or is not there.
func (f *Files) GetFileThumbnail(ctx context.Context, path string) ([]byte, error) {
	small, err := ask[events.Thumbnail](ctx, f.c, "file.thumbnail", events.GetThumbnail{ThreadID: f.thread, Path: path, Fresh: f.fresh()})
	if err != nil {
		return nil, absent(err)
	}
	data, err := base64.StdEncoding.DecodeString(small.Data)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "an answer that cannot be read: %w", err)
	}
	return data, nil
}
