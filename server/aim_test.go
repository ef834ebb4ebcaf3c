package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/natstest"
)

// An answer is never sent where it would count as an event, a request or an
// acknowledgement, whatever reply subject a request names.
func TestAnswers_AreNotSentToSubjectsOfSkein(t *testing.T) {
	t.Parallel()
	s := run(t, free(t))
	nc := natstest.Dial(t, s.Addresses().NATS)
	aimed := make(chan *nats.Msg, 64)
	for _, subject := range []string{"skein.timeline.>", "skein.live.>", "skein.log.>", "$KV.x.>"} {
		if _, err := nc.ChanSubscribe(subject, aimed); err != nil {
			t.Fatal(err)
		}
	}
	const thread = "acme.T-01a20478-7391-7ae8-a09f-d3a53b34f112"
	for _, reply := range []string{"skein.timeline." + thread + ".item.created", "skein.live." + thread + ".x", "skein.log." + thread, "$KV.x.y"} {
		for _, subject := range []string{
			"skein.cmd.acme.nonsense.x", "skein.query.acme.thread.list", "skein.query.acme.nonsense.x", "skein.file.acme.content.get", "skein.file.acme.content.put",
		} {
			if err := nc.PublishRequest(subject, reply, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Later requests are answered after those.
	for _, subject := range []string{"skein.cmd.acme.nonsense.x", "skein.query.acme.thread.list", "skein.file.acme.content.get"} {
		if _, err := nc.Request(subject, []byte(`{}`), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case m := <-aimed:
		t.Errorf("an answer was sent to %s: %.200s", m.Subject, m.Data)
	default:
	}
}

// A page whose own name resolves to this machine reads nothing.
func TestHTTP_AnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	s := run(t, free(t))
	url := s.Addresses().HTTP
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost:" + port: http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:" + port: http.StatusOK, "[::1]": http.StatusOK, "LOCALHOST.": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "evil.example:" + port: http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example": http.StatusMisdirectedRequest, "localhost.evil.example:" + port: http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/nothing"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = got.Body.Close()
			if (got.StatusCode == http.StatusMisdirectedRequest) != (want == http.StatusMisdirectedRequest) {
				t.Errorf("%s of %q: %d, want %d", path, host, got.StatusCode, want)
			}
		}
	}
}
