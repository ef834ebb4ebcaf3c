package stream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skein-threads/skein/api/stream"
)

// counter counts the flushes of an answer.
type counter struct {
	*httptest.ResponseRecorder
	flushes int
}

func (c *counter) Flush() { c.flushes++ }

// Frames that are written are sent together: by the flush after them, or with the last frame of the
// protocol.
func TestWriter_SendsTogether(t *testing.T) {
	w := &counter{ResponseRecorder: httptest.NewRecorder()}
	write := func(out *stream.Writer) error {
		return errors.Join(out.Write(stream.Frame{Data: []byte("1")}), out.Write(stream.Frame{Data: []byte("2")}))
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	err := stream.Serve(w, r, stream.Protocol{Done: &stream.Frame{Data: []byte("3")}}, func(_ context.Context, out *stream.Writer) error {
		return errors.Join(out.Begin(), write(out), out.Flush(), write(out))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(w.Body.String(), "data: ", ""); got != "1\n\n2\n\n1\n\n2\n\n3\n\n" || w.flushes != 3 {
		t.Errorf("%d flushes of %q", w.flushes, got)
	}
}

// A stream has a comment every 15 s, whether it is silent or sends events all the time.
func TestStream_PingsWhateverItSends(t *testing.T) {
	for what, every := range map[string]time.Duration{"silent": time.Hour, "busy": time.Second} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				err := stream.Serve(w, r, stream.Protocol{}, func(_ context.Context, out *stream.Writer) error {
					if err := out.Begin(); err != nil {
						return err
					}
					for begun := time.Now(); time.Since(begun) < 4*15*time.Second; time.Sleep(min(every, 10*time.Second)) {
						if every == time.Second {
							if err := out.Send(stream.Frame{Data: []byte("x")}); err != nil {
								return err
							}
						}
					}
					synctest.Wait()
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if pings := strings.Count(w.Body.String(), ": ping\n\n"); pings != 4 {
					t.Errorf("%d comments in a minute: %q", pings, w.Body)
				}
			})
		})
	}
}

// The headers are the whole answer to HEAD: it waits for no frame, and sends none. A refusal has its own
// status.
func TestServe_Head(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		begin func(out *stream.Writer) error
		want  error
	}{
		"begun":   {(*stream.Writer).Begin, nil},
		"a frame": {func(out *stream.Writer) error { return out.Send(stream.Frame{Data: []byte("x")}) }, nil},
		"refused": {func(*stream.Writer) error { return refused }, refused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				r, begun := httptest.NewRequestWithContext(ctx, http.MethodHead, "/", nil), time.Now()
				err := stream.Serve(httptest.NewRecorder(), r, stream.Protocol{}, func(ctx context.Context, out *stream.Writer) error {
					if err := c.begin(out); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				})
				if took := time.Since(begun); took > 0 || !errors.Is(err, c.want) {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}
