package edge_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skein-threads/skein/api/edge"
)

// A stream has a comment every 15 s, whether it is silent or sends events all the time.
func TestStream_PingsWhateverItSends(t *testing.T) {
	for what, every := range map[string]time.Duration{"silent": time.Hour, "busy": time.Second} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				s := edge.NewStream(w)
				defer s.Close()
				for begun := time.Now(); time.Since(begun) < 4*15*time.Second; time.Sleep(min(every, 10*time.Second)) {
					if every == time.Second {
						if err := s.Send(edge.Event{Data: []byte("x")}); err != nil {
							t.Fatal(err)
						}
					}
				}
				synctest.Wait()
				if pings := strings.Count(w.Body.String(), ": ping\n\n"); pings != 4 {
					t.Errorf("%d comments in a minute: %q", pings, w.Body)
				}
			})
		})
	}
}
