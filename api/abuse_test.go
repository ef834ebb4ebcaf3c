package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
)

// A page whose own name resolves to this machine reads nothing, and no page of another
// origin uses the server unless it is allowed to.
func TestHandler_HostAndOrigin(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) {
		o.Tenant, o.HTTPHosts, o.CORSOrigins = "acme", []string{"skein.example"}, []string{"https://shop.example"}
	})
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	for host, want := range map[string]int{
		"localhost:" + port: 200, "127.0.0.1:" + port: 200, "[::1]:" + port: 200, "LOCALHOST:" + port: 200, "skein.example": 200, "Skein.Example:443": 200,
		"evil.example": 421, "evil.example:" + port: 421, "127.0.0.1.evil.example": 421, "localhost:1": 421, "skein.example.evil": 421, "10.1.2.3:" + port: 421,
	} {
		if got := askAs(t, url, "GET", "/api/threads", host); got.status != want {
			t.Errorf("Host %q: %d, want %d", host, got.status, want)
		}
	}
	if got := askAs(t, url, "GET", "/api/threads", "127.0.0.1:9999"); !strings.Contains(*got.body.Error.Message, "127.0.0.1:9999") {
		t.Errorf("the port is not told: %s", *got.body.Error.Message)
	}
	own := "Origin: http://127.0.0.1:" + port
	for header, want := range map[string]int{
		own: 200, "Origin: https://shop.example": 200, "Origin: https://evil.example": 403, "Origin: null": 403, "Origin: http://shop.example": 403,
		"Origin: http://localhost:" + port: 403, "Origin: https://127.0.0.1:" + port: 403, "Origin: https://shop.example.evil": 403,
	} {
		for _, more := range []string{"Cookie: skein=x", "Upgrade: websocket"} {
			got := ask(t, url, "GET", "/api/threads", header, more)
			if got.status != want {
				t.Errorf("%s: %d, want %d", header, got.status, want)
			}
			if allowed := got.header.Get("Access-Control-Allow-Origin"); (allowed != "") != (header == "Origin: https://shop.example") {
				t.Errorf("%s: allowed %q", header, allowed)
			}
		}
	}
	preflight := ask(t, url, "OPTIONS", "/api/threads", "Origin: https://shop.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, content-type")
	if preflight.status != http.StatusNoContent || preflight.header.Get("Access-Control-Allow-Headers") != "authorization, content-type" || preflight.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", preflight.status, preflight.header)
	}
	if evil := ask(t, url, "OPTIONS", "/api/threads", "Origin: https://evil.example", "Access-Control-Request-Method: POST"); evil.status != http.StatusForbidden {
		t.Errorf("the preflight of another origin: %d", evil.status)
	}
}

// At a desk the tenant comes from the flag, or from the header, and a key is not ignored.
func TestHandler_TenantAtADesk(t *testing.T) {
	t.Parallel()
	with, without := start(t, func(o *skein.Options) { o.Tenant = "acme" }), start(t)
	for _, c := range []struct {
		url, header string
		want        int
	}{
		{with, "X: y", 200}, {with, "Authorization: Bearer anything", 200}, {with, "Authorization: Bearer skein_x_y", 401}, {with, "Authorization: Basic eDp5", 200},
		{without, "X: y", 401}, {without, "Skein-Tenant: acme", 200}, {without, "Skein-Tenant: a.b", 400}, {without, "Skein-Tenant: *", 400},
	} {
		got := ask(t, c.url, "GET", "/api/threads", c.header)
		if got.status != c.want || got.status == 401 && got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %v, want %d", c.header, got.status, got.header, c.want)
		}
	}
}

// Requests over a limit are refused before their body is read, and say when to come back.
func TestHandler_Limits(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) {
		o.Tenant, o.HTTPKeyLimits = "acme", map[string]int{"streams": 2, "rate": -1}
	})
	var open []net.Conn
	for range 2 {
		conn, status := stream(t, url)
		if open = append(open, conn); status != http.StatusOK {
			t.Fatalf("a stream: %d", status)
		}
	}
	refused := ask(t, url, "GET", "/api/events", "Accept: text/event-stream")
	refused.wantProblem(t, "a third stream", http.StatusTooManyRequests, "queue_full")
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if other := ask(t, url, "GET", "/api/threads"); other.status != http.StatusOK {
		t.Errorf("a request alongside: %d", other.status)
	}
	_ = open[0].Close()
	for { // its place is free once the server has noticed
		conn, status := stream(t, url)
		_ = conn.Close()
		if status == http.StatusOK {
			break
		}
	}

	slow := start(t, func(o *skein.Options) {
		o.Tenant, o.HTTPKeyLimits = "acme", map[string]int{"rate": 1}
	})
	limited := false
	for range 100 { // twice as many as a second's at once
		// The body never comes.
		a := ask(t, slow, "POST", "/api/threads", "Content-Type: application/json", "Content-Length: 0")
		limited = limited || a.status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("a hundred requests at once of one a second were answered")
	}
	if a := ask(t, slow, "POST", "/api/threads", "Content-Length: 1000000"); a.status != http.StatusTooManyRequests {
		t.Errorf("a request whose body does not come: %d", a.status)
	}
}

