package rest_test

import (
	"bufio"
	"context"
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
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// secondEdge is another edge on the server of a site.
func (s *site) secondEdge(o edge.Options) *site {
	s.t.Helper()
	return s.edgeOn(natstest.Dial(s.t, s.Addresses().NATS), o)
}

func (s *site) edgeOn(nc *nats.Conn, o edge.Options) *site {
	s.t.Helper()
	s.t.Cleanup(nc.Close)
	o.Conn, o.Auth = nc, edge.Desk{}
	e, err := edge.New(o)
	s.Must(err)
	rest.Routes(e, rest.Options{})
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
		_, err := c.Send(s.t.Context(), id(thread), events.CreateItem{Item: events.UserText(text)})
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
	t.Parallel()
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
	t.Parallel()
	s := start(t, withNATS)
	thread := s.thread()
	strict := s.secondEdge(edge.Options{Stall: 300 * time.Millisecond, SocketPing: time.Hour, Tenant: edge.Limits{Streams: 1}})
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

// Readers of one thread share a subscription, which ends with the last of them.
func TestThreadEvents_OneSubscription(t *testing.T) {
	s := start(t, withNATS)
	thread := s.thread()
	nc := natstest.Dial(t, s.Addresses().NATS)
	other := s.edgeOn(nc, edge.Options{})
	other.ask("GET", thread, "").want(http.StatusOK) // its inbox for answers
	before := nc.NumSubscriptions()
	var readers []*sse
	for range 50 {
		in := other.stream("GET", thread+"/events?from=1", "")
		in.take(1)
		readers = append(readers, in)
	}
	if with := nc.NumSubscriptions(); with != before+1 {
		t.Errorf("%d subscriptions with 50 readers, %d before", with, before)
	}
	s.say(thread)
	for _, in := range readers {
		if e := in.take(1); e[0].id != "3" {
			t.Errorf("got %+v", e)
		}
		in.close()
	}
	for nc.NumSubscriptions() > before {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the subscription stays")
		}
	}
}

// A stream that has nothing to send says so, and a WebSocket is pinged: proxies keep both open.
func TestStreams_Ping(t *testing.T) {
	t.Parallel()
	s := start(t, withNATS)
	thread := s.thread()
	quick := s.secondEdge(edge.Options{Ping: 20 * time.Millisecond, SocketPing: 20 * time.Millisecond})
	in := bufio.NewReader(quick.open("GET", thread+"/events?from=2", "", "Accept", "text/event-stream").Body)
	for range 3 {
		line, err := in.ReadString('\n')
		s.Must(err)
		blank, err := in.ReadString('\n')
		if s.Must(err); line != ": ping\n" || blank != "\n" {
			t.Fatalf("got %q and %q", line, blank)
		}
	}
	s.say(thread)
	line := ": ping\n"
	for line == ": ping\n" || line == "\n" {
		var err error
		line, err = in.ReadString('\n')
		s.Must(err)
	}
	if line != "id: 3\n" {
		t.Errorf("after the pings: %q", line)
	}

	pinged := make(chan struct{}, 100)
	conn, _, err := websocket.Dial(t.Context(), quick.url+thread+"/socket", &websocket.DialOptions{
		HTTPHeader:     http.Header{"Skein-Tenant": {"acme"}},
		OnPingReceived: func(context.Context, []byte) bool { pinged <- struct{}{}; return true },
	})
	s.Must(err)
	defer func() { _ = conn.CloseNow() }()
	go func() { _, _, _ = conn.Read(t.Context()) }() // pings are received while something reads
	for range 3 {
		<-pinged
	}
}

// A client that answers no ping is cut off, and its place is free again.
func TestSocket_LostClient(t *testing.T) {
	t.Parallel()
	s := start(t, withNATS)
	thread := s.thread()
	quick := s.secondEdge(edge.Options{Stall: 200 * time.Millisecond, SocketPing: 20 * time.Millisecond, Tenant: edge.Limits{Streams: 1}})
	conn, _, err := websocket.Dial(t.Context(), quick.url+thread+"/socket", &websocket.DialOptions{
		HTTPHeader:     http.Header{"Skein-Tenant": {"acme"}},
		OnPingReceived: func(context.Context, []byte) bool { return false },
	})
	s.Must(err)
	defer func() { _ = conn.CloseNow() }()
	go func() { _, _, _ = conn.Read(t.Context()) }()
	quick.waitForPlace(thread)
}

// An observed thread is sent at most every 100 ms, however fast it changes.
func TestSocket_ObservesAtMostEvery100ms(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	w := s.dial(thread)
	w.send(`{"type":"watch","what":["thread"]}`)
	w.next()
	begun := time.Now()
	c := s.Client("acme")
	for n := range 200 {
		_, err := c.Send(t.Context(), id(thread), events.UpdateThread{Title: new(fmt.Sprint("title ", n))})
		s.Must(err)
	}
	states := int64(0)
	for g := w.next(); ; g = w.next() {
		if states++; g.Thread.Title == "title 199" {
			break
		}
	}
	if most := int64(time.Since(begun)/(100*time.Millisecond)) + 2; states > most {
		t.Errorf("%d states of 200 changes; at most %d are possible", states, most)
	}
}
