package client

import (
	"context"
	"io"
	"iter"

	"github.com/skein-threads/skein/events"
)

// WriteFile writes a file, as [Files.WriteFile] does.
func (t *ThreadState) WriteFile(ctx context.Context, path string, data []byte, mimeType string, o WriteFileOptions) (*events.ThreadFile, error) {
	return threadFile(t.files.WriteFile(ctx, path, data, mimeType, o))
}

// WriteFileFrom writes a file of what a reader returns, as [Files.WriteFileFrom] does.
func (t *ThreadState) WriteFileFrom(ctx context.Context, path string, from io.Reader, mimeType string, o WriteFileOptions) (*events.ThreadFile, error) {
	return threadFile(t.files.WriteFileFrom(ctx, path, from, mimeType, o))
}

// WriteExternalFile records a file with a content elsewhere, as [Files.WriteExternalFile] does.
func (t *ThreadState) WriteExternalFile(ctx context.Context, path, location string, size int64, mimeType string, o WriteFileOptions) (*events.ThreadFile, error) {
	return threadFile(t.files.WriteExternalFile(ctx, path, location, size, mimeType, o))
}

// ReadFile returns a file's content; nil if there is no file at the path, if it is a directory, and
// if the file is external. The content of an empty file is not nil.
func (t *ThreadState) ReadFile(ctx context.Context, path string) ([]byte, error) {
	data, err := t.files.ReadFile(ctx, path)
	return data, withoutContent(err)
}

// ReadFileStream returns a file's content in chunks, as [Files.ReadFileStream] does; nil where
// ReadFile returns nil.
func (t *ThreadState) ReadFileStream(ctx context.Context, path string) (iter.Seq2[events.FileChunk, error], error) {
	chunks, err := t.files.ReadFileStream(ctx, path)
	return chunks, withoutContent(err)
}

// StatFile returns the record of a file or directory, nil if there is none.
func (t *ThreadState) StatFile(ctx context.Context, path string) (*events.ThreadFile, error) {
	return threadFile(t.files.StatFile(ctx, path))
}

// ReaddirFile returns what a directory holds, by name. A directory that does not exist has no
// entries.
func (t *ThreadState) ReaddirFile(ctx context.Context, path string) (*events.ThreadFileList, error) {
	list, err := t.files.ReaddirFile(ctx, path)
	if err != nil {
		list, err = &events.FileList{}, absent(err)
	}
	if err != nil {
		return nil, err
	}
	entries := make([]events.ThreadFile, len(list.Entries))
	for i := range list.Entries {
		entries[i] = list.Entries[i].ThreadFile
	}
	return &events.ThreadFileList{Entries: entries}, nil
}

// UnlinkFile deletes a file, as [Files.UnlinkFile] does.
func (t *ThreadState) UnlinkFile(ctx context.Context, path string) error {
	return t.files.UnlinkFile(ctx, path)
}

// MkdirFile creates a directory and its parents, as [Files.MkdirFile] does.
func (t *ThreadState) MkdirFile(ctx context.Context, path string) (*events.ThreadFile, error) {
	return threadFile(t.files.MkdirFile(ctx, path))
}

// RmdirFile removes an empty directory, as [Files.RmdirFile] does.
func (t *ThreadState) RmdirFile(ctx context.Context, path string) error {
	return t.files.RmdirFile(ctx, path)
}

// GetFileStats counts the thread's files, directories and bytes.
func (t *ThreadState) GetFileStats(ctx context.Context) (*events.FileStats, error) {
	return t.files.GetFileStats(ctx)
}

// FindFiles returns the paths that match a glob, as [Files.FindFiles] does.
func (t *ThreadState) FindFiles(ctx context.Context, pattern string) (*events.FindList, error) {
	return t.files.FindFiles(ctx, pattern)
}

// GrepFiles searches the contents of files, as [Files.GrepFiles] does.
func (t *ThreadState) GrepFiles(ctx context.Context, pattern string) (*events.GrepList, error) {
	return t.files.GrepFiles(ctx, pattern)
}

// GetFileThumbnail returns a small PNG of an image, as [Files.GetFileThumbnail] does.
func (t *ThreadState) GetFileThumbnail(ctx context.Context, path string) ([]byte, error) {
	return t.files.GetFileThumbnail(ctx, path)
}

// threadFile returns a record with the fields that a thread state shows.
func threadFile(record *events.FileRecord, err error) (*events.ThreadFile, error) {
	if record == nil || err != nil {
		return nil, err
	}
	return &record.ThreadFile, nil
}

// withoutContent returns nil for the error of reading a directory, and any other error as it is.
func withoutContent(err error) error {
	if e := events.AsError(err); err != nil && e.Code == events.IllegalTransition && e.Details != nil && e.Details.Entity == "directory" {
		return nil
	}
	return err
}
