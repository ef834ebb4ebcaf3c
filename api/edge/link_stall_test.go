package edge_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/skein-threads/skein/api/edge"
)

// A reader of a link who takes nothing of the answer does not keep its place.
func TestLink_ReaderStalls(t *testing.T) {
	s := newStage(t)
	e, err := edge.New(edge.Options{Conn: s.conn, Auth: edge.Desk{Tenant: "acme"}, Stall: 100 * time.Millisecond})
	s.must(err)
	ended := make(chan error, 1)
	e.HandleLink("GET /shared/{tenant}", func(w http.ResponseWriter, _ *http.Request, _ *edge.Caller) error {
		_, err := w.Write(make([]byte, 64<<20))
		ended <- err
		return nil
	}, func(_ http.ResponseWriter, _ *http.Request, err error) { t.Error(err) })
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	conn, err := net.Dial("tcp", address)
	s.must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /shared/acme HTTP/1.1\r\nHost: %s\r\n\r\n", address)
	s.must(err)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("64 MB were written to a reader who takes nothing")
		}
	case <-time.After(time.Minute):
		t.Error("the answer waits for its reader without end")
	}
}
