package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/internal/natstest"
)

// accepted is an endpoint of webhooks that notes which events of each thread it accepted.
type accepted struct {
	*httptest.Server
	mu     sync.Mutex
	next   map[string]int64 // the version after the last one, by thread
	again  int              // events that came more than once
	refuse int              // one of so many requests is refused; 0: none
	asked  int
	more   chan struct{}
}

func newAccepted(t *testing.T) *accepted {
	a := &accepted{next: map[string]int64{}, more: make(chan struct{}, 1)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the process was killed
		}
		var e struct {
			Threadid      string
			Threadversion int64
		}
		decode(t, string(body), &e)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.asked++; a.refuse > 0 && a.asked%a.refuse == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		switch next := max(a.next[e.Threadid], 1); {
		case e.Threadversion > next:
			t.Errorf("%s: version %d after %d", e.Threadid, e.Threadversion, next-1)
		case e.Threadversion < next:
			a.again++
		default:
			a.next[e.Threadid] = next + 1
		}
		select {
		case a.more <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// until waits until every thread was delivered up to its version.
func (a *accepted) until(t *testing.T, want map[string]int64) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		a.mu.Lock()
		missing := 0
		for thread, version := range want {
			if a.next[thread] <= version {
				missing++
			}
		}
		a.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-a.more:
		case <-limit:
			t.Fatalf("%d of %d threads are not delivered", missing, len(want))
		}
	}
}

// delivers reports whether a process is the one that sends webhooks.
func delivers(t *testing.T, s *server) bool {
	t.Helper()
	r, err := http.Get(s.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(body), `skein_lease_held{lease="webhooks"} 1`)
}

// Of two processes one delivers: while both live, each event is sent once. When it is killed,
// again and again, the other continues, and loses no event nor the order of a thread.
func TestWebhook_OneOfTwoProcessesDelivers(t *testing.T) {
	t.Parallel()
	nats, v, file := natstest.Start(t), newAccepted(t), filepath.Join(t.TempDir(), "hook.yaml")
	if err := os.WriteFile(file, []byte("kind: webhook\nname: hook\ntypes: [thread.*, item.*, context.*, key.*]\nhttp: {url: "+v.URL+", secretEnv: [HOOK_SECRET]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	another := func() *server {
		return start(t, "", "--nats", nats.URL(), "--egress-allow", "127.0.0.1", "--http-secret", "acme:HOOK_SECRET="+v.URL)
	}
	pair := [2]*server{another(), another()}
	deliverer := func() int {
		limit := time.Now().Add(5 * time.Minute)
		for time.Now().Before(limit) {
			switch a, b := delivers(t, pair[0]), delivers(t, pair[1]); {
			case a && b:
				t.Fatal("both deliver")
			case a:
				return 0
			case b:
				return 1
			}
		}
		t.Fatal("none delivers")
		return 0
	}
	pair[0].ok("apply", "-f", file)
	want := map[string]int64{}
	say := func(through *server, n int) {
		for range n {
			var made struct{ ThreadID string }
			decode(t, through.ok("thread", "create", "--json"), &made)
			through.ok("message", "add", made.ThreadID, "hello")
		}
		for _, doc := range decodeLines[struct {
			ID      string
			Version int64
		}](t, through.ok("thread", "list", "--json")) {
			want[doc.ID] = doc.Version
		}
	}
	deliverer()
	say(pair[1], 4)
	v.until(t, want)
	v.mu.Lock()
	if v.again > 0 {
		t.Errorf("while both lived, %d events came again", v.again)
	}
	v.refuse = 5 // from now on
	v.mu.Unlock()
	for range 2 {
		killed := deliverer()
		other := pair[1-killed]
		say(other, 2)
		if err := pair[killed].cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = pair[killed].cmd.Wait() // it was killed
		say(other, 2)
		pair[killed] = another()
	}
	v.until(t, want)
	deliverer()
}
