package remote_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/remote"
)

// The secrets of tests: the new one and the one that it replaces.
const (
	newSecret = "the-new-secret-of-the-shop"
	oldSecret = "the-old-secret-of-the-shop"
)

// far is an endpoint, and the address of its server.
func far(t *testing.T, handler http.HandlerFunc) remote.Endpoint {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return endpointAt(t, s.URL, egress.Loopback()...)
}

// endpointAt is an endpoint at a URL, to addresses that the operator allows.
func endpointAt(t *testing.T, url string, allow ...string) remote.Endpoint {
	t.Helper()
	policy, err := egress.Parse(allow)
	if err != nil {
		t.Fatal(err)
	}
	client := remote.NewClient(policy.Transport())
	t.Cleanup(client.CloseIdleConnections)
	return remote.Endpoint{URL: url, Client: client, Keys: []remote.Key{{ID: "SHOP_2", Secret: []byte(newSecret)}, {ID: "SHOP_1", Secret: []byte(oldSecret)}}}
}

func farTool(t *testing.T, e remote.Endpoint, opts ...remote.Option) runtime.Tool {
	t.Helper()
	tool, err := remote.HTTPTool(e, runtime.ToolSpec{Name: "double"}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func farReactor(t *testing.T, e remote.Endpoint, opts ...remote.Option) runtime.Reactor {
	t.Helper()
	r, err := remote.HTTPReactor(e, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// genuine reports whether a request was signed with a secret a moment ago, as its
// receiver verifies it.
func genuine(r *http.Request, body []byte, id, secret string) bool {
	stamp := r.Header.Get("Skein-Timestamp")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	want := id + "=" + hex.EncodeToString(mac.Sum(nil))
	for _, one := range strings.Split(r.Header.Get("Skein-Signature"), ",") {
		if hmac.Equal([]byte(one), []byte(want)) {
			return true
		}
	}
	return false
}

// bodyOf reads a request.
func bodyOf(t *testing.T, r *http.Request) []byte {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return body
}

// answers returns a handler that answers every request with a status, a media type and
// a body.
func answers(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// write sends a piece of a stream at once.
func write(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}
