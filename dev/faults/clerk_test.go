package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

const tenant = "acme"

// clerk is a client that sends random commands, one after the other.
type clerk struct {
	*history
	number  int
	nc      *nats.Conn
	js      jetstream.JetStream
	rng     *rand.Rand
	threads []string
	keys    []string
	made    int // commands
	seq     int64
	last    *write // the last one that was done
}

// patience bounds one request; after it the outcome is unknown.
const patience = 10 * time.Second

// answer is the outcome of a request.
type answer struct {
	reply   events.Reply
	refusal *events.Error // nil: it was done, or lost
	lost    bool          // no answer came: it may have been done
}

// ask sends one request.
func (c *clerk) ask(ctx context.Context, kind, name string, request any) (a answer, raw []byte) {
	body, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := c.nc.RequestWithContext(ctx, "skein."+kind+"."+tenant+"."+name, body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return answer{refusal: &events.Error{Code: events.Unavailable, Message: "nobody is there"}}, nil
	case err != nil:
		return answer{lost: true}, nil
	case m.Header.Get("Nats-Service-Error-Code") != "":
		var refused struct {
			Error *events.Error `json:"error"`
		}
		if json.Unmarshal(m.Data, &refused) != nil || refused.Error == nil {
			c.fail("%s was refused with %q", name, m.Data)
			return answer{lost: true}, nil
		}
		return answer{refusal: refused.Error}, nil
	}
	if kind == "cmd" {
		if err := json.Unmarshal(m.Data, &a.reply); err != nil {
			c.fail("%s was answered with %q", name, m.Data)
		}
		c.seq = max(c.seq, a.reply.Seq)
	}
	return a, m.Data
}

// unknown reports whether an answer leaves open whether the command was done.
func (a answer) unknown() bool {
	return a.lost || a.refusal != nil && a.refusal.Details != nil && a.refusal.Details.Outcome == "unknown"
}

// work sends commands until ctx ends, with a pause after each.
func (c *clerk) work(ctx context.Context, pause time.Duration) {
	for ctx.Err() == nil {
		switch n := c.rng.IntN(100); {
		case n < 70:
			c.write(ctx)
		case n < 78:
			c.resolve(ctx)
		case n < 86:
			c.submit(ctx)
		case n < 92:
			c.again(ctx)
		default:
			c.read(ctx)
		}
		sleep(ctx, time.Duration(c.rng.Int64N(int64(2*pause))))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (c *clerk) thread() string { return c.threads[c.rng.IntN(len(c.threads))] }

func (c *clerk) newID() string {
	c.made++
	return fmt.Sprintf("%s-%d-%d", c.name, c.number, c.made)
}

// item returns the request that adds an item.
func item(id, thread string, expected int64) map[string]any {
	r := map[string]any{"commandId": id, "threadId": thread, "data": map[string]any{
		"item": map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": id}}},
	}}
	if expected >= 0 {
		r["expectedVersion"] = expected
	}
	return r
}

// write adds an item to a thread, and repeats it until its outcome is known or the
// attempts are used up.
func (c *clerk) write(ctx context.Context) {
	w := write{clerk: c.number, thread: c.thread(), command: c.newID(), expected: -1, conflict: -1}
	if c.rng.IntN(2) == 0 {
		w.expected = c.version(w.thread)
	}
	giveUp := c.rng.IntN(3) == 0
	w.call = c.now()
	unknown := false
	for {
		a, _ := c.ask(context.WithoutCancel(ctx), "cmd", "item.create", item(w.command, w.thread, w.expected))
		w.back = c.now()
		switch {
		case a.unknown():
			c.count("unknown")
			unknown = true
		case a.refusal == nil:
			if len(a.reply.Events) != 1 {
				c.fail("%s was answered with %d events", w.command, len(a.reply.Events))
				return
			}
			w.done = a.reply.Events[0].Version
			c.count("done")
			c.add(w)
			c.last = &w
			return
		case a.refusal.Code == events.VersionConflict && a.refusal.Details != nil && a.refusal.Details.CurrentVersion != nil:
			w.conflict = *a.refusal.Details.CurrentVersion
			c.count("conflicts")
			c.add(w)
			return
		case a.refusal.Code != events.Unavailable:
			c.fail("%s on %s, which expects %d, was refused: %v", w.command, w.thread, w.expected, a.refusal)
			return
		default:
			c.count("unavailable")
		}
		if giveUp || ctx.Err() != nil && !unknown {
			w.maybe, w.refused = unknown, !unknown
			c.count("given up")
			c.add(w)
			return
		}
		sleep(context.WithoutCancel(ctx), 100*time.Millisecond)
	}
}

// again repeats a command that was done, and checks that it returns the first answer.
func (c *clerk) again(ctx context.Context) {
	if c.last == nil {
		return
	}
	a, _ := c.ask(ctx, "cmd", "item.create", item(c.last.command, c.last.thread, c.last.expected))
	switch {
	case a.lost, a.refusal != nil && a.refusal.Code == events.Unavailable:
	case a.refusal != nil:
		c.fail("the repeat of %s, done at %d, was refused: %v", c.last.command, c.last.done, a.refusal)
	case len(a.reply.Events) != 1 || a.reply.Events[0].Version != c.last.done:
		c.fail("the repeat of %s, done at %d, was answered with %+v", c.last.command, c.last.done, a.reply)
	default:
		c.count("repeats")
	}
}

// resolve requests the thread of a key.
func (c *clerk) resolve(ctx context.Context) {
	key := c.keys[c.rng.IntN(len(c.keys))]
	a, _ := c.ask(ctx, "cmd", "thread.resolve", map[string]any{"commandId": c.newID(), "data": map[string]any{"key": key}})
	switch {
	case a.lost, a.refusal != nil && a.refusal.Code == events.Unavailable:
	case a.refusal != nil:
		c.fail("resolving %s was refused: %v", key, a.refusal)
	default:
		c.key(key, a.reply.ThreadID)
		c.count("resolved")
	}
}

// submit publishes a command to be executed later.
func (c *clerk) submit(ctx context.Context) {
	id, thread := c.newID(), c.thread()
	body, err := json.Marshal(item(id, thread, -1))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := c.js.Publish(ctx, "skein.submit."+tenant+".item.create", body, jetstream.WithMsgID(id)); err != nil {
		c.count("not submitted")
		return
	}
	c.count("submitted")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.submitted = append(c.submitted, submitted{thread, id})
}

// read queries a thread with the sequence that this clerk saw last as minSeq.
func (c *clerk) read(ctx context.Context) {
	if c.last == nil {
		return
	}
	a, raw := c.ask(ctx, "query", "thread.get", map[string]any{"threadId": c.last.thread, "minSeq": c.seq})
	switch {
	case a.lost:
	case a.refusal != nil && (a.refusal.Code == events.Unavailable || a.refusal.Code == events.ProjectionBehind):
		c.count("reads behind")
	case a.refusal != nil:
		c.fail("reading %s was refused: %v", c.last.thread, a.refusal)
	default:
		var doc events.Thread
		if err := json.Unmarshal(raw, &doc); err != nil || doc.Version < c.last.done {
			c.fail("%s was read at version %d, and had %d before (%v)", c.last.thread, doc.Version, c.last.done, err)
		}
		c.count("reads")
	}
}
