package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
)

// attempt is one try of a client to have a command done.
type attempt struct {
	id         string // of the command
	name       string
	body       []byte
	begun, end int // steps; end is 0 if nothing came back
	reply      *events.Reply
	refusal    *events.Error
}

// open reports whether the attempt may have been done, for all that its client
// knows.
func (a *attempt) open() bool {
	return a.reply == nil && (a.refusal == nil || a.refusal.Details != nil && a.refusal.Details.Outcome == "unknown")
}

// refused reports whether it was refused for a reason that lies in the thread.
func (a *attempt) refused() bool {
	return a.refusal != nil && a.refusal.Code != events.Unavailable
}

// client does commands, one after another, on whichever process it finds, and
// repeats those of which it does not know whether they were done.
type client struct {
	run  *Run
	n    int
	rng  *rand.Rand
	seen map[string]int64 // versions of threads, as answers said
	// forks are the threads that its forks created.
	forks []string
}

// begin starts a client.
func (r *Run) begin(n int) {
	c := &client{run: r, n: n, rng: rand.New(rand.NewPCG(r.seed, uint64(100+n))), seen: map[string]int64{}}
	r.mu.Lock()
	r.waiting++
	r.mu.Unlock()
	r.under.Go(func() {
		for i := range r.shape.commands {
			c.command(i)
		}
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	})
}

// turn is where a client finds itself when it goes on.
type turn struct {
	dispatcher *commands.Dispatcher
	died       chan struct{}
	step       int
}

// wait waits until the scheduler lets the client go on. Nil while no process
// runs.
func (c *client) wait(label string) *turn {
	a, err := c.run.clients.call(context.Background(), &frame{label: label, run: func(s *Server) any {
		p := pick(c.run.rng, c.run.procs)
		if p.dead() {
			return &turn{}
		}
		return &turn{dispatcher: p.dispatcher, died: p.died, step: s.step}
	}})
	if err != nil {
		return &turn{}
	}
	return a.(*turn)
}

// command does one command, with its repeats.
func (c *client) command(i int) {
	id := fmt.Sprintf("cmd-%d-%d", c.n, i)
	name, threadID, data := c.draw(i)
	body := `{"commandId":` + strconv.Quote(id)
	if threadID != "" {
		body += `,"threadId":` + strconv.Quote(threadID)
	}
	if c.rng.IntN(4) == 0 {
		v := c.seen[threadID] + int64(max(c.rng.IntN(5)-3, 0))
		body += `,"expectedVersion":` + strconv.FormatInt(v, 10)
	}
	body += `,"data":` + data + `}`
	twin := make(chan struct{})
	if c.rng.IntN(6) == 0 { // the same, twice at once
		rng := rand.New(rand.NewPCG(c.run.seed, uint64(1000*c.n+i)))
		c.run.under.Go(func() {
			defer close(twin)
			c.tries(rng, id+" twin", id, name, body)
		})
	} else {
		close(twin)
	}
	if reply := c.tries(c.rng, id, id, name, body); reply != nil {
		c.seen[threadID], c.seen[reply.ThreadID] = reply.Version, reply.Version
		if reply.Result != nil && reply.Result.ChildID != "" {
			c.forks = append(c.forks, reply.Result.ChildID)
		}
	}
	<-twin
}

// tries has a command done, and repeats it if it is not known whether it was,
// or if there was no time for it.
func (c *client) tries(rng *rand.Rand, label, id, name, body string) *events.Reply {
	for range 6 {
		t := c.wait(label)
		if t.dispatcher == nil {
			continue
		}
		a := &attempt{id: id, name: name, body: []byte(body), begun: t.step}
		c.try(a, t)
		c.run.mu.Lock()
		c.run.history = append(c.run.history, a)
		c.run.mu.Unlock()
		if !a.open() && (a.refusal == nil || a.refusal.Code != events.Unavailable) {
			return a.reply
		}
		if rng.IntN(5) == 0 {
			return nil
		}
	}
	return nil
}

// try sends a command to a process, and waits until it answers or dies.
func (c *client) try(a *attempt, t *turn) {
	type answer struct {
		reply *events.Reply
		err   error
	}
	answers := make(chan answer, 1)
	c.run.under.Go(func() {
		reply, err := t.dispatcher.Do(context.Background(), tenant, a.name, a.body, commands.Meta{})
		answers <- answer{reply, err}
	})
	select {
	case <-t.died:
		return
	case got := <-answers:
		select {
		case <-t.died: // nobody was there to hear it
			return
		default:
		}
		a.end = int(c.run.steps.Load())
		a.reply = got.reply
		if got.err != nil && !errors.As(got.err, &a.refusal) {
			a.refusal = events.AsError(got.err)
		}
	}
}

// draw makes up a command.
func (c *client) draw(i int) (name, threadID, data string) {
	s := &c.run.shape
	if s.families {
		return c.drawFamily(i)
	}
	id := fmt.Sprintf("T-00000000-0000-7000-8000-%012d", c.rng.IntN(s.threads))
	key := fmt.Sprintf("k%d", c.rng.IntN(s.keys))
	item := fmt.Sprintf("itm_%d_%d", c.n, c.rng.IntN(i+1))
	ref := id
	if c.rng.IntN(6) == 0 {
		ref = "key:" + key
	}
	message := func(id string) string {
		return `{"item":{"id":"` + id + `","type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`
	}
	fresh := fmt.Sprintf("itm_%d_%d", c.n, i)
	roll := c.rng.IntN(20)
	if i == 0 {
		roll /= 3 // somebody must begin
	}
	switch {
	case roll < 3:
		return "thread.create", id, `{"title":"a thread"}`
	case roll < 4:
		return "thread.create", id, `{"key":"` + key + `"}`
	case roll < 7:
		return "thread.resolve", "", `{"key":"` + key + `"}`
	case roll < 12:
		return "item.create", ref, message(fresh)
	case roll < 14:
		return "thread.update", ref, `{"title":"title ` + fresh + `"}`
	case roll < 15 && i%3 == 1:
		return "state.merge", ref, `{"operations":[{"op":"push","key":"k","value":` + strconv.Itoa(i) + `,"max":3}],"session":{"id":"sess_` +
			strconv.Itoa(c.n) + `","completed":` + strconv.FormatBool(i%2 == 0) + `}}`
	case roll < 15 && i%3 == 2:
		return "session." + []string{"start", "complete"}[i%2], ref, `{"sessionId":"sess_` + strconv.Itoa(c.n) + `"}`
	case roll < 15:
		return "context.set", ref, `{"patch":{"k` + strconv.Itoa(c.n) + `":` + strconv.Itoa(i) + `}}`
	case roll < 16:
		return "message.edit", ref, `{"itemId":"` + item + `","content":[]}`
	case roll < 17:
		return "message.delete", ref, `{"itemId":"` + item + `"}`
	case roll < 19:
		return "thread.commit", ref, `{"commands":[{"command":"item.create","data":` + message(fresh) +
			`},{"command":"thread.update","data":{"title":"both"}},{"command":"item.status","data":{"itemId":"` + fresh + `","to":"completed"}}]}`
	}
	return "thread.delete", ref, `{}`
}
