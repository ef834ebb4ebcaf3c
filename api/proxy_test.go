package api_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
)

// What a trusted proxy tells of a request counts, and what anybody else tells does not: the host,
// and whether the connection was encrypted, which makes the session's cookie a secure one.
func TestHandler_TrustedProxies(t *testing.T) {
	t.Parallel()
	proxied := func(o *skein.Options) {
		o.Tenant, o.TrustProxy, o.HTTPHosts = "acme", []string{"127.0.0.0/8"}, []string{"skein.example"}
	}
	foreign := func(o *skein.Options) {
		o.Tenant, o.TrustProxy, o.HTTPHosts = "acme", []string{"10.0.0.0/8"}, []string{"skein.example"}
	}
	trusted, not := start(t, proxied), start(t, foreign)
	for _, c := range []struct {
		what, url string
		headers   []string
		want      int
	}{
		{"the host of a proxy", trusted, []string{"X-Forwarded-Host: skein.example"}, 200},
		{"a page of that host", trusted, []string{"X-Forwarded-Host: skein.example", "X-Forwarded-Proto: https", "Origin: https://skein.example"}, 200},
		{"a page of it in the clear", trusted, []string{"X-Forwarded-Host: skein.example", "X-Forwarded-Proto: http", "Origin: https://skein.example"}, 403},
		{"another host of a proxy", trusted, []string{"X-Forwarded-Host: evil.example"}, 421},
		{"a host that the client made up", trusted, []string{"X-Forwarded-Host: skein.example, evil.example"}, 421},
		{"one in a header of its own", trusted, []string{"X-Forwarded-Host: skein.example", "X-Forwarded-Host: evil.example"}, 421},
		{"the host of the nearest of two proxies", trusted, []string{"X-Forwarded-Host: evil.example, skein.example", "X-Forwarded-Proto: http, https", "Origin: https://skein.example"}, 200},
		{"a host that anybody tells", not, []string{"X-Forwarded-Host: evil.example"}, 200},
		{"a page of a host that anybody tells", not, []string{"X-Forwarded-Host: skein.example", "X-Forwarded-Proto: https", "Origin: https://skein.example"}, 403},
	} {
		if got := ask(t, c.url, "GET", "/api/threads", c.headers...); got.status != c.want {
			t.Errorf("%s: %d, want %d", c.what, got.status, c.want)
		}
	}
	for url, name := range map[string]string{trusted: "__Host-skein", not: "skein"} {
		got := ask(t, url, "DELETE", "/console/session", "X-Forwarded-Proto: https", "X-Forwarded-For: 10.0.0.1")
		if cookie := got.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, name+"=") || strings.Contains(cookie, "Secure") != (url == trusted) {
			t.Errorf("the cookie %q, want %s", cookie, name)
		}
	}
}

// Bodies of 10,000 levels are refused on every surface, and take no more memory than others.
func TestHandler_DeepBodies(t *testing.T) {
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	list := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, path := range []string{"/api/threads", "/api/commands/thread.create", "/api/queries/thread.list", "/v1/responses", "/v1/conversations", "/chat", "/console/session"} {
		for _, body := range []string{deep, list, `{"data":` + deep + `}`, `{"metadata":` + deep + `,"input":` + list + `,"messages":` + list + `}`, deep[:len(deep)/2]} {
			r, err := http.Post(url+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if path == "/v1/conversations" && r.StatusCode == http.StatusOK && !strings.Contains(body, "metadata") {
				continue // unknown fields are ignored there
			}
			if r.StatusCode < 400 || r.StatusCode >= 500 || len(raw) > 10_000 {
				t.Errorf("%s: %d with %d bytes: %.200s", path, r.StatusCode, len(raw), raw)
			}
		}
	}
	runtime.GC()
	if runtime.ReadMemStats(&after); after.HeapAlloc > before.HeapAlloc+64<<20 {
		t.Errorf("%d bytes more are in use", after.HeapAlloc-before.HeapAlloc)
	}
}

// A connection whose body trickles, or whose other half is closed, ends; others are answered.
func TestHandler_HalfOpenSockets(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	address := strings.TrimPrefix(url, "http://")
	for what, text := range map[string]string{
		"a body that never comes": "POST /api/threads HTTP/1.1\r\nHost: " + address + "\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
		"a request without end":   "GET /api/threads HTTP/1.1\r\nHost: " + address + "\r\n",
		"nothing":                 "",
		"a folded header":         "GET /api/threads HTTP/1.1\r\nHost: " + address + "\r\nX: a\r\n b\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(conn); err != nil || strings.Count(string(all), "HTTP/1.1 ") > 1 {
			t.Errorf("%s: %q, %v", what, all, err)
		}
		_ = conn.Close()
	}
	if a := ask(t, url, "GET", "/api/threads"); a.status != http.StatusOK {
		t.Errorf("another request: %d", a.status)
	}
}
