package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A server that is killed again and again while an endpoint fails delivers, afterwards,
// every event, in the order of its thread, to the webhook's url, signed with its secretEnv.
// Neither its log nor its store has the secret.
func TestWebhook_KilledServer(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	var mu sync.Mutex
	last := map[string]int64{} // the version up to which each thread was accepted
	more := make(chan struct{}, 1)
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the server was killed
		}
		if !strings.HasPrefix(r.Header.Get("Skein-Signature"), "HOOK_SECRET=") {
			t.Errorf("%v", r.Header)
		}
		if requests.Add(1)%5 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var e struct {
			Threadid      string
			Threadversion int64
		}
		decode(t, string(body), &e)
		mu.Lock()
		defer mu.Unlock()
		if e.Threadversion > last[e.Threadid]+1 {
			t.Errorf("%s: version %d after %d", e.Threadid, e.Threadversion, last[e.Threadid])
		}
		last[e.Threadid] = max(last[e.Threadid], e.Threadversion)
		select {
		case more <- struct{}{}:
		default:
		}
	}))
	defer v.Close()
	store, file := t.TempDir(), filepath.Join(t.TempDir(), "hook.yaml")
	if err := os.WriteFile(file, []byte("kind: webhook\nname: hook\nhttp: {url: "+v.URL+"/events, secretEnv: [HOOK_SECRET]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--log-level", "debug", "--egress-allow", "127.0.0.1", "--http-secret", "acme:HOOK_SECRET=" + v.URL}
	var log bytes.Buffer
	s := startLogged(t, &log, store, flags...)
	s.ok("apply", "-f", file)
	want := map[string]int64{}
	for round := range 3 {
		for n := range 6 {
			key := "t" + strconv.Itoa(n%3) + ":" + strconv.Itoa(round)
			if n < 3 {
				s.ok("thread", "create", "--key", key)
			}
			s.ok("message", "add", "key:"+key, "hello")
		}
		for line := range strings.Lines(s.ok("thread", "list", "--json")) {
			var doc struct {
				ID      string
				Version int64
			}
			decode(t, line, &doc)
			want[doc.ID] = doc.Version
		}
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Wait() // it was killed
		s = startLogged(t, &log, store, flags...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for arrived := false; !arrived; {
		mu.Lock()
		arrived = len(want) == 9
		for thread, version := range want {
			arrived = arrived && last[thread] >= version
		}
		mu.Unlock()
		if arrived {
			break
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("arrived %v of %v", last, want)
		}
	}
	storeWithout(ctx, t, s.NATS, secret)
	s.stop()
	if strings.Contains(log.String(), secret) {
		t.Error("the secret is in the log")
	}
}
