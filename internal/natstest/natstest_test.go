package natstest_test

import (
	"net"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
)

func TestServersAreApart(t *testing.T) {
	first, second := natstest.Start(t), natstest.Start(t, natstest.SyncAlways())
	if first.URL() == second.URL() {
		t.Fatalf("both servers are at %s", first.URL())
	}
	for _, s := range []*embedded.Server{first, second} {
		js, err := jetstream.New(natstest.Connect(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "MINE"}); err != nil {
			t.Errorf("%s: %v", s.URL(), err)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	var s *embedded.Server
	t.Run("inner", func(t *testing.T) {
		s = natstest.Start(t, natstest.StoreDir(dir))
	})
	if nc, err := nats.Connect(s.URL()); err == nil {
		nc.Close()
		t.Error("the server runs on after its test")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a store directory that was given is kept: %v", err)
	}
}

// Of many who want an address, no two get the same, though nobody listens at any of them.
func TestFreeAddress_IsHeld(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for range 600 { // of 11,000 ports: else some would be the same
		address := natstest.FreeAddress(t)
		if taken[address] {
			t.Fatalf("%s is free twice", address)
		}
		taken[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
