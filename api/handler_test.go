package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/skeintest"
)

// start starts a server whose HTTP has an address, and returns its URL.
func start(t *testing.T, options ...func(*skein.Options)) string {
	t.Helper()
	s := skeintest.Start(t, append([]func(*skein.Options){func(o *skein.Options) { o.HTTPListen = "127.0.0.1:0" }}, options...)...)
	return s.Addresses().HTTP
}

// answer is what a raw request got.
type answer struct {
	status int
	header http.Header
	text   string
	body   struct {
		Error *struct{ Type, Code, Message, Param *string }
	}
}

// ask sends a request whose target is sent as it is, without any client's tidying.
func ask(t *testing.T, url, method, target string, headers ...string) answer {
	t.Helper()
	return askAs(t, url, method, target, strings.TrimPrefix(url, "http://"), headers...)
}

// askAs is ask with the header Host.
func askAs(t *testing.T, url, method, target, host string, headers ...string) answer {
	t.Helper()
	return decoded(t, exchange(t, url, method, target, host, headers...))
}

// exchange sends a request as it is, and returns the answer as it is.
func exchange(t *testing.T, url, method, target, host string, headers ...string) answer {
	t.Helper()
	address := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	text := method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(headers, "\r\n")
	if len(headers) > 0 {
		text += "\r\n"
	}
	if _, err := conn.Write([]byte(text + "\r\n")); err != nil {
		t.Fatal(err)
	}
	return received(t, conn)
}

func received(t *testing.T, conn net.Conn) answer {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: r.StatusCode, header: r.Header, text: string(raw)}
}

// decoded returns an answer with what it says in JSON.
func decoded(t *testing.T, a answer) answer {
	t.Helper()
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal([]byte(a.text), &a.body); err != nil {
			t.Fatalf("%s: %v", a.text, err)
		}
	}
	return a
}

// wantProblem checks that an answer is a refusal in the form of the contract.
func (a answer) wantProblem(t *testing.T, what string, status int, code string) {
	t.Helper()
	e := a.body.Error
	if a.status != status || e == nil || e.Type == nil || e.Code == nil || e.Message == nil || e.Param == nil {
		t.Errorf("%s: %d %+v; want %d %s, with no null", what, a.status, e, status, code)
		return
	}
	if *e.Code != code || *e.Message == "" || a.header.Get("Skein-Request-Id") == "" {
		t.Errorf("%s: %s %q, request id %q; want %s", what, *e.Code, *e.Message, a.header.Get("Skein-Request-Id"), code)
	}
}

// Whatever a path is made of, the edge answers in its own form, and never with a redirect.
func TestHandler_UnknownPathsAreProblems(t *testing.T) {
	t.Parallel()
	url := start(t)
	for _, target := range []string{
		"/nothing", "/api", "/api/", "/api/nothing", "//", "//api/threads", "/api//threads", "/api/./threads", "/api/../healthz", "/..", "/api/threads/..",
		"/%2e%2e/healthz", "/api/%2e%2e/x", "/%00", "/api/%00/x", "/nothing%2f..%2fhealthz", "/healthz/..", "/healthz//", "/v1//models", "/other/..//x",
	} {
		ask(t, url, "GET", target).wantProblem(t, target, http.StatusNotFound, "not_found")
	}
	if a := ask(t, url, "GET", "/healthz"); a.status != http.StatusOK {
		t.Errorf("/healthz: %d", a.status)
	}
}

// Who asks for a route of another API is told what Skein has.
func TestHandler_RoutesOfOtherAPIs(t *testing.T) {
	t.Parallel()
	url := start(t)
	for path, has := range map[string]string{
		"/v1/messages": "POST /v1/responses", "/v1/completions": "POST /v1/responses",
		"/v1/uploads": "POST /v1/files", "/v1/uploads/upload_1/parts": "POST /v1/files", "/v1/threads/t/runs": "/v1/conversations",
	} {
		a := ask(t, url, "POST", path)
		a.wantProblem(t, path, http.StatusNotFound, "not_found")
		if a.body.Error != nil && !strings.Contains(*a.body.Error.Message, has) {
			t.Errorf("%s: %s", path, *a.body.Error.Message)
		}
	}
}

// A route that has another method says which, also health and metrics.
func TestHandler_WrongMethod(t *testing.T) {
	t.Parallel()
	url := start(t)
	a := ask(t, url, "POST", "/healthz")
	a.wantProblem(t, "POST /healthz", http.StatusMethodNotAllowed, "method_not_allowed")
	if allow := a.header.Get("Allow"); allow != "GET, HEAD" {
		t.Errorf("Allow: %q", allow)
	}
}

// createThread creates a thread over HTTP, with a key unless it is empty, and returns its id.
func createThread(t *testing.T, url, key string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/threads", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var made struct{ ThreadID string }
	if err := json.NewDecoder(got.Body).Decode(&made); err != nil || made.ThreadID == "" {
		t.Fatalf("creating a thread: %d, %v", got.StatusCode, err)
	}
	return made.ThreadID
}
