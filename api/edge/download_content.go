package edge

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// content reads a file's content from any place.
type content struct {
	ctx    context.Context
	files  *client.Files
	record *events.FileRecord
	alive  *http.ResponseController

	at   int64
	next func() ([]byte, error, bool) // of the pieces from at; nil: not begun
	stop func()
	rest []byte // of the last piece
	err  error  // that ended the answer
}

func (c *content) Read(p []byte) (int, error) {
	if c.at >= c.record.Size {
		return 0, io.EOF
	}
	for len(c.rest) == 0 {
		if c.next == nil {
			c.next, c.stop = iter.Pull2(c.files.ContentFrom(c.ctx, c.record, c.at))
		}
		_ = c.alive.SetWriteDeadline(time.Now().Add(downloadStall)) // a recorder in a test has none
		piece, err, more := c.next()
		if err == nil && !more {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			c.err = err
			return 0, err
		}
		c.rest = piece
	}
	n := copy(p, c.rest)
	c.rest, c.at = c.rest[n:], c.at+int64(n)
	return n, nil
}

func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.record.Size
	}
	if offset != c.at {
		c.close()
		c.at = offset
	}
	return offset, nil
}

// close ends the reading of pieces.
func (c *content) close() {
	if c.stop != nil {
		c.stop()
	}
	c.next, c.stop, c.rest = nil, nil, nil
}

// refusing answers with errors in JSON where http.ServeContent refuses a request. It sends the
// status with the first byte of the content, so that a content that cannot be read is refused.
type refusing struct {
	http.ResponseWriter
	refused bool
	status  int // to be sent; 0: it was, or none was set
}

func (w *refusing) WriteHeader(status int) {
	var err Problem
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		err = Problem{Code: string(events.InvalidRequest), Param: "Range", Message: "Range names no part of the content, whose size Content-Range has"}
	case http.StatusPreconditionFailed:
		err = Problem{Code: string(events.VersionConflict), Message: "the file has changed: its ETag is not the one that the request names; get the file again"}
	default:
		w.status = status
		return
	}
	err.Type, w.refused = "invalid_request", true
	for _, name := range []string{"Content-Disposition", "Content-Length"} {
		w.Header().Del(name)
	}
	WriteJSON(w.ResponseWriter, status, struct {
		Error Problem `json:"error"`
	}{err})
}

func (w *refusing) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	w.begin()
	return w.ResponseWriter.Write(p)
}

// begin sends the status, if it was not sent.
func (w *refusing) begin() {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
		w.status = 0
	}
}

// fail refuses the request, and reports false if the content has begun.
func (w *refusing) fail() bool {
	if w.status == 0 {
		return false
	}
	for _, name := range []string{"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Length", "Content-Range", "Content-Type", "Etag", "Last-Modified"} {
		w.Header().Del(name)
	}
	return true
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
