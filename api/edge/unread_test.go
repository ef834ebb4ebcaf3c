package edge

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nats-io/nats.go"
)

// A client that reads no answer before it has sent the body is told why it is refused, whatever it was
// refused for.
func TestRefusal_OfALargeBody(t *testing.T) {
	e, err := New(Options{Conn: &nats.Conn{}, Auth: Desk{}})
	if err != nil {
		t.Fatal(err)
	}
	e.Handle("POST /bodies", func(_ http.ResponseWriter, r *http.Request, _ *Caller) error {
		_, err := Body(r, MaxBody)
		return err
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	const size = 24 << 20 // more than what the sockets keep
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size)
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
	tenant := "Skein-Tenant: acme\r\n"
	for name, c := range map[string]struct {
		head string
		want int
	}{
		"too large":          {"POST /bodies HTTP/1.1\r\nHost: " + host + "\r\n" + tenant + length, http.StatusRequestEntityTooLarge},
		"too large, chunked": {"POST /bodies HTTP/1.1\r\nHost: " + host + "\r\n" + tenant + chunked, http.StatusRequestEntityTooLarge},
		"unauthorized":       {"POST /bodies HTTP/1.1\r\nHost: " + host + "\r\n" + length, http.StatusUnauthorized},
		"no route":           {"POST /nowhere HTTP/1.1\r\nHost: " + host + "\r\n" + tenant + length, http.StatusNotFound},
		"another host":       {"POST /bodies HTTP/1.1\r\nHost: evil.example\r\n" + tenant + length, http.StatusMisdirectedRequest},
	} {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = conn.Write(append([]byte(c.head), make([]byte, size)...)); err != nil {
			t.Errorf("%s: %v", name, err)
			_ = conn.Close()
			continue
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != c.want {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
		_ = conn.Close()
	}
}
