package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// step lets one thing happen.
func (r *Run) step() {
	r.server.step = int(r.steps.Add(1))
	r.collect()
	r.recover()
	for len(r.planned) > 0 && r.planned[0].step <= r.server.step {
		kind := r.planned[0].kind
		r.planned = r.planned[1:]
		if !r.strike(kind) {
			r.next = kind
		}
	}
	now := time.Now()
	heads, backs, readers := r.ready(now)
	n := len(heads) + len(backs) + len(readers)
	if n == 0 || r.rng.IntN(12) == 0 {
		r.sleep(now, n == 0)
		return
	}
	r.nap = 0
	switch i := r.rng.IntN(n); {
	case i < len(heads):
		r.arrive(heads[i])
	case i < len(heads)+len(backs):
		r.giveBack(backs[i-len(heads)])
	default:
		rd := readers[i-len(heads)-len(backs)]
		r.trace.note("read", rd.conn.name, rd.stream.name)
		rd.deliver()
	}
}

// collect takes what was sent since the last step, in an order that does not
// depend on which goroutine was first.
func (r *Run) collect() {
	for _, c := range r.conns {
		c.mu.Lock()
		fresh := c.fresh
		c.fresh = nil
		c.mu.Unlock()
		slices.SortStableFunc(fresh, func(a, b *frame) int {
			if d := strings.Compare(a.flow, b.flow); d != 0 {
				return d
			}
			return strings.Compare(a.label, b.label)
		})
		for _, f := range fresh {
			r.enqueue(f)
		}
	}
}

func (r *Run) enqueue(f *frame) {
	if f.flow != "" {
		for _, fl := range r.flows {
			if fl.conn == f.conn && fl.name == f.flow && fl.life == f.life {
				fl.frames = append(fl.frames, f)
				return
			}
		}
	}
	r.flows = append(r.flows, &flow{conn: f.conn, name: f.flow, life: f.life, frames: []*frame{f}})
}

// ready returns what can happen now.
func (r *Run) ready(now time.Time) (heads []*flow, backs []*frame, readers []*reader) {
	for _, fl := range r.flows {
		if fl.life == fl.conn.life && fl.conn.away || fl.frames[0].after.After(now) {
			continue
		}
		heads = append(heads, fl)
	}
	for _, f := range r.answers {
		if !f.after.After(now) {
			backs = append(backs, f)
		}
	}
	r.server.readers = slices.DeleteFunc(r.server.readers, func(rd *reader) bool { return rd.isStopped() || rd.conn.IsClosed() })
	for _, rd := range r.server.readers {
		if rd.conn.IsConnected() && rd.ready() {
			readers = append(readers, rd)
		}
	}
	return heads, backs, readers
}

// arrive lets the server do what is first in a flow, and, mostly, its answer
// come back at once.
func (r *Run) arrive(fl *flow) {
	f := fl.frames[0]
	what := "arrive"
	if r.next != "" && fl.conn != r.clients {
		what, r.next = r.next, ""
	}
	if what == "hold" {
		f.after = time.Now().Add(r.lateness())
		r.trace.note("hold", fl.conn.name, f.flow, f.label)
		return
	}
	if fl.frames = fl.frames[1:]; len(fl.frames) == 0 {
		r.flows = slices.DeleteFunc(r.flows, func(o *flow) bool { return o == fl })
	}
	r.trace.note(what, fl.conn.name, f.flow, f.label)
	switch {
	case what == "drop" && f.parts > 1:
		f.lose = 1 + r.rng.IntN(f.parts)
	case what == "drop":
		return
	case what == "race" && strings.Contains(f.flow, "LOG"):
		// Another proposal on the subject was in flight, and failed.
		f.run = func(s *Server) any {
			return &nats.Msg{Data: ack{err: refused(codeWrongInBatch, "wrong last sequence")}.json("SKEIN_LOG")}
		}
	case what == "twice":
		again := *f
		again.flow, again.after = "", time.Now().Add(r.lateness()/4)
		r.enqueue(&again)
	}
	f.answer = f.run(r.server)
	if f.back == nil || f.answer == nil || what == "mute" || f.life != fl.conn.life {
		return
	}
	if what == "late" {
		f.after = time.Now().Add(r.lateness())
	} else if fl.conn == r.clients || r.rng.IntN(4) > 0 {
		f.back(f.answer)
		return
	}
	r.answers = append(r.answers, f)
}

func (r *Run) giveBack(f *frame) {
	r.answers = slices.DeleteFunc(r.answers, func(o *frame) bool { return o == f })
	r.trace.note("back", f.conn.name, f.flow, f.label)
	f.back(f.answer)
}

// lateness returns how long something is held: often longer than any timeout.
func (r *Run) lateness() time.Duration {
	return time.Duration(r.rng.Int64N(int64([]time.Duration{20 * time.Millisecond, ackTimeout, 2 * ackTimeout, 5 * ackTimeout}[r.rng.IntN(4)])))
}

// sleep lets time pass: as little as brings something, if nothing can happen.
func (r *Run) sleep(now time.Time, must bool) {
	d := time.Duration(1 + r.rng.Int64N(int64(4*time.Millisecond)))
	if must {
		r.nap = min(2*r.nap+time.Millisecond, time.Second)
		d = r.nap
		for _, at := range r.awaited() {
			if wait := at.Sub(now); wait > 0 {
				d = min(d, wait)
			}
		}
	}
	r.trace.note("sleep", d.String())
	time.Sleep(d)
}

// awaited returns the moments at which something is released.
func (r *Run) awaited() []time.Time {
	all := []time.Time{r.leadAt}
	for _, fl := range r.flows {
		all = append(all, fl.frames[0].after)
	}
	for _, f := range r.answers {
		all = append(all, f.after)
	}
	for _, p := range r.procs {
		all = append(all, p.upAt, p.mendAt, p.restAt)
	}
	return all
}
