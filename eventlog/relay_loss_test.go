package eventlog

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/natstest"
)

// The timeline is stored without waiting for the disk. If the server comes back
// without its newest messages, and nothing new is written, the relay puts them
// there again. Found by internal/sim.
func TestRelayAfterTheServerLostTheNewest(t *testing.T) {
	dir := t.TempDir()
	s := natstest.Start(t, natstest.StoreDir(dir))
	p := natstest.NewProxy(t, s.URL())
	l := openLog(t, p.Connect(t), Config{}, nil)
	must(t, l.Ensure(t.Context()))
	a := newAuthor(1)
	a.write(t, l, 2, 3)
	ctx, cancel := context.WithCancel(t.Context())
	relayed := make(chan struct{})
	go func() {
		defer close(relayed)
		_ = l.Relay(ctx)
	}()
	defer func() {
		cancel()
		<-relayed
	}()
	shows := func(seq uint64) func() bool {
		return func() bool {
			got, err := l.TimelineSeq(t.Context())
			return err == nil && got == seq
		}
	}
	eventually(t, "the timeline to show all", shows(2))
	timeline := filepath.Join(dir, "jetstream", "$G", "streams", l.cfg.Names.Stream(assets.TimelineStream))
	older := t.TempDir()

	restart := func(between func()) {
		s.Shutdown()
		between()
		s = natstest.Start(t, natstest.StoreDir(dir))
		p.Lead(t, s.URL())
		p.Cut()
	}
	restart(func() { must(t, os.CopyFS(older, os.DirFS(timeline))) })
	eventually(t, "the connection", l.conn.NATS().IsConnected)
	a.write(t, l, 2, 3)
	eventually(t, "the timeline to show all again", shows(4))
	restart(func() {
		must(t, os.RemoveAll(timeline))
		must(t, os.CopyFS(timeline, os.DirFS(older)))
	})
	eventually(t, "the timeline to show what it had lost", shows(4))
	n := 0
	for _, err := range l.TimelineMessages(t.Context(), "*", "*") {
		must(t, err)
		n++
	}
	if n != 12 {
		t.Errorf("the timeline has %d events, not 12", n)
	}
}
