package page

import (
	"net/http"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Picture is a small image that pages load. The server generates it, so that it contains nothing
// but pixels: contents of callers are never served here.
type Picture struct {
	Path string // below /console, as of a page
	Load func(*Ask) (*Image, error)
}

// Image is what a Picture answers.
type Image struct {
	Tag  string // changes with the content
	Make func() (kind string, content []byte, err error)
}

// picture returns the handler of a picture. A browser revalidates the image each time, so that it
// shows nothing after its session has ended. An unchanged image is not generated again.
func (s *server) picture(p Picture) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		if err := permits(c, "", edge.Read); err != nil {
			return err
		}
		a, err := newAsk(r, c)
		if err != nil {
			return err
		}
		image, err := p.Load(a)
		if err != nil {
			return err
		}
		h, tag := w.Header(), `"`+image.Tag+`"`
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
		h.Set("Cache-Control", "private, no-cache")
		if r.Header.Get("If-None-Match") == tag {
			h.Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		kind, content, err := image.Make()
		if err != nil {
			return err
		}
		if kind != "image/jpeg" && kind != "image/png" {
			return events.Errorf(events.Unavailable, "the picture is of the kind %.40q, which is not shown", kind)
		}
		h.Set("ETag", tag)
		h.Set("Content-Type", kind)
		_, _ = w.Write(content) // the reader may have gone
		return nil
	}
}
