package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
)

// dial opens a connection and writes to it. What the server sends is read within minutes.
func (s *stage) dial(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// head is the beginning of a command.
func (s *stage) head(who string, headers ...string) string {
	return "POST /api/commands/thread.create HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\nAuthorization: " + who +
		"\r\nContent-Type: application/json\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

// A body that trickles is cut off when its time is over, however it is sent. Until then it
// takes one place among those of its credential, which is free afterwards, and none of others.
func TestHandler_TrickledBodies(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{"acme": {Tenant: "acme", Subject: "key:a"}, "globex": {Tenant: "globex", Subject: "key:g"}}, func(o *api.Options) {
		o.Listen.KeyLimits = map[string]int{"inflight": 1}
	})
	own := api.NewServer(s.handler)
	if own.ReadHeaderTimeout <= 0 || own.ReadTimeout <= 0 || own.ReadTimeout > time.Minute || own.IdleTimeout <= 0 || own.WriteTimeout <= 0 || own.MaxHeaderBytes <= 0 {
		t.Errorf("not all times and sizes are set: %+v", own)
	}
	own.ReadTimeout = 3 * time.Second // and not a minute
	server := httptest.NewUnstartedServer(nil)
	server.Config = own
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	for what, c := range map[string]struct{ header, piece string }{
		"of an announced length": {"Content-Length: 100000", " "}, "in chunks": {"Transfer-Encoding: chunked", "1\r\n \r\n"},
	} {
		var open []net.Conn
		for held := false; !held; { // until one takes the place: one that came next to this was refused itself
			open = append(open, s.dial(s.head("acme", c.header)))
			status, _ := s.ask("acme", "GET", "/api/threads", "")
			held = status == http.StatusTooManyRequests
		}
		if status, body := s.ask("globex", "GET", "/api/threads", ""); status != http.StatusOK {
			t.Errorf("%s: another credential alongside: %d %s", what, status, body)
		}
		for _, conn := range open {
			go func() { // ends with the connection
				for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
					if _, err := io.WriteString(conn, c.piece); err != nil {
						return
					}
				}
			}()
		}
		for _, conn := range open {
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: it is not cut off", what)
			} else if err == nil { // or it was closed without one
				told, _ := io.ReadAll(answer.Body)
				if text := string(told); answer.StatusCode != http.StatusTooManyRequests &&
					(answer.StatusCode != http.StatusRequestTimeout || !strings.Contains(text, "one minute") || strings.Contains(text, "tcp")) {
					t.Errorf("%s: %d %s", what, answer.StatusCode, text)
				}
				_ = answer.Body.Close()
			}
			_ = conn.Close()
		}
		for free := false; !free; {
			status, _ := s.ask("acme", "GET", "/api/threads", "")
			free = status == http.StatusOK
		}
	}
}

// Large bodies of a tenant are bounded, also those that never come: further ones are refused
// before they are read. Small ones, and those of other tenants, are not.
func TestHandler_BodiesInFlight(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{"acme": {Tenant: "acme", Subject: "key:a"}, "globex": {Tenant: "globex", Subject: "key:g"}})
	large := `{"data":{"title":"` + strings.Repeat("x", 4_000_000) + `"}}`
	if status, body := s.ask("acme", "POST", "/api/commands/thread.create", large); status != http.StatusRequestEntityTooLarge {
		t.Fatalf("alone: %d %.200s", status, body)
	}
	var open []net.Conn
	for range 8 { // 32 MB
		open = append(open, s.dial(s.head("acme", fmt.Sprintf("Content-Length: %d", len(large)))+"{"))
	}
	refused := func() bool {
		status, body := s.ask("acme", "POST", "/api/commands/thread.create", large)
		if status != http.StatusTooManyRequests && status != http.StatusRequestEntityTooLarge {
			t.Fatalf("one more: %d %.200s", status, body)
		}
		return status == http.StatusTooManyRequests
	}
	for !refused() { // until all have been announced: one that came next to this was refused itself
		open = append(open, s.dial(s.head("acme", fmt.Sprintf("Content-Length: %d", len(large)))+"{"))
	}
	if status, body := s.ask("acme", "POST", "/api/commands/thread.create", `{"data":{"title":"small"}}`); status != http.StatusOK {
		t.Errorf("a small one: %d %.200s", status, body)
	}
	if status, body := s.ask("globex", "POST", "/api/commands/thread.create", large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("of another tenant: %d %.200s", status, body)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	for refused() { // until the server has noticed
	}
}

