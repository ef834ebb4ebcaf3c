package eventlog

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A tenant's submitted commands that wait are bounded: the server refuses more, and
// takes those of other tenants. A stream of before the bound gets it on start.
func TestSubmitted_BacklogOfATenantIsBounded(t *testing.T) {
	l := start(t)
	stream, err := l.conn.JetStream().Stream(t.Context(), "SKEIN_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgsPerSubject, cfg.DiscardNewPerSubject = -1, false
	if _, err := l.conn.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range SubmittedAtMost {
		if i%1000 == 0 {
			<-l.conn.JetStream().PublishAsyncComplete() // so few are outstanding that no slow server stalls them
		}
		if _, err := l.conn.JetStream().PublishAsync("skein.submit.hog.thread.create", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	<-l.conn.JetStream().PublishAsyncComplete()
	_, err = l.conn.JetStream().Publish(t.Context(), "skein.submit.hog.thread.create", []byte(`{}`))
	if refused := (*jetstream.APIError)(nil); !errors.As(err, &refused) {
		t.Errorf("one more: %v", err)
	}
	if _, err := l.conn.JetStream().Publish(t.Context(), "skein.submit.acme.thread.create", []byte(`{}`)); err != nil {
		t.Errorf("one of another tenant: %v", err)
	}
}
