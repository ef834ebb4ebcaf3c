package edge

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/quota"
)

// Large bodies are decoded as many at a time as there are places, those of tenants in turn, and
// small ones wait for none of them. A place is free again as soon as the body is decoded.
func TestBodies_LargeOnesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Conn: &nats.Conn{}, Auth: Desk{}, Fair: -1, Bodies: quota.NewPool("bodies", quota.Places{Total: 1}, nil)})
		if err != nil {
			t.Fatal(err)
		}
		var decoding []string
		decoded, sent := make(chan struct{}), make(chan struct{})
		e.Handle("POST /bodies", func(w http.ResponseWriter, r *http.Request, c *Caller) error {
			raw, err := Body(r, MaxBody)
			decoding = append(decoding, c.Tenant)
			if len(raw) >= largeBody {
				<-decoded
			}
			answer, _ := responseOf(w)
			answer.leaveBody() // as a guard does that sends the request
			<-sent
			return err
		})
		post := func(tenant string, size int) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bodies", strings.NewReader(strings.Repeat(" ", size)))
			r.Header.Set(HeaderTenant, tenant)
			go e.ServeHTTP(httptest.NewRecorder(), r)
			synctest.Wait() // in order
		}
		for range 3 {
			post("loud", MaxBody)
		}
		post("quiet", MaxBody)
		post("small", largeBody-1)
		want := []string{"loud", "small"}
		for _, next := range []string{"quiet", "loud", "loud", ""} {
			if !slices.Equal(decoding, want) {
				t.Fatalf("decoded are %v, want %v", decoding, want)
			}
			decoded <- struct{}{}
			synctest.Wait()
			if next != "" {
				want = append(want, next)
			}
		}
		close(sent)
	})
}

// A tenant that waits for what it has sent takes no place meanwhile: large bodies of others are
// decoded.
func TestBodies_NoPlaceIsHeldForWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Conn: &nats.Conn{}, Auth: Desk{}, Fair: 1000, Bodies: quota.NewPool("bodies", quota.Places{Total: 1}, nil)})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var began []string
		e.Handle("POST /bodies", func(_ http.ResponseWriter, _ *http.Request, c *Caller) error {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, c.Tenant)
			return nil
		})
		seen := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(began)
		}
		post := func(tenant, accept string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bodies", strings.NewReader(strings.Repeat(" ", largeBody)))
			r.Header.Set(HeaderTenant, tenant)
			r.Header.Set("Accept", accept)
			go e.ServeHTTP(httptest.NewRecorder(), r)
		}
		e.meters.sent.Charge("quiet", 1, time.Now())
		e.meters.sent.Charge("loud", 60_000, time.Now())
		post("loud", "text/event-stream")
		time.Sleep(time.Second)
		post("quiet", "")
		time.Sleep(time.Second)
		if got := seen(); !slices.Equal(got, []string{"quiet"}) {
			t.Errorf("%q began within a second", got)
		}
		time.Sleep(2 * time.Minute)
		if got := seen(); !slices.Equal(got, []string{"quiet", "loud"}) {
			t.Errorf("%q began at last", got)
		}
	})
}

// What a guard decodes of a request is what the JSON says, and a part of its bytes.
func TestFields_AreRead(t *testing.T) {
	for body, want := range map[string]string{
		``: `{}`, `null`: `{}`, ` { } `: `{}`, `{"b":[1,{"a":2}],"a":"\u00e9"}`: `{"a":"\u00e9","b":[1,{"a":2}]}`, `{"\"":1}`: `{"\"":1}`,
		`[]`: "", `"a"`: "", `{`: "", `{"a":1,"a":2}`: "", `{"a":1}{}`: "", `{"a":}`: "", "{\"a\":\"\xff\"}": "", `{"a":1}x`: "",
	} {
		f, err := decodeFields([]byte(body))
		if err != nil && want != "" || err == nil && string(encodeFields(f)) != want {
			t.Errorf("%q: %s, %v", body, encodeFields(f), err)
		}
	}
	body := []byte(`{"data":` + strings.Repeat(" ", 100) + `"` + strings.Repeat("x", 1<<20) + `"}`)
	if n := testing.AllocsPerRun(1, func() { _, _ = decodeFields(body) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
	f, err := decodeFields(body)
	if err != nil {
		t.Fatal(err)
	}
	at := len(body) - 2
	if last := f["data"]; &last[len(last)-2] != &body[at-1] {
		t.Error("the value was copied")
	}
}
