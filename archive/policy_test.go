package archive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A tenant's policy is a definition: validated, recorded, and applied in the
// background to its own threads alone. Without one, nothing is archived.
func TestPolicies(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, bad := range []string{
		`{"kind":"policy","definition":{"name":"other","archiveAfterDays":1}}`, `{"kind":"policy","definition":{"name":"retention","archiveAfterDays":0}}`,
		`{"kind":"policy","definition":{"name":"retention","archiveAfter":"1d"}}`,
	} {
		if _, err := w.c.Do(w.ctx, "definition.apply", client.Request{Data: raw(`{"definitions":[` + bad + `]}`)}); !errors.Is(err, &events.Error{Code: events.InvalidRequest}) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	w.fill(threadID(1), 1)
	w.fill(threadID(2), 1)
	acme := w.c
	w.c = w.client("globex")
	w.fill(threadID(1), 1)
	w.c = acme
	for _, policy := range []string{`{"name":"retention","archiveAfterDays":30}`, `{"name":"retention","archiveAfterDays":1}`} {
		if _, err := w.c.Do(w.ctx, "definition.apply", client.Request{Data: raw(`{"definitions":[{"kind":"policy","definition":` + policy + `}]}`)}); err != nil {
			t.Fatal(err)
		}
	}
	w.shown()
	if got, err := archive.Policies(w.ctx, w.log); err != nil || len(got) != 1 || got[0] != (archive.Policy{Tenant: "acme", Idle: 24 * time.Hour}) {
		t.Fatalf("%+v, %v", got, err)
	}
	run := func(in time.Duration) (stop func()) {
		ctx, cancel := context.WithCancel(w.ctx)
		a := archive.New(w.open(), archive.Config{Every: 20 * time.Millisecond, Rate: 100, Now: func() time.Time { return time.Now().Add(in) }}, zerolog.Nop())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = a.Run(ctx) }()
		return func() { cancel(); <-ended }
	}
	stop := run(48 * time.Hour)
	w.until("the threads are not archived", func() bool { return len(w.stored(threadID(1))) == 1 && len(w.stored(threadID(2))) == 1 })
	stop()
	n := 0
	for _, err := range w.log.Stored(w.ctx, w.log.Config().Names.Log("globex", threadID(1)), 1) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n < 5 {
		t.Errorf("a tenant without a policy has %d commits in the log", n)
	}
	if _, err := w.c.Do(w.ctx, "definition.apply", client.Request{Data: raw(`{"remove":[{"kind":"policy","name":"retention"}]}`)}); err != nil {
		t.Fatal(err)
	}
	w.shown()
	if got, err := archive.Policies(w.ctx, w.log); err != nil || len(got) != 0 {
		t.Errorf("it was removed: %+v, %v", got, err)
	}
}
