package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// FileFormat is the version of the format of exported files. Files of another format are
// refused.
const FileFormat = 1

// fileName is the value of FileHeader.File.
const fileName = "skein-export"

// FileHeader is the first line of a file, which describes its contents.
type FileHeader struct {
	File    string   `json:"file"`             // fileName
	Format  int      `json:"format"`           // FileFormat
	Program string   `json:"program,omitzero"` // the version of Skein that wrote it
	Created string   `json:"created"`          // when it was written
	Prefix  string   `json:"prefix"`           // of the log's subjects
	Tenant  string   `json:"tenant,omitzero"`  // absent: all tenants
	Threads []string `json:"threads,omitempty"`
	From    uint64   `json:"from"`            // the log's first sequence when the file was written
	To      uint64   `json:"to"`              // the log's last sequence then; later commits are not in the file
	Chains  bool     `json:"chains,omitzero"` // it holds the ends of threads, without commits

	Contents bool `json:"contents,omitzero"` // it holds the contents of files
}

// FileCommit is the line of a commit: the message of the log as it is stored.
type FileCommit struct {
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	Type    string `json:"contentType"`     // the header Content-Type
	Version string `json:"version"`         // the header Skein-Version
	Chain   string `json:"chain"`           // the header Skein-Chain
	Body    string `json:"body,omitzero"`   // the exact bytes
	Base64  []byte `json:"base64,omitzero"` // the exact bytes, if they are not text
}

// FileEnd is the line after the last commit of a thread, with the thread's last version.
type FileEnd struct {
	End     string `json:"end"` // the subject
	Commits int64  `json:"commits"`
	Version string `json:"version"` // the thread's, according to its last commit
	Seq     uint64 `json:"seq"`     // of its last commit
	Chain   string `json:"chain"`   // of its last commit
}

// Manifest describes what a file must contain. It is part of the last line.
type Manifest struct {
	Lines   int64  `json:"lines"` // before the manifest
	Threads int64  `json:"threads"`
	Others  int64  `json:"others"` // keys' claims and tenants' own aggregates
	Commits int64  `json:"commits"`
	Bytes   int64  `json:"bytes"`   // of the preceding lines, line ends included
	LastSeq uint64 `json:"lastSeq"` // the highest of a commit

	Contents int64 `json:"contents,omitzero"` // of files
	Absent   int64 `json:"absent,omitzero"`   // contents that could not be read when the file was written

	Digest string `json:"digest"` // hex SHA-256 of the preceding lines, line ends included
}

// FileLast is the last line: the manifest, and its signature.
type FileLast struct {
	Manifest  events.JSON `json:"manifest"`           // these exact bytes are signed
	Key       string      `json:"key,omitzero"`       // the public NKey
	Signature string      `json:"signature,omitzero"` // base64
}

// ReadOptions says what to require of a file.
type ReadOptions struct {
	Tenant   string // the required tenant; empty: any, and several
	Key      string // the public NKey that must have signed it; empty: any, or none
	Progress func(Progress)

	size int64 // of the file, for the progress; 0 if unknown
}

// twice prepares a file for being read twice.
func (o *ReadOptions) twice(file io.ReadSeeker) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("rewind the file: %w; it must be seekable", err)
	}
	o.size = size
	return nil
}

// lineWriter writes documents as lines, and computes their digest.
type lineWriter struct {
	to    io.Writer
	sum   hash.Hash
	lines int64
	bytes int64
}

func newLineWriter(to io.Writer) *lineWriter { return &lineWriter{to: to, sum: sha256.New()} }

func (w *lineWriter) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	w.sum.Write(b)
	w.lines++
	w.bytes += int64(len(b))
	if _, err := w.to.Write(b); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// copy writes lines that are already encoded.
func (w *lineWriter) copy(from io.Reader, lines int64) error {
	n, err := io.Copy(io.MultiWriter(w.sum, w.to), from)
	w.lines += lines
	w.bytes += n
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

func (w *lineWriter) digest() string { return hex.EncodeToString(w.sum.Sum(nil)) }
