package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// bank is a server with a reactor, which calls the tool pay, and that tool. Its first
// call of a key is never answered.
type bank struct {
	*httptest.Server
	arrived chan string // the keys of calls

	mu   sync.Mutex
	seen map[string]int
}

func openBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{arrived: make(chan string, 16), seen: map[string]int{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return // the server was killed
		}
		body := string(raw)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/agent" {
			call, text := `,"toolCalls":[{"callId":"c1","name":"pay","arguments":{}}]`, "paying"
			if strings.Contains(body, `"output"`) {
				call, text = "", "paid"
			}
			_, _ = io.WriteString(w, `{"kind":"result","assistantEvent":{"content":[{"type":"output_text","text":"`+text+`"}]}`+call+`}`)
			return
		}
		_, key, _ := strings.Cut(body, `"key":"`)
		key, _, _ = strings.Cut(key, `"`)
		b.mu.Lock()
		b.seen[key]++
		first := b.seen[key] == 1
		b.mu.Unlock()
		b.arrived <- key
		if first {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"kind":"result","status":"success","result":"done"}`)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// A server that is killed between the call of an endpoint and its answer repeats the call
// with the same key if the tool is idempotent, and otherwise asks a person. The secret that
// signs is in no log line and nowhere in the store.
func TestEndpoint_KilledBetweenCallAndAnswer(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"once": "", "idempotent": "idempotent: true\n"} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			var log bytes.Buffer
			store, definitions := t.TempDir(), filepath.Join(t.TempDir(), "bank.yaml")
			flags := []string{"--log-level", "debug", "--egress-allow", "127.0.0.1", "--http-secret", "acme:BANK_SECRET=" + b.URL}
			at := func(path string) string { return "http: {url: " + b.URL + path + ", secretEnv: [BANK_SECRET]}\n" }
			file := "kind: reactor\nname: teller\ntype: http\n" + at("/agent") +
				"---\nkind: tool\nname: pay\ndescription: Pays.\ntype: http\n" + more + at("/pay") +
				"---\nkind: agent\nname: cashier\ntype: ai_human\nreactor: teller\ntools: [pay]\n"
			if err := os.WriteFile(definitions, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			s := startLogged(t, &log, store, flags...)
			s.ok("apply", "-f", definitions)
			s.ok("thread", "create", "--key", "till")
			s.ok("thread", "react", "key:till", "pay", "--agent", "cashier")
			key := <-b.arrived
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait() // it was killed
			s = startLogged(t, &log, store, flags...)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if more == "" {
				awaitApproval(ctx, t, s.NATS)
			} else if again := <-b.arrived; again != key || key == "" {
				t.Errorf("the call was repeated with the key %q, not %q", again, key)
			}
			b.mu.Lock()
			if calls := b.seen[key]; more == "" && calls != 1 || more != "" && calls != 2 {
				t.Errorf("%d calls", calls)
			}
			b.mu.Unlock()
			storeWithout(ctx, t, s.NATS, secret)
			s.stop()
			if strings.Contains(log.String(), secret) {
				t.Error("the secret is in the log")
			}
		})
	}
}

// awaitApproval waits until a call waits for a person.
func awaitApproval(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	c, err := client.Connect(url, client.Options{Tenant: "acme", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		list, err := client.Read(ctx, c, events.ListApprovals{})
		if err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
		if err == nil && len(list.Approvals) > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// storeWithout expects that no message of any stream, and so no bucket, contains a text.
func storeWithout(ctx context.Context, t *testing.T, url, text string) {
	t.Helper()
	nc := natstest.Dial(t, url)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for name := range js.StreamNames(ctx).Name() {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		state := stream.CachedInfo().State
		for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
			m, err := stream.GetMsg(ctx, seq)
			if err != nil {
				continue // removed
			}
			read++
			if strings.Contains(string(m.Data), text) || strings.Contains(m.Subject, text) {
				t.Errorf("%s %d has the text: %.200s", name, seq, m.Data)
			}
			for _, values := range m.Header {
				if strings.Contains(strings.Join(values, ""), text) {
					t.Errorf("%s %d has the text in a header", name, seq)
				}
			}
		}
	}
	if read < 10 {
		t.Errorf("only %d messages were read", read)
	}
}