// Headers that never end are not read to an end.
func TestHandler_HeadersWithoutEnd(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, url: start(t, func(o *skein.Options) { o.Tenant = "acme" })}
	for what, line := range map[string]string{"many headers": "X: y\r\n", "long headers": "X: " + strings.Repeat("y", 8<<10) + "\r\n", "one header": strings.Repeat("y", 8<<10)} {
		conn := s.dial("GET /api/threads HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\nX-One: ")
		sent := make(chan int, 1)
		go func() {
			n := 0
			for ; n < 64<<20; n += len(line) {
				if _, err := io.WriteString(conn, line); err != nil {
					break
				}
			}
			sent <- n
		}()
		all, _ := io.ReadAll(conn) // an error is a closed connection, too
		_ = conn.Close()
		if n := <-sent; n >= 64<<20 {
			t.Errorf("%s: %d bytes were taken", what, n)
		}
		if text := string(all); text != "" && !strings.HasPrefix(text, "HTTP/1.1 431 ") {
			t.Errorf("%s: %.200s", what, text)
		}
	}
}

// What follows a request with two lengths in it is not treated as another request.
func TestHandler_LengthAndEncoding(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, url: start(t, func(o *skein.Options) { o.Tenant = "acme" })}
	address := strings.TrimPrefix(s.url, "http://")
	hidden := "GET /healthz HTTP/1.1\r\nHost: " + address + "\r\n\r\n"
	for what, text := range map[string]string{
		"a length, and chunks":            s.head("x", fmt.Sprintf("Content-Length: %d", 5+len(hidden)), "Transfer-Encoding: chunked") + "0\r\n\r\n" + hidden,
		"chunks, and a length":            s.head("x", "Transfer-Encoding: chunked", "Content-Length: 3") + "2\r\n{}\r\n0\r\n\r\n" + hidden,
		"two lengths":                     s.head("x", "Content-Length: 2", "Content-Length: 0") + "{}" + hidden,
		"two lengths in one":              s.head("x", "Content-Length: 2, 2") + "{}" + hidden,
		"two encodings":                   s.head("x", "Transfer-Encoding: chunked, identity") + "0\r\n\r\n" + hidden,
		"an encoding twice":               s.head("x", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + "0\r\n\r\n" + hidden,
		"an encoding after a tab":         s.head("x", "Transfer-Encoding:\x0bchunked") + "0\r\n\r\n" + hidden,
		"an encoding of an older version": strings.Replace(s.head("x", "Transfer-Encoding: chunked"), "HTTP/1.1", "HTTP/1.0", 1) + "0\r\n\r\n" + hidden,
		"a chunk of a negative length":    s.head("x", "Transfer-Encoding: chunked") + "-1\r\n\r\n" + hidden,
		"a chunk that is longer":          s.head("x", "Transfer-Encoding: chunked") + "2\r\n{}" + hidden,
		"a chunk's line with a bare end":  s.head("x", "Transfer-Encoding: chunked") + "2;a\n{}\r\n0\r\n\r\n" + hidden,
	} {
		conn := s.dial(text)
		_ = conn.(*net.TCPConn).CloseWrite()
		all, _ := io.ReadAll(conn) // an error is a closed connection, too
		_ = conn.Close()
		if n := strings.Count(string(all), "HTTP/1."); n > 1 {
			t.Errorf("%s: %d answers: %.600s", what, n, all)
		}
	}
}
