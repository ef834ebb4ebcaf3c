package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/service"
)

// Whatever a query reads much of, it waits for a place; one that reads little does not.
func TestReads_LongOnesWaitForAPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	const many = 200
	one := fmt.Sprintf(`{"command":"item.create","data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}}`, strings.Repeat("x", 200))
	commit := `{"commands":[` + strings.TrimSuffix(strings.Repeat(one+",", many), ",") + `]}`
	h.Do("thread.commit", id, commit)
	h.Do("thread.commit", id, commit)
	for range many {
		h.Do("thread.create", "", `{}`)
	}
	h.AwaitRunner(r)
	waiting := make(waits, 8)
	places := quota.NewPool("reads", quota.Places{Total: 1}, waiting)
	leave, err := places.Try("noisy")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	free := func(string, float64, time.Time) time.Duration { return 0 }
	for _, c := range []struct {
		name, body string
		long       bool
	}{
		{"thread.get", `{"threadId":"` + id + `"}`, false},
		{"thread.list", `{"limit":10}`, false},
		{"item.list", `{"threadId":"` + id + `","limit":10}`, false},
		{"event.list", `{"threadId":"` + id + `","types":["nothing.here"]}`, true},
		{"history.list", `{"threadId":"` + id + `"}`, true},
		{"thread.list", `{"limit":1000}`, true},
		{"thread.history", `{"limit":1000}`, true},
		{"item.list", `{"threadId":"` + id + `","limit":1000}`, true},
		{"message.list", `{"threadId":"` + id + `","limit":1000}`, true},
		{"thread.document", `{"threadId":"` + id + `"}`, true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		work := quota.NewWork(acme, places, free)
		answered := make(chan error, 1)
		go func() {
			_, err := a.q.Handle(work.In(ctx), acme, c.name, []byte(c.body), service.Meta{})
			answered <- err
		}()
		select {
		case <-waiting:
			cancel()
			if err := <-answered; err == nil || !c.long {
				t.Errorf("%s %s waited for a place: %v", c.name, c.body, err)
			}
		case err := <-answered:
			if err != nil || c.long {
				t.Errorf("%s %s was answered without a place: %v", c.name, c.body, err)
			}
		}
		cancel()
		work.End()
	}
}
