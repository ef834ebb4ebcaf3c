package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/internal/natstest"
)

// Authenticated connections stay, and beyond the bound others are closed at once; one that ends makes
// room. Strangers make room for further connections, whatever address holds the places.
func TestListener_BoundsConnections(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := edge.New(edge.Options{Conn: natstest.Connect(t, natstest.Start(t)), Auth: edge.Desk{}})
	if err != nil {
		t.Fatal(err)
	}
	e.Handle("GET /", func(http.ResponseWriter, *http.Request, *edge.Caller) error { return nil })
	server := NewServer(e)
	done := make(chan error, 1)
	go func() { done <- server.Serve(newBounded(inner, 2)) }()
	defer func() {
		_ = server.Close()
		<-done
	}()
	asks := func(conn net.Conn, header string) bool {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n"); err != nil {
			return false
		}
		_, err := conn.Read(make([]byte, 4096))
		return err == nil
	}
	served := func(conn net.Conn) bool { return asks(conn, edge.HeaderTenant+": acme\r\n") }
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	var strangers []net.Conn
	for range 3 {
		strangers = append(strangers, dial(), dial())
		if !asks(strangers[len(strangers)-1], "") {
			t.Fatal("a stranger that came last is not answered")
		}
	}
	first, second := dial(), dial()
	if !served(first) || !served(second) {
		t.Fatal("below the bound")
	}
	for _, conn := range strangers {
		if asks(conn, "") {
			t.Error("a stranger has kept its place")
		}
	}
	for range 10 {
		if served(dial()) {
			t.Fatal("one beyond the bound is served")
		}
	}
	if !served(first) || !served(second) {
		t.Error("those that were open are not served any more")
	}
	_ = second.Close()
	for !served(dial()) { // until the server has noticed
	}
	o := ListenOptions{Address: "127.0.0.1:0"}
	real, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	if b, ok := real.(*bounded); !ok || b.most != maxConnections {
		t.Errorf("the listener %T is without the bound", real)
	}
}

// Beyond loopback, HTTP needs keys, and TLS, a proxy that has it, or a network that is trusted.
func TestListen_BeyondLoopback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    ListenOptions
		keys bool
		want bool
	}{
		"nothing":           {ListenOptions{}, true, false},
		"a certificate":     {ListenOptions{Cert: "c", Key: "k"}, true, true},
		"a proxy":           {ListenOptions{Proxies: []string{"10.0.0.0/8"}}, true, true},
		"a trusted network": {ListenOptions{Plain: true}, true, true},
		"no keys":           {ListenOptions{Plain: true}, false, false},
	} {
		c.o.Address = "0.0.0.0:8420"
		var refused *NotLoopbackError
		if err := c.o.Validate(c.keys); (err == nil) != c.want || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
