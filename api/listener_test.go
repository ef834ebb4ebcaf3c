package api

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Connections beyond the bound are closed at once, those below it stay, and one that ends
// makes room.
func TestListener_BoundsConnections(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(http.NotFoundHandler())
	done := make(chan error, 1)
	go func() { done <- server.Serve(&bounded{Listener: inner, most: 2}) }()
	defer func() {
		_ = server.Close()
		<-done
	}()
	served := func(conn net.Conn) bool {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return false
		}
		_, err := conn.Read(make([]byte, 4096))
		return err == nil
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, second := dial(), dial()
	if !served(first) || !served(second) {
		t.Fatal("below the bound")
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
