package assets_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/logtest"
)

// A tenant's submitted commands that wait are bounded: the server refuses more, and
// takes those of other tenants. A stream of before the bound gets it on start.
func TestSubmitted_BacklogOfATenantIsBounded(t *testing.T) {
	l := logtest.Start(t)
	stream, err := l.JetStream().Stream(t.Context(), "SKEIN_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgsPerSubject, cfg.DiscardNewPerSubject = -1, false
	if _, err := l.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range assets.SubmittedAtMost {
		if i%1000 == 0 {
			<-l.JetStream().PublishAsyncComplete() // so few are outstanding that no slow server stalls them
		}
		if _, err := l.JetStream().PublishAsync("skein.submit.hog.thread.create", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	<-l.JetStream().PublishAsyncComplete()
	_, err = l.JetStream().Publish(t.Context(), "skein.submit.hog.thread.create", []byte(`{}`))
	if refused := (*jetstream.APIError)(nil); !errors.As(err, &refused) {
		t.Errorf("one more: %v", err)
	}
	if _, err := l.JetStream().Publish(t.Context(), "skein.submit.acme.thread.create", []byte(`{}`)); err != nil {
		t.Errorf("one of another tenant: %v", err)
	}
}
