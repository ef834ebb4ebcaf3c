package server

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/eventlog/streams"
)

// A flipped bit in a sealed block of a store in use is reported by readiness, by a
// metric, by the log, and by the reads that need it. The last block, which is being
// written, is not checked.
func TestWatch_DamageWhileServing(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	store := t.TempDir()
	s, err := Start(t.Context(), Config{Store: store, NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Workers: -1, Volatile: true}, zerolog.New(zerolog.SyncWriter(&logged)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
	log, err := s.open("test")
	if err != nil {
		t.Fatal(err)
	}
	// What is in the messages does not matter here, only that a block is full.
	body := bytes.Repeat([]byte("0123456789abcdef"), 32<<10)
	for range 20 {
		if _, err := log.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: s.cfg.Names.Log("acme", "T-1"), Data: body}, jetstream.WithExpectStream("SKEIN_LOG")); err != nil {
			t.Fatal(err)
		}
	}
	s.scanStore(t.Context())
	if err := s.watch.readable(t.Context()); err != nil {
		t.Fatalf("before: %v", err)
	}
	sealed := filepath.Join(store, "jetstream", "$G", "streams", "SKEIN_LOG", "msgs", "1.blk")
	var raw []byte
	for !bytes.HasPrefix(raw, []byte("cmp")) { // the server compresses it later, which would repair it
		if raw, err = os.ReadFile(sealed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(sealed, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s.scanStore(t.Context())
	if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), filepath.Join("SKEIN_LOG", "msgs", "1.blk")) || !strings.Contains(err.Error(), "skein store repair") {
		t.Errorf("readiness: %v", err)
	}
	page := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if !strings.Contains(page.Body.String(), "skein_store_damages 1\n") {
		t.Error("the metric does not say so")
	}
	damages := s.watch.damages
	if len(damages) != 1 {
		t.Fatalf("%v", damages)
	}
	if err := s.watch.damage("SKEIN_LOG", damages[0].From, damages[0].From); err == nil {
		t.Error("a read of a message there would not say why it fails")
	}
	if err := s.watch.damage("SKEIN_LOG", 19, 19); err != nil {
		t.Errorf("a message of the last block: %v", err)
	}
	var unreadable *streams.UnreadableError
	if err := error(&streams.UnreadableError{Stream: "SKEIN_LOG", Seq: 1, Cause: s.watch.readable(t.Context())}); !errors.As(err, &unreadable) || !strings.Contains(err.Error(), "1.blk") {
		t.Error(err)
	}
}

// A store that takes long to read is not read all the time because its server is slow to answer.
func TestRestAfter_LeavesTheProcessor(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, time.Second, time.Minute} {
		if rest := restAfter(took); rest < scanPause || took*20 > rest+took {
			t.Errorf("after %v it rests for %v", took, rest)
		}
	}
}
