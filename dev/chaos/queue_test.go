package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// bell signals each time that an answer on a thread is about to be written.
type bell struct {
	mu   sync.Mutex
	next map[string]chan struct{} // by thread
}

func (b *bell) of(thread string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next[thread] == nil {
		b.next[thread] = make(chan struct{})
	}
	return b.next[thread]
}

func (b *bell) ring(thread string) {
	c := b.of(thread)
	b.mu.Lock()
	defer b.mu.Unlock()
	close(c)
	delete(b.next, thread)
}

// Messages that arrive at the moment in which a run ends, fifty at a time and to two
// processes, are answered once each, in their order, or refused with queue_full: none is
// lost. AM-79, AM-80, AM-81, AM-82, AM-83, AM-84.
func TestMessagesAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	b := &bell{next: map[string]chan struct{}{}}
	s := startStore(t)
	for range 2 {
		startServe(t, server.Config{NATS: s.url, HTTPListen: "127.0.0.1:0", Register: func(r *runtime.Registry) error {
			return r.AddReactor("echo", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
				b.ring(in.ThreadID)
				text, err := jsontext.AppendQuote(nil, "You said: "+transcript.Trigger(in))
				return &runtime.Reaction{AssistantEvent: runtime.Assistant{
					Content: []events.JSON{events.JSON(`{"type":"output_text","text":` + string(text) + `}`)},
				}}, err
			}))
		}})
	}
	for _, c := range []struct {
		name string
		at   int // messages at the end of one run
	}{{"one at each end", 1}, {"five at each end", 5}, {"all at one end", 50}} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				race(t, s.Client, b, c.at)
			}
		})
	}
	audited(t, s.url)
}

// race sends fifty messages to a thread, at of them at a time, each time while an answer
// is being written.
func race(t *testing.T, c *client.Client, b *bell, at int) {
	t.Helper()
	const all = 50
	ctx := patient(t, patience)
	made, err := c.Send(ctx, "", events.CreateThread{AgentID: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	thread := made.ThreadID
	var mu sync.Mutex
	accepted, refused := map[string]string{}, 0 // texts by item
	var sending sync.WaitGroup
	send := func(n int) {
		id, text := fmt.Sprintf("itm_%s_%d", thread[2:], n), fmt.Sprintf("message %d", n)
		reply, err := c.Send(ctx, thread, events.ReactThread{Policy: events.Enqueue, Item: &events.NewItem{
			ID: id, Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"` + text + `"}]`),
		}})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && (reply.Result.ExecutionID == "" || reply.Result.ReactionItemID == ""):
			t.Errorf("the answer names %+v", reply.Result)
		case err == nil:
			accepted[id] = text
		case errors.Is(err, &events.Error{Code: events.QueueFull}):
			refused++
		default:
			t.Errorf("message %d: %v", n, err)
		}
	}
	ring := b.of(thread)
	send(0)
	for n := 1; n < all; {
		select {
		case <-ring:
		case <-ctx.Done():
			t.Fatal("no run began")
		}
		ring = b.of(thread)
		sending.Wait() // one of them at least begins the next run, or did
		for range min(at, all-n) {
			one := n
			sending.Go(func() { send(one) })
			n++
		}
	}
	sending.Wait()
	settle(t, c, thread)
	check(t, c, thread, accepted)
	t.Logf("%d at a time: %d accepted, %d refused", at, len(accepted), refused)
	if len(accepted)+refused != all || at == all && (refused == 0 || refused > all-events.MaxQueuedMessages) || at == 1 && refused > 0 {
		t.Errorf("%d messages were accepted, and %d refused", len(accepted), refused)
	}
}

// settle waits until a thread is at rest and nothing waits for it.
func settle(t *testing.T, c *client.Client, thread string) {
	t.Helper()
	waiting := 0
	var status events.ThreadStatus
	latest, err := c.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, err := client.Read(t.Context(), latest, events.GetThread{ThreadID: thread})
	if err != nil {
		t.Fatal(err)
	}
	seen := int64(0)
	until(t, c, thread, func(e client.Event) bool {
		switch d := e.Data.(type) {
		case events.QueuePushed:
			waiting++
		case events.QueueDrained:
			waiting -= len(d.IDs)
		case events.ThreadStatusChanged:
			status = d.To
		}
		seen = e.Version
		return seen >= now.Version && waiting == 0 && status == events.ThreadOpen && e.Type == events.ThreadStatusChangedType
	})
}

// check compares a thread at rest with the messages that were accepted.
func check(t *testing.T, c *client.Client, thread string, accepted map[string]string) {
	t.Helper()
	answers := map[string]string{} // content of reactions, by item
	triggers := map[string][]string{}
	said := map[string]int{}
	var pushed, drained []string
	number := int64(-1)
	for _, e := range historyOf(t, c, thread) {
		switch d := e.Data.(type) {
		case events.QueuePushed:
			pushed = append(pushed, d.ID)
			if !strings.HasPrefix(d.ID, "queued-") || events.Pattern(events.PatternUUID).FindString(d.ID[len("queued-"):]) == "" || d.MessageID <= number {
				t.Errorf("%s waits as message %d, after %d", d.ID, d.MessageID, number)
			}
			number = d.MessageID
			if len(pushed)-len(drained) > events.MaxQueuedMessages {
				t.Errorf("%d messages wait", len(pushed)-len(drained))
			}
		case events.QueueDrained:
			drained = append(drained, d.IDs...)
		case events.ItemCreated:
			if d.Role == events.User {
				said[d.ID]++
			} else {
				answers[d.ID] = string(d.Content)
			}
		case events.ExecutionCreated:
			triggers[d.TriggerItemID] = append(triggers[d.TriggerItemID], d.ReactionItemID)
		}
	}
	if !slices.Equal(pushed, drained) {
		t.Errorf("they waited in the order %v, and were taken in the order %v", pushed, drained)
	}
	if len(said) != len(accepted) {
		t.Errorf("%d messages are there, %d were accepted", len(said), len(accepted))
	}
	for id, text := range accepted {
		if said[id] != 1 || len(triggers[id]) != 1 || !strings.Contains(answers[triggers[id][0]], "You said: "+text+`"`) {
			t.Errorf("%s is there %d times, and was answered by %v", text, said[id], triggers[id])
		}
	}
}
