package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// scratchStream makes a stream like the log, for the cases without Skein.
func scratchStream(ctx context.Context, nc *nats.Conn, name string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.FileStorage, Compression: jetstream.S2Compression,
		AllowDirect: true, AllowAtomicPublish: true, Duplicates: time.Second,
	})
	return err
}

// oneByOne publishes each event of a commit and waits for its acknowledgement.
func oneByOne(nc *nats.Conn, c *events.Commit, d time.Duration) (Case, error) {
	var took []time.Duration
	start := time.Now()
	for i := 0; time.Since(start) < d; i++ {
		begun := time.Now()
		for n := range c.Events {
			m := &nats.Msg{Subject: fmt.Sprintf("ONE.%d.%s", i%1000, c.Events[n].Type), Data: c.Events[n].Raw()}
			if err := acked(nc.RequestMsg(m, 5*time.Second)); err != nil {
				return Case{}, err
			}
		}
		took = append(took, time.Since(begun))
	}
	return measured("one-by-one", 1, took, time.Since(start)), nil
}

// oneBatch sends the events of a commit as one atomic batch.
func oneBatch(nc *nats.Conn, c *events.Commit, d time.Duration) (Case, error) {
	var took []time.Duration
	start := time.Now()
	for i := 0; time.Since(start) < d; i++ {
		begun, id := time.Now(), rand.Text()
		for n := range c.Events {
			m := &nats.Msg{Subject: fmt.Sprintf("BATCH.%d.%s", i%1000, c.Events[n].Type), Data: c.Events[n].Raw(), Header: nats.Header{
				"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {strconv.Itoa(n + 1)},
			}}
			if n < len(c.Events)-1 {
				if err := nc.PublishMsg(m); err != nil {
					return Case{}, err
				}
				continue
			}
			m.Header["Nats-Batch-Commit"] = []string{"1"}
			if err := acked(nc.RequestMsg(m, 5*time.Second)); err != nil {
				return Case{}, err
			}
		}
		took = append(took, time.Since(begun))
	}
	return measured("batch", 1, took, time.Since(start)), nil
}

func acked(reply *nats.Msg, err error) error {
	if err != nil {
		return err
	}
	if m := string(reply.Data); len(m) > 9 && m[:9] == `{"error":` {
		return fmt.Errorf("refused: %s", m)
	}
	return nil
}

// ceiling group-commits ready-made commits of many writers through the same
// appender that Skein uses, and nothing else. Those of two threads differ, as real
// ones do: the server compresses them.
func ceiling(ctx context.Context, nc *nats.Conn, writers, threads int, d time.Duration) (Case, error) {
	log, err := eventlog.Open(nc, eventlog.Config{Names: events.Names{Prefix: "ceiling"}}, zerolog.Nop(), nil)
	if err != nil {
		return Case{}, err
	}
	defer log.Close()
	if err := log.Ensure(ctx); err != nil {
		return Case{}, err
	}
	ready := make([][]*events.Commit, writers)
	for w := range ready {
		for range max(threads/writers, 1) {
			c, err := readyMade()
			if err != nil {
				return Case{}, err
			}
			ready[w] = append(ready[w], c)
		}
	}
	all := make([][]time.Duration, writers)
	var failed atomic.Pointer[error]
	var working sync.WaitGroup
	start := time.Now()
	for w := range writers {
		working.Go(func() {
			mine := ready[w]
			for i := 0; time.Since(start) < d && failed.Load() == nil; i++ {
				c, begun := mine[i%len(mine)], time.Now()
				if err := log.Append(ctx, eventlog.Write{Commit: c, Expected: c.Seq}); err != nil {
					failed.Store(&err)
					return
				}
				all[w] = append(all[w], time.Since(begun))
			}
		})
	}
	working.Wait()
	elapsed := time.Since(start)
	if err := failed.Load(); err != nil {
		return Case{}, *err
	}
	var took []time.Duration
	for _, t := range all {
		took = append(took, t...)
	}
	return measured("ceiling", writers, took, elapsed), nil
}
