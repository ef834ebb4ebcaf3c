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

// Files is the file system of one thread. It reads its own writes. It is safe for
// concurrent use.
type Files struct {
	c      *Client
	thread string
	seen   *atomic.Int64 // sequence of the last own write
	floor  func() int64  // the commit that reads show at least, or nil; see Known
}

// Files returns the file system of a thread, given by its id or "key:" and its key. It
// sends no request.
func (c *Client) Files(thread string) *Files {
	return &Files{c: c, thread: thread, seen: &atomic.Int64{}}
}

// WriteFileOptions are the optional properties of a written file. The zero value sets
// none.
type WriteFileOptions = events.WriteFileOptions

// WriteFile writes a file, replaces its content if it exists, and creates missing
// directories. When it returns, the content is durable. If mimeType is empty, it is
// detected from the first bytes.
func (f *Files) WriteFile(ctx context.Context, path string, data []byte, mimeType string, o WriteFileOptions) (*events.FileRecord, error) {
	w := write(path, mimeType, o)
	if len(data) > events.InlineFileBytes {
		return f.upload(ctx, w, o, bytes.NewReader(data))
	}
	content := base64.StdEncoding.EncodeToString(data)
	w.Content = &content
	return f.execute(ctx, "file.write", w, o)
}

// WriteFileFrom is WriteFile for content of any size, which it reads piece by piece and
// never holds as a whole. If the reader fails or ctx ends, nothing is written.
func (f *Files) WriteFileFrom(ctx context.Context, path string, from io.Reader, mimeType string, o WriteFileOptions) (*events.FileRecord, error) {
	return f.upload(ctx, write(path, mimeType, o), o, from)
}

// WriteExternalFile records a file whose content is stored elsewhere: at a URL, or
// under a key of S3 or R2. Skein neither stores nor fetches the content; the location
// is the record's storage.
func (f *Files) WriteExternalFile(ctx context.Context, path, location string, size int64, mimeType string, o WriteFileOptions) (*events.FileRecord, error) {
	w := write(path, mimeType, o)
	w.External, w.Size = location, &size
	return f.execute(ctx, "file.write", w, o)
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

// execute executes a command, and returns the record of the file that it wrote, or nil.
func (f *Files) execute(ctx context.Context, name string, data any, o WriteFileOptions) (*events.FileRecord, error) {
	reply, err := f.c.Do(ctx, name, Request{ThreadID: f.thread, Data: data, CommandID: o.CommandID, Actor: o.Actor})
	if err != nil {
		return nil, err
	}
	return f.noteWrite(reply), nil
}

// noteWrite notes the sequence of an own write.
func (f *Files) noteWrite(reply *events.Reply) *events.FileRecord {
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

// fresh requires an answer that shows this handle's own writes or, if it has none, that
// the thread exists.
func (f *Files) fresh() (fresh events.Fresh) {
	seen := f.seen.Load()
	if f.floor != nil {
		seen = max(seen, f.floor())
	}
	if seen > 0 {
		fresh.MinSeq = new(max(seen, f.c.minSeq))
	} else {
		fresh.MinVersion = new(int64(1))
	}
	return fresh
}

// at selects a version of the thread; 0 is the current one.
func at(version int64) *events.At {
	if version == 0 {
		return nil
	}
	return &events.At{Version: &version}
}

// absent returns nil for a refusal because the file does not exist, and other errors as
// they are.
func absent(err error) error {
	var e *events.Error
	if errors.As(err, &e) && e.Code == events.NotFound && e.Details != nil && (e.Details.Entity == "file" || e.Details.Entity == "thumbnail") {
		return nil
	}
	return err
}

// StatFile returns the record of a file or directory, nil if there is none.
func (f *Files) StatFile(ctx context.Context, path string) (*events.FileRecord, error) {
	return f.StatFileAt(ctx, path, 0)
}

// StatFileAt is StatFile at a version of the thread.
func (f *Files) StatFileAt(ctx context.Context, path string, version int64) (*events.FileRecord, error) {
	record, err := Read(ctx, f.c, events.StatFile{ThreadID: f.thread, Path: path, At: at(version), Fresh: f.fresh()})
	if err != nil {
		return nil, absent(err)
	}
	return record, nil
}

// ReaddirFile returns all entries of a directory, by name; "/" is the root.
func (f *Files) ReaddirFile(ctx context.Context, path string) (*events.FileList, error) {
	return allPages(false, func(cursor string) (*events.FileList, error) {
		return Read(ctx, f.c, events.ListFiles{ThreadID: f.thread, Path: path, Cursor: cursor, Fresh: f.fresh()})
	}, func(l *events.FileList) *string { return &l.NextCursor }, func(all, page *events.FileList) {
		all.Entries = append(all.Entries, page.Entries...)
	})
}

// UnlinkFile removes a file. A missing file is not an error; a directory is
// illegal_transition.
func (f *Files) UnlinkFile(ctx context.Context, path string) error {
	_, err := f.execute(ctx, "file.delete", events.DeleteFile{Path: path}, WriteFileOptions{})
	return err
}

// MkdirFile creates a directory and its parents, and returns its record, also if it
// exists.
func (f *Files) MkdirFile(ctx context.Context, path string) (*events.FileRecord, error) {
	record, err := f.execute(ctx, "directory.create", events.CreateDirectory{Path: path}, WriteFileOptions{})
	if record != nil || err != nil {
		return record, err
	}
	return f.StatFile(ctx, path)
}

// RmdirFile removes an empty directory. A missing directory is not an error; a file or
// a directory that is not empty is illegal_transition.
func (f *Files) RmdirFile(ctx context.Context, path string) error {
	_, err := f.execute(ctx, "directory.remove", events.RemoveDirectory{Path: path}, WriteFileOptions{})
	return err
}

// GetFileStats returns the statistics of the thread's files.
func (f *Files) GetFileStats(ctx context.Context) (*events.FileStats, error) {
	return Read(ctx, f.c, events.CountFiles{ThreadID: f.thread, Fresh: f.fresh()})
}

// FindFiles returns the paths of the files that match a glob: * and ? within a name, **
// across directories, [a-z] and {a,b}. A pattern that ends with a slash matches
// directories.
func (f *Files) FindFiles(ctx context.Context, pattern string) (*events.FindList, error) {
	return Read(ctx, f.c, events.FindFiles{ThreadID: f.thread, Pattern: pattern, Fresh: f.fresh()})
}

// GrepFiles returns the lines of the thread's files that match a regular expression
// (RE2). Binary and external files are skipped.
func (f *Files) GrepFiles(ctx context.Context, pattern string) (*events.GrepList, error) {
	return f.Grep(ctx, events.GrepFiles{Pattern: pattern})
}

// Grep is GrepFiles with all parameters of the query.
func (f *Files) Grep(ctx context.Context, q events.GrepFiles) (*events.GrepList, error) {
	q.ThreadID, q.Fresh = f.thread, f.fresh()
	return Read(ctx, f.c, q)
}

// GetFileThumbnail returns a thumbnail, as JPEG or PNG, of a PNG, JPEG, GIF or WebP
// image; nil if the file is not one of these, is too large, is external or does not
// exist.
func (f *Files) GetFileThumbnail(ctx context.Context, path string) ([]byte, error) {
	small, err := Read(ctx, f.c, events.GetThumbnail{ThreadID: f.thread, Path: path, Fresh: f.fresh()})
	if err != nil {
		return nil, absent(err)
	}
	data, err := base64.StdEncoding.DecodeString(small.Data)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "read the answer: %w", err)
	}
	return data, nil
}
