package eventlog

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/natstest"
)

// When the store takes no writes, an append is refused at once, and one that was not
// answered before is not looked up: the server may show what it could not write.
func TestAppend_RefusedInOutage(t *testing.T) {
	server := natstest.Start(t)
	p := natstest.NewProxy(t, server.URL())
	out := NewOutage()
	l := openLog(t, p.Connect(t), Config{Outage: out, AckTimeout: impatient}, nil)
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.DropReceived.Store(true)
	done := make(chan error, 1)
	go func() { done <- l.Append(context.Background(), newAuthor(1).next(t, 1)) }()
	if !out.Begin(syscall.ENOSPC) || out.Begin(nats.ErrTimeout) {
		t.Fatal("an outage begins once")
	}
	var unknown *UnknownError
	var refused *UnavailableError
	if err := <-done; !errors.As(err, &unknown) && !errors.As(err, &refused) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("an append in flight: %v", err)
	}
	p.Cut()
	if err := l.Append(t.Context(), newAuthor(2).next(t, 1)); !errors.As(err, &refused) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a later append: %v", err)
	}
	direct := openLog(t, natstest.Connect(t, server), Config{}, nil)
	if last, err := direct.LastSeq(t.Context()); err != nil || last > 1 {
		t.Errorf("the log ends at %d: %v", last, err)
	}
}
