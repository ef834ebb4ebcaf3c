package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// sender is an edge whose routes answer with a number of bytes, in writes of 8 KiB.
func sender(t *testing.T, bytes int) *Edge {
	t.Helper()
	e, err := New(Options{Conn: &nats.Conn{}, Auth: Desk{}, Fair: 100})
	if err != nil {
		t.Fatal(err)
	}
	send := func(w http.ResponseWriter, _ *http.Request, _ *Caller) error {
		for range bytes / (8 << 10) {
			if _, err := w.Write(make([]byte, 8<<10)); err != nil {
				return err
			}
		}
		return nil
	}
	e.Handle("GET /files/{path}", send)
	e.HandleLink("GET /shared/{tenant}", send, func(_ http.ResponseWriter, _ *http.Request, err error) { t.Error(err) })
	return e
}

// get returns how long an answer takes.
func get(t *testing.T, e *Edge, tenant, path string) time.Duration {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set(HeaderTenant, tenant)
	w, begun := httptest.NewRecorder(), time.Now()
	if e.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return time.Since(begun)
}

// What is sent as one answer has the pace of streams: that of a file while other tenants are active,
// and that of links always. Each delays nothing but itself.
func TestPace_AnswersAreWeighed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second = 100 * sentBytes // at the pace of a tenant
		e := sender(t, 3*second)
		if took := get(t, e, "acme", "/files/a"); took > 0 {
			t.Errorf("alone a tenant waits %v for a file", took)
		}
		if took := get(t, e, "", "/shared/acme"); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("what a link opens takes %v", took)
		}
		small, other := sender(t, 8<<10), sender(t, sentBytes)
		small.meters, other.meters = e.meters, e.meters
		if took := get(t, other, "globex", "/files/a"); took > 0 {
			t.Errorf("the other tenant waits %v", took)
		}
		if took := get(t, e, "acme", "/files/a"); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("while another is active, a file takes %v", took)
		}
		if took := get(t, small, "acme", "/files/a"); took > 20*time.Millisecond {
			t.Errorf("a small answer waits %v for the large ones", took)
		}
	})
}
