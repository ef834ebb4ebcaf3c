package webhooks_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime/webhooks"
)

// Two processes that start together on a new cluster both get ready: the second one reads a bucket
// that the first one has just created, and that has no leader yet.
func TestEnsure_TwoAtOnce(t *testing.T) {
	t.Parallel()
	nodes := natstest.StartCluster(t)
	var logs [2]*eventlog.Log
	for i := range logs {
		nc := natstest.Dial(t, nodes.Servers[i].ClientURL())
		var err error
		if logs[i], err = eventlog.Open(nc, eventlog.Config{Replicas: 3}, zerolog.Nop(), nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(logs[i].Close)
	}
	if err := logs[0].Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		var starting sync.WaitGroup
		for _, log := range logs {
			starting.Go(func() {
				if err := webhooks.Ensure(t.Context(), log, zerolog.Nop()); err != nil {
					t.Error(err)
				}
			})
		}
		starting.Wait()
		if err := logs[0].JetStream().DeleteStream(t.Context(), "KV_"+webhooks.Bucket); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
		for _, log := range logs {
			natstest.Eventually(t, "the bucket is gone", func() bool {
				_, there, err := log.Streams().Ends(t.Context(), "KV_"+webhooks.Bucket)
				return err == nil && !there
			})
		}
	}
}
