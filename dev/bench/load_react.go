package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// react asks the agent for one turn after another, each client on threads of its
// own, and waits for each turn's finish chunk.
func (l Load) react(ctx context.Context, nc *nats.Conn) (*Loaded, error) {
	ends := make(map[string]chan string, len(l.Threads))
	for _, id := range l.Threads {
		ends[id] = make(chan string, 1)
	}
	var mu sync.Mutex
	var late []int64
	names := events.DefaultNames()
	_, err := nc.Subscribe(names.Timeline(tenant, "*", events.ChunkEmittedType), func(m *nats.Msg) {
		now := time.Now()
		var e struct {
			Time   string `json:"time"`
			Thread string `json:"threadid"`
			Data   struct {
				Type string        `json:"type"`
				Data events.Finish `json:"data"`
			} `json:"data"`
		}
		if json.Unmarshal(m.Data, &e) != nil {
			return
		}
		if at, err := events.ParseTime(e.Time); err == nil {
			mu.Lock()
			late = append(late, now.Sub(at.Go()).Nanoseconds())
			mu.Unlock()
		}
		if e.Data.Type == events.ChunkFinish {
			ends[e.Thread] <- e.Data.Data.Reason
		}
	})
	if err != nil {
		return nil, err
	}
	var failed, next atomic.Int64
	var first atomic.Pointer[string]
	took := make([][]int64, l.Clients)
	subject := names.Command(tenant, "thread.react")
	var working sync.WaitGroup
	start := time.Now()
	fail := func(text string) {
		failed.Add(1)
		first.CompareAndSwap(nil, &text)
	}
	for w := range l.Clients {
		working.Go(func() {
			for ctx.Err() == nil && time.Since(start).Milliseconds() < l.Millis {
				n := int(next.Add(1)) - 1
				if n >= len(l.Threads) {
					return // the case is over sooner than was thought
				}
				id := l.Threads[n]
				body := fmt.Appendf(nil, `{"threadId":%q,"data":{"text":"Where is my order 42? I need it this week.","agentId":%q}}`, id, benchAgent)
				begun := time.Now()
				reply, err := nc.Request(subject, body, 30*time.Second)
				if err == nil && reply.Header.Get(events.HeaderErrorCode) != "" {
					err = fmt.Errorf("%s", reply.Data)
				}
				if err != nil {
					fail(err.Error())
					continue
				}
				select {
				case reason := <-ends[id]:
					if reason != events.FinishStop {
						fail("a turn ended with " + reason)
						continue
					}
					took[w] = append(took[w], time.Since(begun).Nanoseconds())
				case <-time.After(30 * time.Second):
					fail("a turn did not end within 30 s")
				}
			}
		})
	}
	working.Wait()
	out := &Loaded{Elapsed: time.Since(start).Nanoseconds(), Refused: int(failed.Load())}
	if text := first.Load(); text != nil {
		out.Error = *text
	}
	for _, t := range took {
		out.Nanos = append(out.Nanos, t...)
	}
	mu.Lock()
	defer mu.Unlock()
	out.ChunkNanos = late
	return out, nil
}
