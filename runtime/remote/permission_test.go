package remote_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// The permissions of a worker suffice to be a reactor and a tool, to stream
// and to be cancelled, and permit to see nothing else.
func TestPermissions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(`authorization: { users: [
		{ user: worker, password: w }
		{ user: process, password: p, permissions: {
		  subscribe: { allow: ["skein.reactor.shout skein", "skein.tool.add skein", "skein.cancel.*"] }
		  publish: { allow: ["_INBOX.>"] }
		} } ] }`), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", -1, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	refused := make(chan error, 100)
	connect := func(user, password string) *nats.Conn {
		nc := natstest.Dial(t, s.ClientURL(), nats.UserInfo(user, password), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		return nc
	}
	w := &world{connect("worker", "w"), connect("process", "p"), events.DefaultNames()}
	ended := make(chan error, 1)
	w.serve(t, "shout", func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		out.Chunk(runtime.Chunk{Type: "t"})
		if in.Attempt == 2 {
			<-ctx.Done()
			ended <- context.Cause(ctx)
		}
		return says("ok"), nil
	})
	out := chunks{make(chan runtime.Chunk, 1)}
	if _, err := w.reactor(t, "shout").React(patient(t), &runtime.StepInput{}, out); err != nil || (<-out.got).Type != "t" {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(patient(t))
	stopped := errors.New("stopped")
	go func() { <-out.got; cancel(stopped) }()
	if _, err := w.reactor(t, "shout").React(ctx, &runtime.StepInput{Attempt: 2}, out); !errors.Is(err, stopped) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Error("the process works on")
	}
	for _, subject := range []string{"_INBOX.>", "skein.reactor.other", "skein.reactor.shout", "skein.cmd.>"} {
		if _, err := w.process.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Error(err)
			}
		case <-time.After(5 * time.Minute):
			t.Errorf("the process may listen to %s", subject)
		}
	}
	if _, err := remote.ServeTool(w.process, w.names, double{}); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Error(err)
	}
}
