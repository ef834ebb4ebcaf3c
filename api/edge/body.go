package edge

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
)

// MaxBody is the size of the largest body that is no file, in bytes.
const MaxBody = 4 << 20

// uploadStall is how long an upload may send nothing.
const uploadStall = 30 * time.Second

// limitBody bounds the body of a request, and the time that it takes.
func limitBody(w http.ResponseWriter, r *http.Request) error {
	upload := isUpload(r)
	if free := upload || strings.HasPrefix(r.URL.Path, "/threads/") && !strings.Contains(r.Header.Get("Content-Type"), "json"); !free {
		if r.ContentLength > MaxBody {
			return events.TooLarge("the body", r.ContentLength, MaxBody)
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	}
	b := &body{ReadCloser: r.Body, ctrl: http.NewResponseController(w), upload: upload}
	if r.ContentLength == 0 {
		b.whole()
	}
	r.Body = b
	return nil
}

// body is the body of a request. Once it is whole, a handler may take longer than reading
// may.
type body struct {
	io.ReadCloser
	ctrl   *http.ResponseController
	upload bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.upload {
		_ = b.ctrl.SetReadDeadline(time.Now().Add(uploadStall)) // a recorder in a test has none
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.whole()
	}
	return n, err
}

func (b *body) whole() { _ = b.ctrl.SetReadDeadline(time.Time{}) }
