package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein"
)

// Both sockets take the pages that --cors-origin allows, and those of this server behind a
// proxy that has another name, and refuse others.
func TestSocket_OriginsOfEveryRoute(t *testing.T) {
	url := start(t, func(o *skein.Options) {
		o.Tenant, o.CORSOrigins, o.TrustProxy, o.HTTPHosts = "acme", []string{"https://shop.example"}, []string{"127.0.0.0/8"}, []string{"skein.example"}
	})
	thread := createThread(t, url, "")
	for path, route := range map[string]string{"/v1": "/v1/responses", "/api": "/api/threads/" + thread + "/socket"} {
		for _, c := range []struct {
			origin, forwarded string
			want              int
		}{
			{"https://shop.example", "", http.StatusSwitchingProtocols},
			{"https://skein.example", "skein.example", http.StatusSwitchingProtocols},
			{url, "", http.StatusSwitchingProtocols},
			{"", "", http.StatusSwitchingProtocols},
			{"https://evil.example", "", http.StatusForbidden},
			{"https://evil.example", "skein.example", http.StatusForbidden},
			{"null", "", http.StatusForbidden},
		} {
			h := http.Header{}
			if c.origin != "" {
				h.Set("Origin", c.origin)
			}
			if c.forwarded != "" {
				h.Set("X-Forwarded-Host", c.forwarded)
				h.Set("X-Forwarded-Proto", "https")
			}
			conn, r, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+route, &websocket.DialOptions{HTTPHeader: h})
			if err == nil {
				_ = conn.CloseNow()
			}
			if r == nil || r.StatusCode != c.want {
				t.Errorf("%s, origin %q behind %q: %v, want %d", path, c.origin, c.forwarded, err, c.want)
			}
		}
	}
}

// A request that is no handshake is refused in the form of the contract.
func TestSocket_NoHandshake(t *testing.T) {
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	for _, path := range []string{"/v1/responses", "/api/threads/" + createThread(t, url, "") + "/socket"} {
		ask(t, url, "GET", path).wantProblem(t, path, http.StatusBadRequest, "invalid_request")
	}
}