// stream opens a stream of the tenant and returns its status.
func stream(t *testing.T, url string) (net.Conn, int) {
	t.Helper()
	address := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	if _, err := fmt.Fprintf(conn, "GET /api/events HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", address); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, r.StatusCode
}

// A body that is announced or sent too large is refused, and not read to its end.
func TestHandler_LargeBodies(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	for _, path := range []string{"/api/commands/thread.create", "/api/queries/thread.list", "/v1/responses", "/chat", "/api/threads"} {
		ask(t, url, "POST", path, "Content-Type: application/json", "Content-Length: 104857600").wantProblem(t, path+" announced", http.StatusRequestEntityTooLarge, "payload_too_large")
	}
	body := &counting{Reader: io.LimitReader(endless{}, 100<<20)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/commands/thread.create", body) // chunked
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil { // or the connection was closed before the client read the answer
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("100 MB in pieces: %d", answer.StatusCode)
		}
	}
	if sent := body.n.Load(); sent > 64<<20 {
		t.Errorf("%d bytes were taken", sent)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// counting counts what is read, also by a transport that still reads when its request has ended.
type counting struct {
	io.Reader
	n atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Requests that two servers in a row could take for different ones, and floods of headers,
// are refused; what follows on such a connection is not answered.
func TestHandler_SmugglingAndHeaderFloods(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	address := strings.TrimPrefix(url, "http://")
	for what, text := range map[string]string{
		"two lengths":            "POST /api/threads HTTP/1.1\r\nHost: " + address + "\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}GET /healthz HTTP/1.1\r\n\r\n",
		"a length like no other": "POST /api/threads HTTP/1.1\r\nHost: " + address + "\r\nContent-Length: +2\r\n\r\n{}",
		"an unknown encoding":    "POST /api/threads HTTP/1.1\r\nHost: " + address + "\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"two hosts":              "GET /api/threads HTTP/1.1\r\nHost: " + address + "\r\nHost: evil.example\r\n\r\n",
		"no host":                "GET /api/threads HTTP/1.1\r\n\r\n",
		"a space in a header":    "GET /api/threads HTTP/1.1\r\nHost: " + address + "\r\nX : y\r\n\r\n",
		"a line within a header": "GET /api/threads HTTP/1.1\r\nHost: " + address + "\r\nX: y\x00z\r\n\r\n",
		"headers without end":    "GET /api/threads HTTP/1.1\r\nHost: " + address + "\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 100) + "\r\n",
		"another protocol":       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		_, _ = io.WriteString(conn, text) // the server may close it before all is sent
		all, _ := io.ReadAll(conn)        // an error is a closed connection too
		_ = conn.Close()
		if n := strings.Count(string(all), "HTTP/1.1 "); n > 1 || strings.Contains(string(all), "HTTP/1.1 2") {
			t.Errorf("%s: %d answers: %.300s", what, n, all)
		}
	}
}

// Connections that never finish their headers are closed, and others are served meanwhile.
func TestHandler_SlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	address := strings.TrimPrefix(url, "http://")
	var slow []net.Conn
	for range 200 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /api/threads HTTP/1.1\r\nHost: "+address+"\r\nX: "); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	if a := ask(t, url, "GET", "/api/threads"); a.status != http.StatusOK {
		t.Errorf("another request: %d", a.status)
	}
	for _, conn := range slow { // ends when the server closes it, or with the test's own deadline
		if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
	}
}

// Beyond loopback HTTP needs keys, and TLS or a trusted proxy.
func TestListenOptions_BeyondLoopback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    api.ListenOptions
		keys bool
		want bool
	}{
		{api.ListenOptions{Address: "127.0.0.1:0"}, false, true}, {api.ListenOptions{Address: "[::1]:0"}, false, true}, {api.ListenOptions{Address: "localhost:0"}, false, true},
		{api.ListenOptions{Address: "0.0.0.0:0"}, false, false}, {api.ListenOptions{Address: ":0"}, true, false}, {api.ListenOptions{Address: "10.0.0.1:0"}, true, false},
		{api.ListenOptions{Address: "0.0.0.0:0", Cert: "c", Key: "k"}, false, false}, {api.ListenOptions{Address: "0.0.0.0:0", Cert: "c", Key: "k"}, true, true},
		{api.ListenOptions{Address: "0.0.0.0:0", Proxies: []string{"10.0.0.0/8"}}, true, true}, {api.ListenOptions{Address: "0.0.0.0:0", Proxies: []string{"10.0.0.0/8"}}, false, false},
		{api.ListenOptions{Address: "127.0.0.1:0", Cert: "c"}, true, false}, {api.ListenOptions{Address: "127.0.0.1:0", Proxies: []string{"10.0.0.1"}}, true, false},
		{api.ListenOptions{Address: "127.0.0.1:0", KeyLimits: map[string]int{"speed": 1}}, true, false}, {api.ListenOptions{Address: "nowhere"}, true, false},
	} {
		if err := c.o.Validate(c.keys); (err == nil) != c.want {
			t.Errorf("%+v with keys %v: %v", c.o, c.keys, err)
		}
	}
}
