package commands

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// Whatever is cut off amid appends (the caller's context, the connection, the
// log), a command that was answered as done is in the log once, one that was
// refused as unavailable is not in it, and none is in it twice; a repeat with
// the same id settles what was not known.
func TestCutOff(t *testing.T) {
	for _, cut := range []string{"context", "connection", "log"} {
		t.Run(cut, func(t *testing.T) {
			w := newWorld(t, Config{})
			ids := []string{create(t, w.d), create(t, w.d), create(t, w.d)}
			nc := natstest.Connect(t, w.server)
			log, err := eventlog.Open(nc, eventlog.Config{AckTimeout: time.Second}, zerolog.Nop(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(log.Close)
			d := newDispatcher(t, log, Config{Timeout: 5 * time.Second})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			const each = 200
			enough := make(chan struct{}, 60) // one for each command that was done
			cutting := make(chan struct{})    // nobody waits for room any more
			outcomes := map[string]result{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for writer := range 6 {
				all.Go(func() {
					for i := range each {
						command := "c-" + strconv.Itoa(writer) + "-" + strconv.Itoa(i)
						reply, err := d.Do(ctx, tenant, "item.create", []byte(with(command, ids[writer%3], hello)), Meta{})
						var refusal *events.Error
						if err == nil {
							select {
							case enough <- struct{}{}: // no more are done than are seen to be
							case <-cutting:
							}
						} else {
							refusal = events.AsError(err)
						}
						mu.Lock()
						outcomes[command] = result{reply, refusal}
						mu.Unlock()
						if err != nil {
							return
						}
					}
				})
			}
			for range 60 {
				<-enough
			}
			close(cutting)
			switch cut {
			case "context":
				cancel()
			case "connection":
				nc.Close()
			case "log":
				log.Close()
			}
			all.Wait()

			inLog, done, unknown := map[string]int{}, 0, 0
			for _, id := range ids {
				for command, n := range w.byCommand(id) {
					inLog[command] += n
				}
			}
			for command, o := range outcomes {
				switch n := inLog[command]; {
				case n > 1:
					t.Errorf("%s is in the log %d times", command, n)
				case o.err == nil:
					if done++; n != 1 {
						t.Errorf("%s was acknowledged at %d, and is not in the log", command, o.reply.Seq)
					}
				case o.err.Code != events.Unavailable:
					t.Errorf("%s: %v", command, o.err)
				case o.err.Details != nil && o.err.Details.Outcome == "unknown":
					if unknown++; o.err.Details.ID != command {
						t.Errorf("%s may have been done, and is to be repeated as %q", command, o.err.Details.ID)
					}
				case n != 0:
					t.Errorf("%s is in the log, though nothing was to be written: %v (%v)", command, o.err, o.err.Cause)
				}
			}
			if done < 60 || done == 6*each {
				t.Errorf("%d of %d were done: nothing was cut off", done, 6*each)
			}
			t.Logf("%d done, %d refused, %d not known", done, len(outcomes)-done-unknown, unknown)
			for writer := range 6 { // a repeat elsewhere does each once
				for i := range each {
					must(t, w.d, "item.create", with("c-"+strconv.Itoa(writer)+"-"+strconv.Itoa(i), ids[writer%3], hello))
				}
			}
			for _, id := range ids {
				count := w.byCommand(id)
				for command, n := range count {
					if n != 1 && strings.HasPrefix(command, "c-") {
						t.Errorf("after the repeat %s is in the log %d times", command, n)
					}
				}
				if len(count) != 1+2*each {
					t.Errorf("%s has %d commands", id, len(count))
				}
				w.sameAsLog(w.d, id)
			}
		})
	}
}

// A server that is away and comes back: what was acknowledged is there, and the
// dispatcher goes on.
func TestServerRestart(t *testing.T) {
	dir := t.TempDir()
	first := natstest.Start(t, natstest.StoreDir(dir), natstest.SyncAlways())
	w := &world{t: t, server: first, nc: natstest.Connect(t, first)}
	w.log = openLog(t, w.nc)
	if err := w.log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.d = newDispatcher(t, w.log, Config{})
	id := create(t, w.d)
	reply := must(t, w.d, "item.create", with("c-1", id, hello))
	first.Shutdown()

	w.server = natstest.Start(t, natstest.StoreDir(dir), natstest.SyncAlways())
	w.nc = natstest.Connect(t, w.server)
	w.log = openLog(t, w.nc)
	if err := w.log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.d = newDispatcher(t, w.log, Config{})
	if again := must(t, w.d, "item.create", with("c-1", id, hello)); again.Seq != reply.Seq || again.Events[0] != reply.Events[0] {
		t.Errorf("after the restart it was answered %+v, first %+v", again, reply)
	}
	w.sameAsLog(w.d, id)
}
