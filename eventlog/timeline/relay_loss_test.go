package timeline

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// The timeline is stored without waiting for the disk. If the server comes back
// without its newest messages, and nothing new is written, the relay puts them
// there again. Found by dev/sim.
func TestRelay_AfterServerLostNewestMessages(t *testing.T) {
	dir := t.TempDir()
	s := natstest.Start(t, natstest.StoreDir(dir))
	p := natstest.NewProxy(t, s.URL())
	l := logtest.Open(t, p.Connect(t), eventlog.Config{})
	logtest.Must(t, l.Ensure(t.Context()))
	a := logtest.NewAuthor(1)
	a.Write(t, l, 2, 3)
	ctx, cancel := context.WithCancel(t.Context())
	relayed := make(chan struct{})
	go func() {
		defer close(relayed)
		_ = Of(l).Relay(ctx)
	}()
	defer func() {
		cancel()
		<-relayed
	}()
	shows := func(seq uint64) func() bool {
		return func() bool {
			got, err := Of(l).LastSeq(t.Context())
			return err == nil && got == seq
		}
	}
	natstest.Eventually(t, "the timeline to show all", shows(2))
	timeline := filepath.Join(dir, "jetstream", "$G", "streams", l.Config().Names.Stream(assets.TimelineStream))
	older := t.TempDir()

	restart := func(between func()) {
		s.Shutdown()
		between()
		s = natstest.Start(t, natstest.StoreDir(dir))
		p.Lead(t, s.URL())
		p.Cut()
	}
	restart(func() { logtest.Must(t, os.CopyFS(older, os.DirFS(timeline))) })
	natstest.Eventually(t, "the connection", l.Conn().IsConnected)
	a.Write(t, l, 2, 3)
	natstest.Eventually(t, "the timeline to show all again", shows(4))
	restart(func() {
		logtest.Must(t, os.RemoveAll(timeline))
		logtest.Must(t, os.CopyFS(timeline, os.DirFS(older)))
	})
	count := func() (n int) {
		for _, err := range Of(l).Messages(t.Context(), "*", "*") {
			logtest.Must(t, err)
			n++
		}
		return n
	}
	natstest.Eventually(t, "the timeline to show what it had lost", func() bool { return shows(4)() && count() >= 12 })
	if n := count(); n != 12 {
		t.Errorf("the timeline has %d events, not 12", n)
	}
}
