package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
)

// Health needs no credential anywhere, and metrics need one where they are not open.
func TestHandler_MetricsNeedACredential(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	ops := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for open, want := range map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized} {
		h, err := api.New(api.Options{Conn: s.conn, Auth: edge.Desk{}, Ops: ops, OpenOps: open, Listen: api.ListenOptions{Address: "127.0.0.1:0"}})
		s.skein.Must(err)
		front := httptest.NewServer(h)
		t.Cleanup(front.Close)
		t.Cleanup(h.Close)
		for path, status := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": want} {
			if a := ask(t, front.URL, "GET", path); a.status != status {
				t.Errorf("open: %v: %s: %d, want %d", open, path, a.status, status)
			}
		}
		if a := ask(t, front.URL, "GET", "/metrics", "Skein-Tenant: acme"); a.status != http.StatusOK {
			t.Errorf("open: %v: with a credential: %d", open, a.status)
		}
	}
}
