package api_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein"
)

// Both sockets take the pages that --cors-origin allows, and those of this server behind a
// proxy that has another name, and refuse others.
func TestSocket_OriginsOfEveryRoute(t *testing.T) {
	t.Parallel()
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

// A request that is no handshake is told what to change to, in the form of the contract; one over
// HTTP/2, whose connection cannot change, is told that.
func TestSocket_NoHandshake(t *testing.T) {
	t.Parallel()
	cert, key := writeCertificate(t, t.TempDir(), 1)
	url := start(t, func(o *skein.Options) { o.Tenant, o.TLSCert, o.TLSKey = "acme", cert, key })
	for _, h2 := range []bool{false, true} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: h2}
		if !h2 {
			tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		defer tr.CloseIdleConnections()
		made, err := (&http.Client{Transport: tr}).Post(url+"/api/threads", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = made.Body.Close()
		for _, path := range []string{"/v1/responses", made.Header.Get("Location") + "/socket"} {
			r, err := (&http.Client{Transport: tr}).Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			a := decoded(t, answer{status: r.StatusCode, header: r.Header, text: string(raw)})
			switch {
			case err != nil || (r.ProtoMajor == 2) != h2:
				t.Errorf("%s %v", r.Proto, err)
			case h2:
				a.wantProblem(t, path, http.StatusBadRequest, "invalid_request")
			default:
				a.wantProblem(t, path, http.StatusUpgradeRequired, "upgrade_required")
			}
			if upgrade, connection := r.Header.Get("Upgrade"), r.Header.Get("Connection"); h2 != (upgrade == "") || h2 != (connection == "") || !h2 && upgrade != "websocket" {
				t.Errorf("%s over %s: Upgrade %q, Connection %q", path, r.Proto, upgrade, connection)
			}
		}
	}
}
