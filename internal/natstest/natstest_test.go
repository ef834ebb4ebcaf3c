package natstest_test

import (
	"os"
	"testing"

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
	if nc, err := s.Connect("late"); err == nil {
		nc.Close()
		t.Error("the server runs on after its test")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a store directory that was given is kept: %v", err)
	}
}
