package edge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Sizes of the largest bodies that are no files, in bytes.
const (
	MaxBody        = 4 << 20
	MaxMessageBody = 32 << 20 // of messages, which may hold pictures: under /chat, /v1, /agui and /a2a
)

// maxBody returns the size of the largest body of a request that is no file.
func maxBody(r *http.Request) int64 {
	switch surfaceOf(r.URL.Path) {
	case "v1", "agui", "a2a":
		return MaxMessageBody
	case "chat":
		if r.URL.Path == "/chat" {
			return MaxMessageBody
		}
	}
	return MaxBody
}

// BodyTime is how long a body that is no file may take, without what it waits for here: the
// ReadTimeout of the edge's server.
const BodyTime = time.Minute

// maxDepth is how deep objects and lists may lie in one another in a body, so that no decoder
// spends time on those that every command refuses.
const maxDepth = 256

// readBody bounds the body of a request, and the time that it takes. One that is no file is
// read: its route begins when it is whole, and the tenant may send so much.
func (w *response) readBody(r *http.Request, tenant string) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") && r.ContentLength != 0 {
		w.Header().Set("Accept-Encoding", "identity")
		return &statusError{status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", text: "the body's Content-Encoding is " + clip(coding) + "; send it as it is, without one"}
	}
	upload := isUpload(r)
	ctrl := http.NewResponseController(w)
	if upload || strings.HasPrefix(r.URL.Path, "/threads/") && !strings.Contains(r.Header.Get("Content-Type"), "json") {
		b := &body{Reader: &pacedBody{Reader: r.Body, ctx: r.Context(), meters: w.edge.meters, tenant: tenant}, Closer: r.Body, ctrl: ctrl, upload: upload, stall: w.edge.opts.Stall}
		if r.ContentLength == 0 {
			b.whole()
		}
		r.Body = b
		return nil
	}
	if r.ContentLength != 0 {
		most := maxBody(r)
		if r.ContentLength > most {
			return events.TooLarge(bodyOf(most), r.ContentLength, most)
		}
		paced := &pacedBody{
			Reader: http.MaxBytesReader(w, r.Body, most), ctx: r.Context(), meters: w.edge.meters, tenant: tenant,
			ctrl: ctrl, began: time.Now(),
		}
		raw, err := w.place.readAll(paced, r.ContentLength, most)
		if full := (*busyError)(nil); errors.As(err, &full) {
			_, _ = w.edge.meters.weigh(r.Context(), tenant, smallBody) // some of it has arrived
		}
		if err != nil {
			return err
		}
		if w.leave, err = w.enterBody(r.Context(), tenant, len(raw)); err != nil {
			return err
		}
		if tooDeep(raw) {
			return events.Invalid("", "objects and lists of the body lie more than %d deep in one another", maxDepth)
		}
		r.Body = &wholeBody{bytes.NewReader(raw), raw}
	}
	_ = ctrl.SetReadDeadline(time.Time{}) // a recorder in a test has none
	return nil
}

// enterBody waits for a place in which a large body is decoded. A small one needs none.
func (w *response) enterBody(ctx context.Context, tenant string, size int) (leave func(), err error) {
	if size < largeBody {
		return nil, nil
	}
	leave, err = w.edge.opts.Bodies.Wait(ctx, tenant)
	if full := (*quota.FullError)(nil); errors.As(err, &full) {
		return nil, busy("the tenant", "large bodies in flight", time.Second)
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return leave, err
}

// decode runs work that takes long if the body is large, in a place: that of the request, or one of
// its own if the request has left its place or had none.
func (w *response) decode(ctx context.Context, tenant string, size int, work func() error) error {
	if w.leave != nil && !w.left.Load() {
		return work()
	}
	leave, err := w.enterBody(ctx, tenant, size)
	if err != nil {
		return err
	}
	if leave != nil {
		defer leave()
	}
	return work()
}

// wholeBody is a body that was read.
type wholeBody struct {
	*bytes.Reader
	raw []byte
}

// Close implements io.Closer.
func (*wholeBody) Close() error { return nil }

// Body returns the body of a request of which nothing was read yet, and no more than one byte beyond
// most. The caller does not change it: the edge has read it already, and it is no copy.
func Body(r *http.Request, most int64) ([]byte, error) {
	if whole, ok := r.Body.(*wholeBody); ok {
		return whole.raw[:min(int64(len(whole.raw)), most+1)], nil
	}
	return io.ReadAll(io.LimitReader(r.Body, most+1))
}

// bodyOf returns how a refusal names a body of a size limit.
func bodyOf(most int64) string {
	if most == MaxMessageBody {
		return "the body, with the files in its messages,"
	}
	return "the body"
}

// readAll reads a body of at most so many bytes, whose announced length counts at once, and takes
// memory only for what has come.
func (a *admission) readAll(from io.Reader, announced, most int64) ([]byte, error) {
	if err := a.hold(announced); err != nil {
		return nil, err
	}
	if announced > 0 {
		most = announced
	}
	raw := make([]byte, 0, min(max(announced+1, 512), smallBody))
	for {
		if len(raw) == cap(raw) {
			if err := a.hold(min(4*int64(cap(raw)), most)); err != nil {
				return nil, err
			}
			raw = slices.Grow(raw, int(min(3*int64(len(raw)), most+1-int64(len(raw)))))
		}
		n, err := from.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		var large *http.MaxBytesError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return raw, nil
		case errors.As(err, &large):
			return nil, events.TooLarge(bodyOf(large.Limit), large.Limit+1, large.Limit)
		default:
			return nil, Broken(err, "a body that is no file has one minute to arrive; send it again, at once")
		}
	}
}

// Broken returns the refusal of a body that cannot be read: too late, as the limit says, or because
// the client went away.
func Broken(err error, limit string) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &statusError{status: http.StatusRequestTimeout, code: "request_timeout", text: "the body did not arrive in time: " + limit}
	}
	refused := events.Invalid("", "the body ends too early; send all of it")
	refused.Cause = err
	return refused
}

// tooDeep reports whether a text, if it is JSON, is deeper than maxDepth.
func tooDeep(raw []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// body is the body of a request that is a file. Once it is whole, a handler may take longer
// than reading may.
type body struct {
	io.Reader
	io.Closer
	ctrl   *http.ResponseController
	upload bool
	stall  time.Duration // an upload may send nothing for so long
}

func (b *body) Read(p []byte) (int, error) {
	if b.upload {
		_ = b.ctrl.SetReadDeadline(time.Now().Add(b.stall)) // a recorder in a test has none
	}
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		b.whole()
	}
	return n, err
}

func (b *body) whole() { _ = b.ctrl.SetReadDeadline(time.Time{}) }
