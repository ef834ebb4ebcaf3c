package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// secondEdge is another edge on the server of a site.
func (s *site) secondEdge(o edge.Options) *site {
	s.t.Helper()
	nc, err := nats.Connect(s.Addresses().NATS)
	s.Must(err)
	s.t.Cleanup(nc.Close)
	o.Conn, o.Auth = nc, edge.Desk{}
	e, err := edge.New(o)
	s.Must(err)
	rest.Routes(e)
	server := httptest.NewServer(e)
	s.t.Cleanup(server.Close)
	s.t.Cleanup(e.Close) // before the server, which waits for its handlers
	other := *s
	other.url = server.URL
	return &other
}

// withNATS lets a server listen, for a second edge.
func withNATS(o *skein.Options) { o.NATSListen = "127.0.0.1:0" }

// fillThread adds n items of 32 KiB each to a thread: more than sockets hold.
func (s *site) fillThread(thread string, n int) {
	s.t.Helper()
	c, text := s.Client(s.tenant), strings.Repeat("x", 32<<10)
	for range n {
		_, err := client.Send(s.t.Context(), c, id(thread), events.CreateItem{Item: events.UserText(text)})
		s.Must(err)
	}
}

// waitForPlace waits until a stream may begin again, where limits permit one.
func (s *site) waitForPlace(thread string) {
	s.t.Helper()
	for {
		a := s.ask("GET", thread+"/events?from=x", "", "Accept", "text/event-stream") // is refused, and opens none
		if a.status == http.StatusBadRequest {
			return
		}
		a.want(http.StatusTooManyRequests)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.t.Context().Done():
			s.t.Fatal("the stream that nobody reads was not cut off")
		}
	}
}

// A reader of a real connection that takes nothing is cut off, its place is free again, and
// another edge continues after what it has, without loss.
func TestThreadEvents_StalledReader(t *testing.T) {
	const items = 300
	s := start(t, withNATS)
	thread := s.thread()
	strict := s.secondEdge(edge.Options{Stall: 300 * time.Millisecond, Tenant: edge.Limits{Streams: 1}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(strict.url, "http://"))
	s.Must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s/events HTTP/1.1\r\nHost: %s\r\nSkein-Tenant: acme\r\nAccept: text/event-stream\r\n\r\n", thread, strings.TrimPrefix(strict.url, "http://"))
	s.Must(err)
	in := bufio.NewReader(conn)
	r, err := http.ReadResponse(in, nil) // the stream has begun; nothing more is read for now
	s.Must(err)
	s.fillThread(thread, items)
	strict.waitForPlace(thread)

	got := newSSE(r)
	last := 0
	for {
		e, ok := got.next()
		if !ok {
			break
		}
		if last++; e.id != strconv.Itoa(last) {
			t.Fatalf("%s after %d", e.id, last-1)
		}
	}
	if last == 0 || last >= items+2 {
		t.Fatalf("the reader that was cut off has %d events", last)
	}
	if got.scan.Err() == nil {
		t.Error("the answer ended as if it was whole")
	}
	rest := s.stream("GET", thread+"/events", "", "Last-Event-ID", strconv.Itoa(last)).take(items + 2 - last)
	if ids(rest) != counted(last+1, items+2) {
		t.Errorf("after %d: %s", last, ids(rest))
	}
}

// A WebSocket whose client takes nothing is cut off like any other stream.
func TestSocket_StalledClient(t *testing.T) {
	s := start(t, withNATS)
	thread := s.thread()
	strict := s.secondEdge(edge.Options{Stall: 300 * time.Millisecond, Tenant: edge.Limits{Streams: 1}})
	w := strict.dial(thread)
	w.send(`{"type":"watch","what":["events"]}`)
	if g := w.next(); g.Event.Threadversion != 1 {
		t.Fatalf("the first frame: %+v", g)
	}
	s.fillThread(thread, 300)
	strict.waitForPlace(thread)
	last := int64(1)
	for {
		_, raw, err := w.Read(t.Context())
		if err != nil {
			break
		}
		if !strings.Contains(string(raw[:min(len(raw), 2000)]), fmt.Sprintf(`"threadversion":%d`, last+1)) {
			t.Fatalf("after %d: %.300s", last, raw)
		}
		last++
	}
	if last >= 302 {
		t.Fatal("everything was taken")
	}
	again := s.dial(thread)
	again.send(fmt.Sprintf(`{"type":"watch","what":["events"],"from":%d}`, last))
	for version := last + 1; version <= 302; version++ {
		if g := again.next(); g.Event.Threadversion != version {
			t.Fatalf("resumed: %d, want %d", g.Event.Threadversion, version)
		}
	}
}

// A reader that has gone away frees its place, however it went.
func TestStreams_PlacesAreFreed(t *testing.T) {
	s := start(t, withNATS)
	thread := s.thread()
	strict := s.secondEdge(edge.Options{Tenant: edge.Limits{Streams: 1}})
	in := strict.stream("GET", thread+"/events", "")
	strict.ask("GET", thread+"/events", "", "Accept", "text/event-stream").problem(http.StatusTooManyRequests, "queue_full", "")
	strict.ask("GET", thread+"/socket", "", upgrade()...).problem(http.StatusTooManyRequests, "queue_full", "")
	strict.ask("GET", thread, "").want(http.StatusOK)
	in.close()
	strict.waitForPlace(thread)
	w := strict.dial(thread)
	s.Must(w.Close(websocket.StatusNormalClosure, ""))
	strict.waitForPlace(thread)
	w = strict.dial(thread)
	_ = w.CloseNow()
	strict.waitForPlace(thread)
	if raw, err := io.ReadAll(strict.open("GET", thread, "").Body); err != nil || len(raw) == 0 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}
