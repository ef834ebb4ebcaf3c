package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/api/edge"
)

// An upload that comes to a halt is told the limit, and what to do.
func TestFiles_StalledUpload(t *testing.T) {
	t.Parallel()
	s := start(t, withNATS)
	strict := s.secondEdge(edge.Options{Stall: 200 * time.Millisecond})
	for name, length := range map[string]int{"small": 1000, "large": 4 << 20} {
		at := s.thread() + "/files/" + name
		conn, err := net.Dial("tcp", strings.TrimPrefix(strict.url, "http://"))
		s.Must(err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nSkein-Tenant: acme\r\nContent-Length: %d\r\n\r\nbegin", at, conn.RemoteAddr(), length)
		s.Must(err)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		s.Must(err)
		told, _ := io.ReadAll(r.Body)
		if text := string(told); r.StatusCode != http.StatusRequestTimeout || !strings.Contains(text, "request_timeout") || !strings.Contains(text, "200ms") || strings.Contains(text, "tcp") {
			t.Errorf("%s: %d %s", name, r.StatusCode, text)
		}
		s.ask("GET", at, "").want(http.StatusNotFound)
	}
}

// A frame is refused with what it lacks. The name of a live event may be any text.
func TestSocket_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := s.dial(s.thread())
	for _, c := range []struct{ frame, param, says string }{
		{`{"type":"command","id":"x"}`, "command", "command is missing"}, {`{"type":"emit"}`, "name", "1 to 128 characters"},
		{`{"type":"emit","name":"` + strings.Repeat("é", 129) + `"}`, "name", "1 to 128 characters"},
	} {
		w.send(c.frame)
		if g := w.next(); g.Type != "error" || g.Param != c.param || !strings.Contains(g.Message, c.says) {
			t.Errorf("%.60s: %+v", c.frame, g)
		}
	}
	w.send(`{"type":"watch","what":["live"]}`)
	w.send(`{"type":"command","id":1,"command":"item.create","data":` + hello + `}`)
	w.next() // the watch has begun
	w.send(`{"type":"emit","name":"a b.c>*"}`)
	if g := w.next(); g.Type != "live" || g.Name != "a b.c>*" {
		t.Errorf("%+v", g)
	}
}
