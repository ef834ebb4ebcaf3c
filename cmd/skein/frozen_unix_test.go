//go:build unix

package main_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// While one of two Skeins hangs, each command and each query is answered by the other one, and is
// executed once. Then the server notices, and sends the one that hangs nothing more: also programs
// that repeat nothing get their answers.
func TestServe_OneOfTwoHangs(t *testing.T) {
	t.Parallel()
	nats := natstest.Start(t)
	start(t, t.TempDir(), "--nats", nats.URL())
	frozen := start(t, t.TempDir(), "--nats", nats.URL())
	c, err := client.Connect(nats.URL(), client.Options{Tenant: "acme", Timeout: natstest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	threads := make([]string, 16)
	for i := range threads {
		made, err := c.Send(t.Context(), "", events.CreateThread{Title: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		threads[i] = made.ThreadID
	}
	if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.cmd.Process.Signal(syscall.SIGCONT) })

	var asking sync.WaitGroup
	for _, thread := range threads {
		asking.Go(func() {
			if r, err := c.Send(t.Context(), thread, events.CreateItem{Item: events.UserText("hello")}); err != nil || r.Version != 3 {
				t.Errorf("a command: %+v, %v", r, err)
			}
			if _, err := client.Read(t.Context(), c, events.GetHistory{}); err != nil {
				t.Errorf("a query: %v", err)
			}
		})
	}
	asking.Wait()

	raw := natstest.Connect(t, nats)
	natstest.Eventually(t, "requests that are sent once are all answered", func() bool {
		var asking sync.WaitGroup
		var answered atomic.Int32
		for range 24 {
			asking.Go(func() {
				if _, err := raw.Request("skein.query.acme.history.get", []byte(`{"data":{}}`), 5*time.Second); err == nil {
					answered.Add(1)
				}
			})
		}
		asking.Wait()
		return answered.Load() == 24
	})
}
