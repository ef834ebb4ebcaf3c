package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"

	"github.com/skein-threads/skein/events"
)

// piecesAhead is how many pieces of a file are requested ahead of the reader.
const piecesAhead = 4

// ReadFile returns a file's content; nil if there is no file at the path, or it is
// external. The content of an empty file is not nil.
func (f *Files) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return f.ReadFileAt(ctx, path, 0)
}

// ReadFileAt is ReadFile at a version of the thread.
func (f *Files) ReadFileAt(ctx context.Context, path string, version int64) ([]byte, error) {
	record, err := f.readable(ctx, path, version)
	if record == nil || err != nil {
		return nil, err
	}
	data := make([]byte, 0, record.Size)
	for piece, err := range f.ContentFrom(ctx, record, 0) {
		if err != nil {
			return nil, err
		}
		data = append(data, piece...)
	}
	return data, nil
}

// ReadFileStream returns a file's content in chunks of 128 KiB, in order; nil if there
// is no file at the path, or it is external. TotalChunks is set in every chunk. An
// empty file is one chunk without data.
//
// Only a few pieces are in memory at a time. Cancel ctx to stop early: no more chunks
// follow, but an error. The data of earlier chunks stays valid. A file that is
// overwritten while it is read is read to its end as it was.
func (f *Files) ReadFileStream(ctx context.Context, path string) (iter.Seq2[events.FileChunk, error], error) {
	return f.ReadFileStreamAt(ctx, path, 0)
}

// ReadFileStreamAt is ReadFileStream at a version of the thread.
func (f *Files) ReadFileStreamAt(ctx context.Context, path string, version int64) (iter.Seq2[events.FileChunk, error], error) {
	record, err := f.readable(ctx, path, version)
	if record == nil || err != nil {
		return nil, err
	}
	return func(yield func(events.FileChunk, error) bool) { f.chunks(ctx, record, yield) }, nil
}

// readable returns the record of a file whose content is stored here, or nil.
func (f *Files) readable(ctx context.Context, path string, version int64) (*events.FileRecord, error) {
	record, err := f.StatFileAt(ctx, path, version)
	if record == nil || err != nil || record.External {
		return nil, err
	}
	if record.IsDirectory {
		e := events.Errorf(events.IllegalTransition, "%s is a directory, and has no content", record.Path)
		e.Details = &events.ErrorDetails{Entity: "directory", ID: record.Path}
		return nil, e
	}
	return record, nil
}

func (f *Files) chunks(ctx context.Context, record *events.FileRecord, yield func(events.FileChunk, error) bool) {
	chunk := events.FileChunk{TotalChunks: record.Chunks()}
	if record.Size == 0 {
		chunk.IsLast, chunk.Data = true, []byte{}
		yield(chunk, nil)
		return
	}
	for piece, err := range f.ContentFrom(ctx, record, 0) {
		if err != nil {
			yield(events.FileChunk{}, err)
			return
		}
		for len(piece) > 0 {
			n := min(len(piece), events.FileChunkBytes)
			chunk.Data, piece = piece[:n:n], piece[n:]
			chunk.IsLast = chunk.Index == chunk.TotalChunks-1
			if err := ctx.Err(); err != nil {
				yield(events.FileChunk{}, stoppedError(err))
				return
			}
			if !yield(chunk, nil) {
				return
			}
			chunk.Index++
		}
	}
}

func stoppedError(err error) error {
	return events.Errorf(events.Unavailable, "reading the file was stopped: %w", err)
}

// getContent is the body of content.get.
type getContent struct {
	ThreadID string `json:"threadId"`
	Path     string `json:"path"`
	Digest   string `json:"digest"`
	Piece    int64  `json:"piece"`
	Direct   bool   `json:"direct,omitzero"`
}

type gotPiece struct {
	data []byte
	err  *events.Error
}

// ContentFrom returns the content of a file as its record says, from a byte on, in pieces. It
// requests a few of them ahead. A content that is read whole, from byte 0, is checked against
// its digest before the last piece.
func (f *Files) ContentFrom(ctx context.Context, record *events.FileRecord, offset int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		total := (record.Size + events.FilePieceBytes - 1) / events.FilePieceBytes
		first, skip := offset/events.FilePieceBytes, offset%events.FilePieceBytes
		waiting := make([]chan gotPiece, 0, piecesAhead)
		next := first
		sum, read := sha256.New(), int64(0)
		for n := first; n < total; n++ {
			ahead := piecesAhead
			if offset > 0 { // a few bytes may be all that is wanted
				ahead = int(min(piecesAhead, n-first+1))
			}
			for ; next < total && len(waiting) < ahead; next++ {
				waiting = append(waiting, f.fetchPiece(ctx, record, next))
			}
			got := <-waiting[0]
			waiting = append(waiting[:0], waiting[1:]...)
			if got.err != nil {
				yield(nil, got.err)
				return
			}
			_, _ = sum.Write(got.data) // never fails
			read += int64(len(got.data))
			if n == total-1 && first == 0 && (read != record.Size || hex.EncodeToString(sum.Sum(nil)) != record.Digest) {
				yield(nil, events.Errorf(events.Unavailable, "the content of %s does not match its digest", record.Path))
				return
			}
			if int64(len(got.data)) < skip {
				yield(nil, events.Errorf(events.Unavailable, "the content of %s is shorter than its record says", record.Path))
				return
			}
			if !yield(got.data[skip:], nil) {
				return
			}
			skip = 0
		}
	}
}

// fetchPiece requests one piece.
func (f *Files) fetchPiece(ctx context.Context, record *events.FileRecord, n int64) chan gotPiece {
	out := make(chan gotPiece, 1)
	go func() {
		q := getContent{record.ThreadID, record.Path, record.Digest, n, true}
		got := f.requestPiece(ctx, q)
		want := min(events.FilePieceBytes, record.Size-n*events.FilePieceBytes)
		if got.err == nil && int64(len(got.data)) != want { // the stream does not have it: ask the service for the reason
			q.Direct = false
			got = f.requestPiece(ctx, q)
		}
		out <- got
	}()
	return out
}

func (f *Files) requestPiece(ctx context.Context, q getContent) gotPiece {
	body, err := encode(q)
	if err != nil {
		return gotPiece{err: events.AsError(err)}
	}
	data, refusal := f.c.request(ctx, events.KindFile, "content.get", body)
	return gotPiece{data, refusal}
}
